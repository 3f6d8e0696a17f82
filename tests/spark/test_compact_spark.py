"""Compaction by Spark tasks: the same answer as in this process."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from arcticlake import Lake, Table
from arcticlake.compact.spark import run_on_spark
from arcticlake.verbs import compact as compacting


@pytest.fixture
def lake(spark: SparkSession, warehouse: Path) -> Lake:
    """A lake on the shared session."""
    return Lake.open(str(warehouse), spark=spark)


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compacting, "IN_PROCESS_BYTES_MAX", -1)


def rows(start: int, end: int, text: str) -> pa.Table:
    return pa.table({"id": range(start, end), "text": [text] * (end - start)})


def texts(table: Table, mode: str = "merged") -> dict[int, str]:
    found = table.to_arrow(mode=mode)
    return dict(zip(found["id"].to_pylist(), found["text"].to_pylist(), strict=True))


@pytest.mark.parametrize("sort_by", [[], ["text"]])
def test_tasks_on_spark_give_the_same_rows(lake: Lake, sort_by: list[str]) -> None:
    """CMP-09, CMP-14: tasks of leaves without a lineal relation run at the same time."""
    table = lake.create_table("a.b", "id bigint, text string", primary_key="id", sort_by=sort_by)
    table.insert(rows(0, 2000, "old"))
    table.upsert(rows(1000, 3000, "new"))
    table.upsert(rows(1500, 1600, "newer"))
    expected = {n: "old" if n < 1000 else "new" for n in range(3000)}
    expected |= dict.fromkeys(range(1500, 1600), "newer")

    minor = table.compact("minor")
    major = table.compact("major")

    assert (minor.kind, minor.files_added) == ("minor", 4)
    assert (major.kind, major.files_added) == ("major", 4)
    assert texts(table) == texts(table, "base") == expected
    assert table.read().count() == 3000
    assert table.verify().ok


def test_work_that_is_stopped_leaves_the_table_as_it_was(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of tasks that ended are removed again; nothing was committed."""
    table = lake.create_table("a.b", "id bigint, text string", primary_key="id")
    table.insert(rows(0, 100, "old"))
    table.upsert(rows(50, 150, "new"))
    files = set(Path(table.detail().locations["base"]).rglob("*.parquet"))
    told = iter([None])

    def stop(self: object, pieces: object) -> None:
        if next(told, "stop") == "stop":
            raise KeyboardInterrupt
        take_in(self, pieces)  # type: ignore[arg-type]

    take_in = compacting._Run.done
    monkeypatch.setattr(compacting._Run, "done", stop)

    with pytest.raises(KeyboardInterrupt):
        table.compact("major")

    monkeypatch.undo()
    left = set(Path(table.detail().locations["base"]).rglob("*.parquet")) - files
    assert left == set()
    assert table.detail().backlog.rows == 100
    assert texts(table) == {n: "old" if n < 50 else "new" for n in range(150)}
    assert table.compact("major").kind == "major"


def test_a_task_that_fails_stops_the_others(spark: SparkSession) -> None:
    with pytest.raises(PySparkException):
        run_on_spark(spark, [("not a piece",)], 1, lambda _: None)  # type: ignore[list-item]
