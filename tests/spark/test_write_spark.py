"""Writes from Spark: small frames on the driver, large ones by tasks, one answer."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.types import IcebergType
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from arcticlake import Lake, Table
from arcticlake.errors import InvalidRequest
from arcticlake.ingest import spark as ingest_spark
from arcticlake.table.ddl import type_from_ddl
from arcticlake.tree.hash import key_hash
from arcticlake.tree.spark import hash_column


@pytest.fixture
def lake(spark: SparkSession, warehouse: Path) -> Lake:
    """A lake on the shared session."""
    return Lake.open(str(warehouse), spark=spark)


@pytest.fixture(params=["driver", "tasks"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways that rows can take."""
    if request.param == "tasks":
        monkeypatch.setattr(ingest_spark, "SMALL_BYTES", -1)
    return str(request.param)


def orders(spark: SparkSession, start: int, end: int, status: str) -> DataFrame:
    """Return orders with keys from start to end."""
    return spark.range(start, end).select(
        F.concat(F.lit("ord-"), F.col("id")).alias("order_id"),
        (F.col("id") % 3).cast("int").alias("qty"),
        F.lit(status).alias("status"),
    )


def make(lake: Lake, **options: object) -> Table:
    """Return a table with a text key, which Spark hashes through Arrow."""
    return lake.create_table(
        "shop.orders",
        "order_id string, qty bigint, status string",
        primary_key="order_id",
        **options,  # type: ignore[arg-type]
    )


@pytest.mark.usefixtures("way")
def test_insert_upsert_and_delete_reach_the_table(lake: Lake) -> None:
    table = make(lake)
    spark = lake.spark

    table.insert(orders(spark, 0, 100, "new"))
    changes = orders(spark, 80, 130, "paid").withColumn(
        "op", F.when(F.col("order_id") == "ord-99", "D").otherwise("U")
    )
    committed = table.upsert(
        changes.withColumn("lsn", F.lit(7)), order_by="lsn", delete_when="op = 'D'"
    )
    table.delete(orders(spark, 0, 5, "x").select("order_id"))

    statuses = table.read().groupBy("status").count().collect()
    assert {row.status: row["count"] for row in statuses} == {"new": 75, "paid": 49}
    assert (committed.version, committed.rows, committed.files) == (2, 50, 4)
    assert table.verify().ok


@pytest.mark.usefixtures("way")
def test_what_cannot_be_written_is_refused_before_anything_is_visible(lake: Lake) -> None:
    table = make(lake)
    spark = lake.spark
    table.insert(orders(spark, 0, 10, "new"))
    twice = orders(spark, 0, 10, "a").unionAll(orders(spark, 5, 6, "b"))
    refusals = [
        (twice, {}, "comes twice"),
        (twice.withColumn("lsn", F.lit(1)), {"order_by": "lsn"}, "their order is equal"),
        (orders(spark, 0, 3, "a").withColumn("order_id", F.lit(None).cast("string")), {}, "NULL"),
        (orders(spark, 0, 3, "a").drop("qty"), {}, "lack column qty"),
        (orders(spark, 0, 3, "a").withColumn("statuz", F.lit(1)), {}, "did you mean status"),
        (orders(spark, 0, 3, "a").withColumn("qty", F.lit("many")), {}, "column qty is int64"),
        (orders(spark, 0, 3, "a"), {"order_by": "lsn"}, "order_by names 'lsn'"),
        (orders(spark, 0, 3, "a"), {"delete_when": "op = 'D'"}, "delete_when"),
    ]
    files = len(table.files())

    for frame, options, message in refusals:
        with pytest.raises(InvalidRequest, match=message):
            table.upsert(frame, **options)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match="exists already"):
        table.insert(orders(spark, 9, 12, "again"))

    assert len(table.history()) == 1
    assert files == len(table.files())
    assert table.read().count() == 10


def test_one_file_for_each_leaf_and_commit_however_many_tasks_feed_it(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RTI-04, RTI-05, RTI-08: writers own disjoint shares that cover the tree."""
    monkeypatch.setattr(ingest_spark, "SMALL_BYTES", -1)
    table = make(lake, options={"initial-nodes": 8})

    table.upsert(orders(lake.spark, 0, 5000, "new").repartition(7))

    nodes = [(file["mask"], file["index"]) for file in table.files()]
    assert sorted((7, index) for index in range(8)) == sorted(nodes)


def test_rows_of_a_sorted_table_are_sorted_in_every_file(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KEY-11: order inside files, and between the files of a leaf."""
    monkeypatch.setattr(ingest_spark, "SMALL_BYTES", -1)
    table = make(lake, sort_by=["qty"], options={"initial-nodes": 1, "target-file-size": "1KB"})

    table.insert(orders(lake.spark, 0, 3000, "new").orderBy("status"))

    assert table.verify().ok


VALUES: list[tuple[str, list[object]]] = [
    ("bigint", [0, 1, -1, 2**62, -(2**63)]),
    ("int", [0, 1, -1, 2**31 - 1]),
    ("date", [date(1970, 1, 1), date(2026, 11, 15), date(1900, 2, 28)]),
    ("timestamp_ntz", [datetime(2026, 11, 15, 1, 2, 3, 4), datetime(1969, 1, 1)]),  # noqa: DTZ001
    ("string", ["", "a", "abcd", "äöü", "\U0001f600 x", "x" * 40]),
    ("binary", [b"", b"\x00", b"abcde"]),
    ("decimal(9,2)", [Decimal("0.00"), Decimal("-1.25"), Decimal("9999999.99")]),
    ("decimal(38,10)", [Decimal("1.0000000001"), Decimal("-12345678901234567890.5")]),
]


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=[kind for kind, _ in VALUES])
def test_the_hash_is_the_same_as_a_spark_column(
    spark: SparkSession, kind: str, values: list[object]
) -> None:
    """IDX-02: JVM and Arrow agree on every node."""
    iceberg: IcebergType = type_from_ddl(kind, "k")
    frame = spark.createDataFrame([(value,) for value in values], f"k {kind}")

    hashed = frame.select("k", hash_column(F.col("k"), iceberg).alias("h")).toArrow()

    assert key_hash(hashed.column("k")).tolist() == hashed.column("h").to_pylist()


def test_the_hash_agrees_on_a_hundred_thousand_keys(spark: SparkSession) -> None:
    frame = spark.range(100_000).select((F.xxhash64("id")).alias("k"))

    hashed = frame.select(
        "k", hash_column(F.col("k"), type_from_ddl("bigint", "k")).alias("h")
    ).toArrow()

    assert np.array_equal(key_hash(hashed.column("k")), hashed.column("h").to_numpy())


def test_the_size_of_a_frame_decides_its_way(spark: SparkSession) -> None:
    small = spark.createDataFrame(pa.table({"a": [1, 2, 3]}))
    large = spark.range(100_000_000).select("id", F.lit("text").alias("t"))

    assert ingest_spark.is_small(small)
    assert ingest_spark.is_small(spark.range(1000))
    assert not ingest_spark.is_small(large)
    assert not ingest_spark.is_small(large.crossJoin(large.withColumnRenamed("id", "other")))


def test_rows_that_move_between_partitions_leave_the_old_one(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KUP-03, with a frame that is written by tasks."""
    monkeypatch.setattr(ingest_spark, "SMALL_BYTES", -1)
    table = make(lake, partition_by=["status"])
    table.insert(orders(lake.spark, 0, 40, "new"))

    table.upsert(orders(lake.spark, 30, 50, "paid"), locate=True)

    statuses = table.read().groupBy("status").count().collect()
    assert {row.status: row["count"] for row in statuses} == {"new": 30, "paid": 20}
    assert table.verify().ok
