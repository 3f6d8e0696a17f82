"""The words of a change feed."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa

from arcticlake.pull.columns import (
    ENDS,
    RANK,
    change_types,
    overwrite_row,
    tell,
    told_schema,
    travel_schema,
)

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False)])


def test_actions_have_the_names_of_a_change_feed() -> None:
    """PAC-09: +I is an insert, -D a delete; a row of a batch has no action."""
    actions = pa.array(["+I", "-U", "+U", "-D", None])

    assert change_types(actions).to_pylist() == [
        *("insert", "update_preimage", "update_postimage", "delete", "insert")
    ]


def test_rows_on_their_way_know_their_commit_and_whether_they_end_a_key() -> None:
    types = pa.array(["insert", "delete", "update_preimage"])
    order = pa.array([1, 2, 3], pa.int64())

    rows = tell([pa.array([7, 8, 9])], types, order, (4, 1500, 2), SCHEMA).to_pylist()

    assert [row["id"] for row in rows] == [7, 8, 9]
    assert {(row["_commit_version"], row[RANK]) for row in rows} == {(4, 2)}
    assert rows[0]["_commit_timestamp"] == datetime(1970, 1, 1, 0, 0, 1, 500000, UTC)
    assert [row[ENDS] for row in rows] == [False, True, True]


def test_an_overwrite_is_one_row_without_values() -> None:
    (row,) = overwrite_row(3, 0, SCHEMA).to_pylist()

    assert (row["id"], row["_change_type"], row["_commit_version"]) == (None, "overwrite", 3)


def test_an_answer_has_business_columns_first_and_then_three() -> None:
    assert told_schema(SCHEMA).names == [
        *("id", "_change_type", "_commit_version", "_commit_timestamp")
    ]
    assert told_schema(SCHEMA).field("id").nullable
    assert travel_schema(SCHEMA).names[:4] == told_schema(SCHEMA).names
