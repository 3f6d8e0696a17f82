"""readStream.format("arctic") with real Spark: checkpoints, restarts, types, chained tables."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from arcticlake import Lake, Table

SCHEMA = "order_id bigint, status string, amount decimal(12,2), day date, tags array<string>"
TODAY = date(2026, 11, 15)


@pytest.fixture
def lake(spark: SparkSession, warehouse: Path) -> Lake:
    return Lake.open(str(warehouse), spark=spark)


@pytest.fixture
def table(lake: Lake) -> Table:
    one_file = {"initial-nodes": 1}
    return lake.create_table("shop.orders", SCHEMA, primary_key="order_id", options=one_file)


def orders(ids: list[int], status: str = "new") -> list[dict[str, object]]:
    rest = {"amount": None, "day": TODAY, "tags": ["a", None]}
    return [{"order_id": n, "status": status} | rest for n in ids]


def stream(spark: SparkSession, warehouse: Path, **options: str) -> DataFrame:
    reader = spark.readStream.format("arctic").option("warehouse", str(warehouse))
    return reader.options(**options).load("shop.orders")


def run(frame: DataFrame, place: Path) -> int:
    """Append what is there to a folder, end, and return how many batches had rows."""
    query = (
        frame.writeStream.format("parquet")
        .option("path", str(place / "out"))
        .option("checkpointLocation", str(place / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return sum(progress.numInputRows > 0 for progress in query.recentProgress)


def told(spark: SparkSession, place: Path) -> list[tuple[str, int, str]]:
    rows = spark.read.parquet(str(place / "out")).collect()
    return sorted((row["_change_type"], row["order_id"], row["status"]) for row in rows)


def test_a_stream_reads_on_after_a_restart(
    spark: SparkSession, table: Table, warehouse: Path, tmp_path: Path
) -> None:
    """INC-02, INC-06, INC-37: everything, then changes; compaction and a new column between."""
    table.insert(orders([1, 2, 3]))
    table.upsert(orders([2], "paid"))
    assert run(stream(spark, warehouse, consumer="copy"), tmp_path) == 1
    table.compact("full")
    table.add_column("note", "string")
    table.upsert([row | {"note": "!"} for row in orders([3, 4], "sent")])
    table.delete("order_id = 1")
    limited = stream(spark, warehouse, consumer="copy", maxFilesPerTrigger="1")
    assert run(limited, tmp_path) == 2
    assert run(limited, tmp_path) == 0

    assert [(kind, n) for kind, n, _ in told(spark, tmp_path)] == [
        *(("delete", 1), ("insert", 1), ("insert", 2), ("insert", 3)),
        *(("update_postimage", 3), ("update_postimage", 4)),
    ]
    rows = spark.read.option("mergeSchema", "true").parquet(str(tmp_path / "out"))
    first = rows.where("order_id = 2").collect()[0]
    assert (first["status"], first["day"], first["tags"]) == ("paid", TODAY, ["a", None])
    assert rows.where("note = '!'").count() == 2
    (consumer,) = table.consumers()
    assert (consumer.name, consumer.version) == ("copy", table.history()[0].version)


def test_a_table_feeds_another_by_the_order_of_changes(
    spark: SparkSession, lake: Lake, table: Table, warehouse: Path, tmp_path: Path
) -> None:
    """INC-05: a table that takes the changes of another one equals it."""
    copy = lake.create_table("shop.copy", SCHEMA, primary_key="order_id")

    def feed() -> None:
        copy.stream_upsert(
            stream(spark, warehouse, order="true").drop("_commit_version", "_commit_timestamp"),
            checkpoint=str(tmp_path / "cp"),
            trigger="available-now",
            order_by="_change_order",
            delete_when="_change_type = 'delete'",
        ).awaitTermination()

    table.insert(orders([1, 2, 3]))
    feed()
    table.upsert(orders([2, 5], "paid"))
    table.delete("order_id = 3")
    table.upsert(orders([2], "sent"))
    feed()
    assert copy.to_arrow().sort_by("order_id").equals(table.to_arrow().sort_by("order_id"))


def test_what_a_stream_cannot_do_is_told_by_its_error(
    spark: SparkSession, table: Table, warehouse: Path, tmp_path: Path
) -> None:
    """INC-09, INC-11: before the start where it can be, else the query fails."""
    table.upsert(orders([1]))
    with pytest.raises(PySparkException, match="INC-11"):
        stream(spark, warehouse, until="7")
    with pytest.raises(PySparkException, match="no version 7 yet"):
        run(stream(spark, warehouse, since="7"), tmp_path)
