from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arcticlake.errors import CorruptData
from arcticlake.table.watermark import (
    AHEAD,
    THROUGH,
    Subtree,
    Watermark,
    decode_watermark,
    encode_value,
    encode_watermark,
    overwritten,
)
from arcticlake.tree.node import Node
from tests.tree.strategies import nodes

VALUES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.binary(max_size=5)
    | st.dates()
    | st.decimals(allow_nan=False, allow_infinity=False)
)
SUBTREES = st.builds(
    lambda partition, node: (tuple(partition), node.mask, node.index),
    st.lists(VALUES, max_size=2),
    nodes(),
)


@settings(max_examples=30)
@given(through=st.integers(0, 2**40), ahead=st.dictionaries(SUBTREES, st.integers(1, 2**40)))
def test_a_watermark_survives_the_summary(through: int, ahead: dict[Subtree, int]) -> None:
    watermark = Watermark(through, ahead)

    summary = encode_watermark(watermark)

    assert all(isinstance(text, str) for text in summary.values())
    assert decode_watermark(summary) == watermark


def test_kinds_of_values_are_told_apart() -> None:
    ahead: dict[Subtree, int] = {
        ((1,), 0, 0): 1,
        (("1",), 0, 0): 2,
        ((Decimal("1.50"),), 0, 0): 3,
        ((b"1",), 0, 0): 4,
        ((date(2026, 1, 1),), 0, 0): 5,
        ((None,), 0, 0): 6,
    }

    assert decode_watermark(encode_watermark(Watermark(0, ahead))).ahead == ahead
    with pytest.raises(TypeError, match="object"):
        encode_value(object())


@settings(max_examples=30)
@given(node=nodes(), above=nodes(), sequence=st.integers(1, 9))
def test_a_subtree_that_is_ahead_covers_its_descendants_only(
    node: Node, above: Node, sequence: int
) -> None:
    watermark = Watermark(2, {(("p",), above.mask, above.index): 6})

    below = above.lineal(node) and node.depth >= above.depth
    expected = sequence <= 2 or (below and sequence <= 6)

    assert watermark.covers(("p",), node.mask, node.index, sequence) == expected
    assert watermark.covers(("other",), node.mask, node.index, sequence) == (sequence <= 2)


def test_no_watermark_covers_nothing_and_a_broken_one_stops() -> None:
    assert decode_watermark({}) == Watermark()
    assert not Watermark().covers((), 0, 0, 1)
    for broken in ({THROUGH: "x"}, {AHEAD: "{"}, {AHEAD: "[1]"}):
        with pytest.raises(CorruptData, match=r"verify\(\)"):
            decode_watermark(broken)


def test_an_overwrite_of_everything_sets_one_number() -> None:
    """BAT-09, BAT-10: forwards and backwards."""
    watermark = Watermark(5, {(("a",), 1, 0): 9})

    for version in (0, 3, 5, 12):
        assert overwritten(watermark, None, version, [("a",)]) == Watermark(version)


PARTITIONS = [("a",), ("b",), ("c",), (None,)]


@settings(max_examples=60)
@given(
    through=st.integers(0, 6),
    ahead=st.dictionaries(
        st.tuples(st.sampled_from(PARTITIONS), nodes()).map(
            lambda place: (place[0], place[1].mask, place[1].index)
        ),
        st.integers(1, 9),
        max_size=4,
    ),
    touched=st.frozensets(st.sampled_from(PARTITIONS)),
    version=st.integers(0, 9),
    node=nodes(),
)
def test_overwritten_partitions_stand_at_their_version_and_others_where_they_stood(
    through: int,
    ahead: dict[Subtree, int],
    touched: frozenset[tuple[object, ...]],
    version: int,
    node: Node,
) -> None:
    """BAT-09, BAT-10: the mark may go back, for some partitions alone."""
    before = Watermark(through, ahead)

    after = overwritten(before, touched, version, PARTITIONS)

    for partition in PARTITIONS:
        merged = after.merged(partition, node.mask, node.index)
        if partition in touched:
            assert merged == version
        else:
            assert merged == before.merged(partition, node.mask, node.index)
    assert decode_watermark(encode_watermark(after)) == after
