from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arcticlake.compact.nodes import (
    SPLIT_DEPTH_MAX,
    Event,
    Load,
    Unit,
    descend,
    leaf_loads,
    limits_of,
    overload,
    plan_merges,
    plan_shape,
    split_levels,
)
from arcticlake.tree.files import Role
from arcticlake.tree.node import ROOT, Node
from tests.compact.layout import MB, entry, table
from tests.tree.strategies import nodes

LIMITS = limits_of(table())


def test_a_leaf_weighs_its_own_files_and_its_share_of_those_above() -> None:
    unit = Unit(
        (),
        ROOT,
        (Node(1, 0), Node(3, 1), Node(3, 3)),
        (entry("a", ROOT, size=80), entry("b", Node(3, 1), size=5)),
        (entry("c", Node(1, 1), role=Role.CHANGE, size=10),),
    )

    assert leaf_loads(unit) == {
        Node(1, 0): Load(40, 0),
        Node(3, 1): Load(25, 5),
        Node(3, 3): Load(20, 5),
    }


@settings(max_examples=50)
@given(node=nodes(4), base=st.integers(0, 10**12), change=st.integers(0, 10**12))
def test_a_split_goes_just_deep_enough(node: Node, base: int, change: int) -> None:
    """SPL-07, SPL-10: children are within the limits, one level less would not do."""
    levels = split_levels(node, Load(base, change), LIMITS)

    if node.depth + levels < SPLIT_DEPTH_MAX:
        assert overload(Load(base / 2**levels, change / 2**levels), LIMITS) <= 1
    if levels:
        less = 2 ** (levels - 1)
        assert overload(Load(base / less, change / less), LIMITS) > 1
    if levels <= 6:
        children = descend(node, levels)
        assert sum(node.buckets / child.buckets for child in children) == 1
        assert all(child.lineal(node) for child in children)


def test_a_leaf_at_the_last_depth_is_not_split() -> None:
    assert split_levels(Node(2**16 - 1, 3), Load(10**15, 0), LIMITS) == 0


def test_the_shape_of_a_unit_splits_only_leaves_over_their_limit() -> None:
    """SPL-08."""
    unit = Unit(
        (7,),
        Node(1, 0),
        (Node(3, 0), Node(3, 2)),
        (entry("a", Node(3, 0), size=500 * MB), entry("b", Node(3, 2), size=90 * MB)),
        (),
    )

    shape = plan_shape(unit, LIMITS)

    assert shape.outputs == (Node(3, 2), Node(7, 0), Node(7, 4))
    assert shape.events == (Event("split", (7,), Node(3, 0), (Node(7, 0), Node(7, 4))),)


def test_a_sort_key_lets_leaves_grow_and_a_written_size_is_taken_as_it_is() -> None:
    """SPL-02, SPL-05: range split first."""
    assert LIMITS.leaf == 400 * MB
    assert limits_of(table(sort=["v"])).leaf == 1600 * MB
    assert limits_of(table(sort=["v"], leaf_size="50MB")).leaf == 50 * MB


def test_small_siblings_merge_back_and_one_level_at_a_time() -> None:
    """SPL-13."""
    sizes = {Node(7, 0): 10.0 * MB, Node(7, 4): 10.0 * MB, Node(3, 2): 10.0 * MB}

    once = plan_merges(sizes, sizes, LIMITS, repeat=False)
    fully = plan_merges(sizes, sizes, LIMITS, repeat=True)

    assert once == {Node(3, 0): (Node(7, 0), Node(7, 4))}
    assert fully == {Node(1, 0): (Node(3, 2), Node(7, 0), Node(7, 4))}


def test_nothing_merges_above_the_initial_depth() -> None:
    sizes = {Node(1, 0): 1.0, Node(1, 1): 1.0}

    assert plan_merges(sizes, sizes, LIMITS, repeat=True) == {}


@pytest.mark.parametrize(
    ("sizes", "occupied", "merges"),
    [
        ({Node(3, 0): 60.0 * MB, Node(3, 2): 60.0 * MB}, [], False),
        ({Node(3, 0): 60.0 * MB}, [Node(3, 2)], False),
        ({Node(3, 0): 60.0 * MB}, [Node(7, 6)], False),
        ({Node(3, 0): 60.0 * MB}, [Node(3, 1)], True),
    ],
    ids=["too large together", "sibling not free", "files below the sibling", "sibling empty"],
)
def test_a_merge_needs_a_small_or_empty_sibling(
    sizes: dict[Node, float], occupied: list[Node], merges: bool
) -> None:
    """SPL-13."""
    assert bool(plan_merges(sizes, [*sizes, *occupied], LIMITS, repeat=True)) is merges


def test_events_read_as_sentences() -> None:
    children = (Node(7, 1), Node(7, 5))

    assert str(Event("split", (), Node(3, 1), children)) == "split 3/1 into 7/1 7/5"
    assert str(Event("merge", (), Node(3, 1), children)) == "merge 7/1 7/5 into 3/1"
