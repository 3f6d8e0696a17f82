"""Merging against the obvious answer: put all rows together and sort them."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from arcticlake.compact.merge import merge_sorted
from arcticlake.ingest.place import sort_rows

ROWS = st.lists(
    st.tuples(st.none() | st.integers(0, 5), st.sampled_from([None, 0.5, 1.5, float("nan")])),
    max_size=30,
)


def table(rows: list[tuple[int | None, float | None]]) -> pa.Table:
    return pa.table(
        {
            "n": pa.array([n for n, _ in rows], pa.int64()),
            "f": pa.array([f for _, f in rows], pa.float64()),
        }
    )


def in_pieces(rows: pa.Table, size: int) -> Iterator[pa.Table]:
    for start in range(0, max(1, rows.num_rows), size):
        yield rows.slice(start, size)


@given(
    drawn=st.lists(ROWS, max_size=5),
    piece=st.integers(1, 10),
    at_hand=st.integers(1, 200),
)
def test_streams_come_out_as_if_all_rows_were_sorted_at_once(
    drawn: list[list[tuple[int | None, float | None]]], piece: int, at_hand: int
) -> None:
    sort = ["n", "f"]
    tables = [sort_rows(table(rows), sort) for rows in drawn]

    merged = list(merge_sorted([in_pieces(rows, piece) for rows in tables], sort, at_hand))

    expected = sort_rows(pa.concat_tables([table([]), *tables]), sort)
    assert str(pa.concat_tables([table([]), *merged]).to_pylist()) == str(expected.to_pylist())


def test_one_value_in_all_rows_goes_through_in_bounded_steps() -> None:
    same = pa.table({"n": [7] * 10_000})

    merged = list(merge_sorted([in_pieces(same, 100), in_pieces(same, 100)], ["n"], 800))

    assert sum(rows.num_rows for rows in merged) == 20_000
    assert max(rows.num_rows for rows in merged) <= 400


def test_streams_that_lie_behind_each_other_are_not_mixed() -> None:
    low, high = pa.table({"n": range(100)}), pa.table({"n": range(100, 200)})

    merged = list(merge_sorted([in_pieces(low, 10), in_pieces(high, 10)], ["n"], 80))

    assert pa.concat_tables(merged)["n"].to_pylist() == list(range(200))


def test_tables_without_rows_are_passed_over() -> None:
    """An empty table of text has some bytes all the same."""
    few = pa.table({"n": ["a", "b"]})

    merged = list(merge_sorted([iter([few.slice(0, 0), few]), iter([few])], ["n"], 0))

    assert pa.concat_tables(merged)["n"].to_pylist() == ["a", "a", "b", "b"]
