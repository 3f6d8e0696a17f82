"""A large batch is written by the JVM itself and keeps every rule of the table."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from arcticlake import Lake, Table
from arcticlake.errors import InvalidRequest
from arcticlake.ingest import parquet_check, spark_load
from arcticlake.ingest import spark as ingest_spark

SCHEMA = (
    "id bigint, name string not null, price decimal(12,2), at timestamp, local timestamp_ntz, "
    "day date, ok boolean, few int"
)


@pytest.fixture
def lake(spark: SparkSession, warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A lake in which every Spark frame counts as large."""
    monkeypatch.setattr(ingest_spark, "SMALL_BYTES", -1)
    return Lake.open(str(warehouse), spark=spark)


def rows(spark: SparkSession, start: int, end: int) -> DataFrame:
    """Return rows of every plain type."""
    return spark.range(start, end).select(
        "id",
        F.concat(F.lit("né "), F.col("id")).alias("name"),
        (F.col("id") / 4).cast("decimal(12,2)").alias("price"),
        F.timestamp_seconds("id").alias("at"),
        F.timestamp_seconds("id").cast("timestamp_ntz").alias("local"),
        F.date_from_unix_date(F.col("id").cast("int")).alias("day"),
        (F.col("id") % 2 == 0).alias("ok"),
        (F.col("id") % 3).cast("int").alias("few"),
    )


def make(lake: Lake, **options: object) -> Table:
    """Return a table that a load fits."""
    return lake.create_table("a.b", SCHEMA, primary_key="id", options=options)


def test_a_load_reads_back_whole_and_verifies(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """BAT-02: rows lie in their leaf; the slow way, through Python, gives the same table."""
    table = make(lake)
    frame = rows(lake.spark, 0, 2000).repartition(3)

    done = table.insert(frame)
    monkeypatch.setattr(spark_load, "FILES_PER_LEAF_MAX", 0)
    slow = lake.create_table("a.slow", SCHEMA, primary_key="id")
    slow.insert(frame)

    assert (done.version, done.rows) == (1, 2000)
    assert table.to_arrow().sort_by("id").equals(slow.to_arrow().sort_by("id"))
    assert table.read().exceptAll(slow.read()).count() == 0
    assert table.verify().ok
    files = [Path(str(file["path"])) for file in table.files()]
    assert {path.suffix for path in files[0].parent.iterdir()} == {".parquet"}
    assert pq.read_schema(files[0]).field("at").metadata[b"PARQUET:field_id"] == b"4"
    assert pq.read_metadata(files[0]).row_group(0).column(0).compression == "ZSTD"


def test_a_load_follows_leaves_of_different_depth(lake: Lake) -> None:
    table = make(lake, **{"leaf-commit-size": "1KB", "initial-nodes": 2})
    table.upsert(rows(lake.spark, 0, 4000).coalesce(1))
    depths = {leaf.mask for leaf in table.tree().leaves}

    table.insert(rows(lake.spark, 5000, 6000))

    assert len(depths) >= 1
    assert table.verify().ok
    assert table.read().count() == 5000


def test_what_breaks_a_rule_is_refused_and_leaves_nothing(lake: Lake) -> None:
    table = make(lake)
    frame = rows(lake.spark, 0, 100)
    nameless = frame.withColumn("name", F.when(F.col("id") != 7, F.col("name")))

    for bad, message in (
        (frame.unionAll(rows(lake.spark, 5, 6)), "id=5 comes twice"),
        (nameless, "NULL in name; the column is NOT NULL"),
        (frame.withColumn("id", F.when(F.col("id") != 7, F.col("id"))), "NULL in id"),
    ):
        with pytest.raises(InvalidRequest, match=message):
            table.insert(bad)

    assert table.history() == []
    assert table.files() == []


def test_the_session_gets_its_settings_back(lake: Lake) -> None:
    before = {name: lake.spark.conf.get(name, None) for name in spark_load._SETTINGS}

    make(lake).insert(rows(lake.spark, 0, 10))

    assert {name: lake.spark.conf.get(name, None) for name in spark_load._SETTINGS} == before
    assert parquet_check._READERS > 0
