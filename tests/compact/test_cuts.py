from __future__ import annotations

import math
from bisect import bisect_right
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arcticlake.compact.cuts import cut_evenly, part_of


@settings(max_examples=60)
@given(
    values=st.lists(st.none() | st.integers(-5, 5), max_size=30),
    cuts=st.lists(st.integers(-5, 5), max_size=4, unique=True).map(sorted),
)
def test_a_value_falls_into_the_part_that_its_cuts_open(
    values: list[int | None], cuts: list[int]
) -> None:
    """HSH-05: equal values share a part, NULL comes first."""
    parts = part_of(pa.array(values, pa.int64()), pa.array(cuts, pa.int64()))

    assert parts.tolist() == [0 if v is None else bisect_right(cuts, v) for v in values]


def test_nan_comes_last_and_null_first_as_in_a_sort() -> None:
    values = pa.array([math.nan, None, -1.0, 7.0])

    assert part_of(values, pa.array([0.0, 5.0])).tolist() == [2, 0, 0, 2]


@settings(max_examples=60)
@given(values=st.lists(st.none() | st.integers(0, 9), max_size=60), parts=st.integers(1, 6))
def test_even_cuts_leave_no_part_empty(values: list[int | None], parts: int) -> None:
    sample = pa.array(values, pa.int64())
    cuts = cut_evenly(sample, parts)
    known = sample.drop_null()

    assert len(cuts) < parts
    if len(known):
        assert set(part_of(known, cuts).tolist()) == set(range(len(cuts) + 1))


def test_even_cuts_share_different_values_evenly() -> None:
    cuts = cut_evenly(pa.array(range(1000)), 4)

    assert cuts.to_pylist() == [250, 500, 750]


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["a", "b", "c", "d"]),
        pa.array([Decimal("1.5"), Decimal("2.5"), Decimal("3.5"), Decimal("4.5")]),
        pa.array([1, 2, 3, 4], pa.timestamp("us", "UTC")),
        pa.array([b"a", b"b", b"c", b"d"]),
        pa.array([math.nan, 1.0, 2.0, 3.0, 4.0]).slice(1),
    ],
    ids=lambda values: str(values.type),
)
def test_every_type_of_key_can_be_cut(values: pa.Array) -> None:
    cuts = cut_evenly(values, 2)

    assert part_of(values, cuts).tolist() == [0, 0, 1, 1]
