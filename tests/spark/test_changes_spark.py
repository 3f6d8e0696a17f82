"""Changes as DataFrames: the same answer as without Spark, small and large."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from arcticlake import Lake, Table
from arcticlake.errors import InvalidRequest
from arcticlake.pull.spark import told_struct
from arcticlake.verbs import changes as pulling

REQUESTS: list[dict[str, object]] = [
    {},
    {"since": 1, "until": 3},
    {"since": 4, "until": 4},
    {"mode": "net"},
    {"mode": "base"},
    {"since": 2, "mode": "net", "where": "text = 'new'"},
    {"where": "id % 2 = 0 and text <> 'old'", "columns": ["text"]},
    {"where": "text = 'nobody' and _commit_version > 0"},
    {"where": "_change_type = 'delete'", "columns": ["id"]},
    {"difference": True, "mode": "net"},
]


@pytest.fixture
def lake(spark: SparkSession, warehouse: Path) -> Lake:
    """A lake on the shared session."""
    return Lake.open(str(warehouse), spark=spark)


def rows(start: int, end: int, text: str, day: str = "mon") -> pa.Table:
    count = end - start
    return pa.table({"id": range(start, end), "day": [day] * count, "text": [text] * count})


def make(lake: Lake, *, located: bool) -> Table:
    table = lake.create_table(
        "a.b",
        "id bigint, day string, text string",
        primary_key=["id"] if located else ["id", "day"],
        partition_by="day",
        options={"locate": located},
    )
    table.insert(rows(0, 40, "old"))
    table.upsert(rows(20, 60, "new"))
    table.upsert(rows(30, 35, "moved", "tue"))
    table.delete("id < 5")
    table.compact("major")
    table.overwrite(rows(0, 10, "over"))
    table.upsert(rows(5, 12, "top"))
    return table


def plain(value: object) -> object:
    return value.timestamp() if isinstance(value, datetime) else value


@pytest.mark.parametrize("located", [False, True])
@pytest.mark.parametrize("small", [True, False])
def test_a_frame_has_the_rows_of_arrow_in_their_order(
    lake: Lake, located: bool, small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """INC-01."""
    table = make(lake, located=located)
    if not small:
        monkeypatch.setattr(pulling, "IN_PROCESS_BYTES_MAX", -1)

    for request in REQUESTS[:: 3 if small else 1]:
        where = request.get("where")
        modulo = isinstance(where, str) and "%" in where
        asked = {**request, "where": None, "columns": None} if modulo else request
        expected = table.changes_to_arrow(**asked)  # type: ignore[arg-type]
        found = table.changes(**request)  # type: ignore[arg-type]
        wanted = [
            tuple(map(plain, (row[name] for name in found.columns)))
            for row in expected.to_pylist()
            if not modulo
            or row["_change_type"] == "overwrite"
            or (row["id"] % 2 == 0 and row["text"] not in {"old", None})
        ]
        if not modulo:
            assert found.columns == expected.column_names
        assert [tuple(map(plain, row)) for row in found.collect()] == wanted, request


@pytest.mark.parametrize("small", [True, False])
def test_values_of_every_kind_reach_the_frame(
    lake: Lake, small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = (
        "id bigint, a array<int>, m map<string,bigint>, s struct<x: int, y: string>, "
        "d decimal(10,2), t timestamp, n timestamp_ntz, b binary, f float, day date, ok boolean"
    )
    table = lake.create_table("a.kinds", kinds, primary_key="id")
    moment = datetime(2026, 11, 15, 12, tzinfo=UTC)
    row = {
        "id": 1,
        "a": [1, None],
        "m": {"k": 2},
        "s": {"x": 1, "y": None},
        "d": Decimal("1.50"),
        "t": moment,
        "n": moment.replace(tzinfo=None),
        "b": b"x",
        "f": 1.5,
        "day": moment.date(),
        "ok": True,
    }
    target = table.to_arrow().schema
    table.upsert(pa.Table.from_pylist([row, {"id": 2}], schema=target))
    if not small:
        monkeypatch.setattr(pulling, "IN_PROCESS_BYTES_MAX", -1)

    found = table.changes().drop("_commit_timestamp").toArrow().to_pylist()

    expected = table.changes_to_arrow().drop_columns("_commit_timestamp").to_pylist()
    assert found == expected
    assert found[0]["d"] == row["d"]


def test_large_groups_are_resolved_by_tasks(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(lake, located=False)
    expected = table.changes_to_arrow(mode="net").to_pylist()
    monkeypatch.setattr(pulling, "IN_PROCESS_BYTES_MAX", -1)
    monkeypatch.setattr(pulling, "DRIVER_ROWS_MAX", -1)

    found = table.changes(mode="net").collect()

    assert [(row["id"], row["text"]) for row in found] == [(r["id"], r["text"]) for r in expected]


def test_the_columns_have_the_types_of_a_change_feed(lake: Lake) -> None:
    table = make(lake, located=False)

    schema = table.changes().schema

    assert schema == told_struct(table._opened.pair().spec.schema)
    assert schema.simpleString().endswith(
        "_change_type:string,_commit_version:bigint,_commit_timestamp:timestamp>"
    )


def test_a_condition_that_spark_cannot_judge_is_refused(lake: Lake) -> None:
    table = make(lake, located=False)

    with pytest.raises(InvalidRequest, match=r"a\.b: the condition .* cannot be evaluated"):
        table.changes(where="nobody_knows(text) = 1")
