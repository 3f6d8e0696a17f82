"""The driver's half of writeStream.format("arctic"), without Spark: jobs, commits, refusals."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import DecimalType, IntegerType, LongType, StringType, StructType

from arcticlake import Lake, Table
from arcticlake.errors import InvalidRequest
from arcticlake.ingest.job import Written
from arcticlake.ingest.once import Once
from arcticlake.ingest.parquet import TreeWriter
from arcticlake.stream.sink import SinkJob, rows_to_write
from arcticlake.stream.spark_sink import commit_batch, plan_sink
from tests.verbs.shop import NAME, orders, rows

STRUCT = (
    StructType()
    .add("order_id", LongType())
    .add("status", StringType())
    .add("amount", DecimalType(12, 2))
    .add("qty", IntegerType())
)


def options(warehouse: Path, **more: str) -> dict[str, str]:
    return {"path": NAME, "warehouse": str(warehouse), **more}


def ids(table: Table) -> list[int]:
    return sorted(table.to_arrow()["order_id"].to_pylist())


def written(job: SinkJob, batch: pa.Table) -> Written:
    writer = TreeWriter(job.write)
    writer.write(rows_to_write(batch, job, 5))
    return writer.finish()


def test_a_batch_that_comes_again_adds_no_version_and_leaves_no_file(
    lake: Lake, warehouse: Path
) -> None:
    """RTI-09: Spark runs the tasks of a batch again when it does not know that it landed."""
    table = orders(lake)
    asked = options(warehouse)
    job = plan_sink(asked, STRUCT)
    once = Once("query", 0)
    commit_batch(asked, job, written(job, rows([1, 2])), once, writers=1)
    again = written(job, rows([1, 2]))

    commit_batch(asked, job, again, once, writers=1)

    assert ids(table) == [1, 2]
    assert len(table.history()) == 1
    assert not any(Path(file.path.removeprefix("file://")).exists() for file in again.files)
    assert table.verify().ok


def test_a_key_of_two_tasks_needs_an_order(lake: Lake, warehouse: Path) -> None:
    table = orders(lake, primary_key=())
    asked = options(warehouse)
    job = plan_sink(asked, STRUCT)
    commit_batch(asked, job, written(job, rows([1, 1])), Once("query", 0), writers=1)
    assert ids(table) == [1, 1], "a table without a key takes rows as they come"

    lake.drop_table(NAME)
    table = orders(lake)
    ordered = options(warehouse, order_by="lsn")
    job = plan_sink(ordered, StructType([*STRUCT.fields]).add("lsn", LongType()))
    parts = [
        written(job, rows([7], status).append_column("lsn", pa.array([5])))
        for status in ("paid", "sent")
    ]
    both = Written(tuple(file for part in parts for file in part.files), None)
    with pytest.raises(InvalidRequest, match="nothing was written"):
        commit_batch(ordered, job, both, Once("query", 1), writers=2)
    assert table.history() == []
    assert not any(Path(file.path.removeprefix("file://")).exists() for file in both.files)


def test_tables_that_need_a_look_up_are_refused_at_the_start(lake: Lake, warehouse: Path) -> None:
    orders(lake, partition_by=["status"], options={"locate": True})

    with pytest.raises(InvalidRequest, match=r"shop\.orders.*cannot look rows up.*stream_upsert"):
        plan_sink(options(warehouse), STRUCT)


def test_columns_that_the_table_lacks_are_refused_at_the_start(lake: Lake, warehouse: Path) -> None:
    orders(lake)

    with pytest.raises(InvalidRequest, match="colour"):
        plan_sink(options(warehouse), StructType([*STRUCT.fields]).add("colour", StringType()))
