"""Whole batches put right, against the source applied change by change."""

from __future__ import annotations

from random import Random

import polars as pl
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from arcticlake.stream.cdc_plan import PLACED, SPLIT, TRUNCATE
from arcticlake.stream.cdc_split import (
    after_truncate,
    drop_replaced,
    fill_places,
    understood,
    unplaced_keys,
)
from arcticlake.table.change import ACTION, ORDER
from arcticlake.tree.hash import PlaceTerm
from tests.stream.source import Change, Row, Source, act

KEY = ("id",)
DAY = (PlaceTerm("day", "identity", 0, "day"),)
SCHEMA = pa.schema(
    {"id": pa.int64(), "day": pa.string(), "v": pa.string(), ACTION: pa.string()}
    | {ORDER: pa.int64(), PLACED: pa.bool_(), SPLIT: pa.bool_()}
)
NOBODY: Row = {"id": None, "day": None, "v": None}


def rows_of(log: list[Change], *, by_day: bool) -> pa.Table:
    """The split of `cdc_plan`, said in Python."""
    rows = []
    for change in log:
        old, new = change.before, change.after
        moved = old and new and (old["id"] != new["id"] or (by_day and old["day"] != new["day"]))
        note = {PLACED: True, SPLIT: bool(moved)}
        if change.op == "d" or moved:
            deleted = {ACTION: "-D", ORDER: 2 * change.position, PLACED: True, SPLIT: bool(moved)}
            rows.append({**(old or NOBODY), **deleted})
        if change.op == "t":
            rows.append({**NOBODY, ACTION: TRUNCATE, ORDER: 2 * change.position + 1, **note})
        if new:
            action = "+I" if change.op == "c" else "+U"
            rows.append({**new, ACTION: action, ORDER: 2 * change.position + 1, **note})
    return pa.Table.from_pylist(rows, SCHEMA)


def applied(before: dict[int, Row], rows: pa.Table, *, by_day: bool) -> dict[int, Row]:
    """What a reader sees: in every place the newest row of a key wins; a key lives once."""
    live = {(n, row["day"] if by_day else None): row for n, row in before.items()}
    for row in sorted(rows.to_pylist(), key=lambda row: row[ORDER]):
        place = (row["id"], row["day"] if by_day else None)
        live.pop(place, None)
        if row[ACTION].startswith("+"):
            live[place] = {name: row[name] for name in ("id", "day", "v")}
    by_id = {n: row for (n, _), row in live.items()}
    assert len(by_id) == len(live), "a key lives in two partitions"
    return by_id


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), by_day=st.booleans(), truncates=st.booleans())
def test_batches_follow_the_source_through_swaps_and_cycles(
    seed: int, by_day: bool, truncates: bool
) -> None:
    """KUP-01..05: keys that swap, rotate, come back and take the place of others."""
    source, chance = Source(), Random(seed)
    seen: dict[int, Row] = {}
    for batch in range(3):
        for _ in range(chance.randrange(1, 25)):
            act(source, chance)
        if truncates and batch == 1:
            source.truncate()
            act(source, chance)
        rows, cut = after_truncate(understood(rows_of(source.take(), by_day=by_day)))
        alive = pa.Table.from_pylist([] if cut else list(seen.values()), SCHEMA)
        rows = drop_replaced(rows, KEY, DAY if by_day else (), alive)

        seen = applied({} if cut else seen, rows, by_day=by_day)

        assert seen == source.rows


def test_a_split_delete_that_means_its_row_stays() -> None:
    source = Source()
    source.insert(1, "a", "x")
    source.update(1, id=2)
    source.update(2, id=1, v="back")
    rows = rows_of(source.take(), by_day=False)

    assert drop_replaced(rows, KEY, ()).equals(rows)


def test_columns_that_a_source_leaves_out_prove_nothing() -> None:
    """PostgreSQL sends NULL for all but the key; then the order of messages decides."""
    log = [
        Change("c", 1, None, {"id": 1, "day": "a", "v": "x"}),
        Change("u", 2, {"id": 1, "day": None, "v": None}, {"id": 2, "day": "a", "v": "y"}),
    ]
    rows = rows_of(log, by_day=False)

    assert drop_replaced(rows, KEY, ()).num_rows == 3


def lost(number: int, order: int) -> Row:
    return {**NOBODY, "id": number, ACTION: "-D", ORDER: order, PLACED: False, SPLIT: False}


def test_deletes_take_the_partition_of_the_row_before_them() -> None:
    """KUP-03: from the batch first, else from the table; a delete of nothing is dropped."""
    put = {"id": 1, "day": "b", "v": "x", ACTION: "+U", ORDER: 3, PLACED: True, SPLIT: False}
    rows = pa.Table.from_pylist([lost(2, 1), put, lost(1, 4), lost(9, 5)], SCHEMA)
    found = pl.DataFrame({"id": [1, 2], "day": ["a", "c"]})

    asked = unplaced_keys(rows, KEY)
    filled = fill_places(rows, KEY, ["day"], found).to_pylist()

    assert sorted(asked["id"].to_list()) == [2, 9]
    assert [(row["id"], row["day"]) for row in filled] == [(2, "c"), (1, "b"), (1, "b")]
