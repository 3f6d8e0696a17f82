"""Streams with real Spark: restarts, crashes, two queries, and what is refused before the start.

Input is a folder of JSON files; every file that is there when a query starts is one batch.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from arcticlake import Lake, Table
from arcticlake.errors import InvalidRequest
from arcticlake.ingest.iceberg import Committed
from arcticlake.stream import spark_size
from arcticlake.stream.spark_source import ArcticSource
from arcticlake.verbs import stream as streaming
from tests.verbs.shop import statuses

SCHEMA = "order_id bigint, status string, qty int"
LOG = f"{SCHEMA}, op string, lsn bigint"


@pytest.fixture
def lake(spark: SparkSession, warehouse: Path) -> Lake:
    return Lake.open(str(warehouse), spark=spark)


@pytest.fixture
def table(lake: Lake) -> Table:
    return lake.create_table("shop.orders", SCHEMA, primary_key="order_id")


class Inbox:
    """A folder that a stream reads, one file a batch."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.count = 0

    def put(self, rows: Sequence[tuple[object, ...]], names: str = SCHEMA) -> None:
        """Add a file; names are matched to the values in order."""
        columns = [part.split()[0] for part in names.split(", ")]
        lines = [json.dumps(dict(zip(columns, row, strict=True))) for row in rows]
        self.count += 1
        draft = self.folder / f".{self.count:03}.json"
        draft.write_text("\n".join(lines), encoding="utf-8")
        moment = 1_790_000_000 + self.count  # Spark takes files by their age
        os.utime(draft, (moment, moment))
        draft.rename(self.folder / f"{self.count:03}.json")

    def stream(self, spark: SparkSession, names: str = SCHEMA) -> DataFrame:
        reader = spark.readStream.schema(names).option("maxFilesPerTrigger", 1)
        return reader.json(str(self.folder))


@pytest.fixture
def inbox(tmp_path: Path) -> Inbox:
    return Inbox(tmp_path / "inbox")


def run(table: Table, frame: DataFrame, checkpoint: Path, **options: object) -> None:
    """Take all that is there, and end."""
    query = table.stream_upsert(
        frame,
        checkpoint=str(checkpoint),
        trigger="available-now",
        **options,  # type: ignore[arg-type]
    )
    query.awaitTermination()


@pytest.mark.parametrize("way", ["driver", "tasks", "wrong guess"])
def test_a_stopped_stream_goes_on_where_it_was(
    way: str, table: Table, inbox: Inbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TRI-01, RTI-01, RTI-20; batches of both sizes, and batches that were guessed wrong."""
    if way != "driver":
        monkeypatch.setattr(spark_size, "ROWS_SMALL", -1 if way == "tasks" else 1)
        monkeypatch.setattr(spark_size, "BYTES_SMALL", 0)
    spark = table._opened.session()
    inbox.put([(1, "new", 1), (2, "new", 1)])
    inbox.put([(2, "paid", 2)])
    run(table, inbox.stream(spark), tmp_path / "cp")
    inbox.put([(3, "new", 1), (1, "sent", 1)])

    run(table, inbox.stream(spark), tmp_path / "cp")
    run(table, inbox.stream(spark), tmp_path / "cp")

    assert statuses(table) == {1: "sent", 2: "paid", 3: "new"}
    assert [entry.version for entry in table.history()] == [3, 2, 1], "one version a batch"
    assert table.verify().ok


def test_a_batch_whose_driver_dies_after_the_commit_is_not_repeated(
    table: Table, inbox: Inbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RTI-09, RTI-20: Spark does not know that the batch landed, the table does."""
    spark = table._opened.session()
    inbox.put([(1, "new", 1)])
    inbox.put([(2, "new", 1)])

    def die(_: object, done: Committed) -> Committed:
        raise SystemError(f"died after version {done.version}")

    with monkeypatch.context() as patch:
        patch.setattr(streaming, "after_write", die)
        with pytest.raises(StreamingQueryException, match="died after version 1"):
            run(table, inbox.stream(spark), tmp_path / "cp")
    run(table, inbox.stream(spark), tmp_path / "cp")

    assert statuses(table) == {1: "new", 2: "new"}
    assert len(table.history()) == 2


def test_order_and_deletes_come_from_columns_of_the_stream(
    table: Table, inbox: Inbox, tmp_path: Path
) -> None:
    spark = table._opened.session()
    inbox.put([(1, "b", 1, "U", 12), (1, "a", 1, "U", 11), (2, "x", 1, "U", 13)], LOG)
    inbox.put([(2, "x", 1, "D", 14)], LOG)

    run(
        table,
        inbox.stream(spark, LOG),
        tmp_path / "cp",
        order_by="lsn",
        delete_when="op = 'D'",
        query_name="orders",
    )

    assert statuses(table) == {1: "b"}


def test_a_key_twice_in_a_batch_without_an_order_stops_the_stream(
    table: Table, inbox: Inbox, tmp_path: Path
) -> None:
    spark = table._opened.session()
    inbox.put([(1, "a", 1), (1, "b", 1)])

    with pytest.raises(StreamingQueryException, match="comes twice in the rows; give order_by"):
        run(table, inbox.stream(spark), tmp_path / "cp")

    assert table.history() == []
    assert table.files() == []


def test_two_streams_feed_one_table_and_compaction_comes_between(
    table: Table, inbox: Inbox, tmp_path: Path
) -> None:
    spark = table._opened.session()
    other = Inbox(tmp_path / "other")
    inbox.put([(1, "new", 1)])
    other.put([(2, "new", 1)])
    run(table, inbox.stream(spark), tmp_path / "cp")
    run(table, other.stream(spark), tmp_path / "cp2")
    table.compact("major")
    table.set_options({"compact-after-write": True})
    inbox.put([(1, "paid", 1)])
    other.put([(3, "new", 1)])

    run(table, inbox.stream(spark), tmp_path / "cp")
    run(table, other.stream(spark), tmp_path / "cp2")

    assert statuses(table) == {1: "paid", 2: "new", 3: "new"}
    assert [entry.kind for entry in table.history()].count("upsert") == 4
    assert table.verify().ok


def test_a_table_without_a_key_takes_every_row_once(
    lake: Lake, inbox: Inbox, tmp_path: Path
) -> None:
    """NPK-01: rows of a stream are inserted."""
    table = lake.create_table("shop.events", SCHEMA)
    inbox.put([(1, "seen", 1), (1, "seen", 1)])
    run(table, inbox.stream(lake.spark), tmp_path / "cp")
    inbox.put([(1, "seen", 1)])
    run(table, inbox.stream(lake.spark), tmp_path / "cp")

    assert table.to_arrow().num_rows == 3
    assert len(table.history()) == 2


def test_an_aggregate_keeps_its_table_up_to_date(lake: Lake, inbox: Inbox, tmp_path: Path) -> None:
    """RTI-03: only groups that changed are written."""
    totals = lake.create_table("shop.totals", "status string, n bigint", primary_key="status")
    spark = lake.spark

    def counted() -> DataFrame:
        return inbox.stream(spark).groupBy("status").agg(F.count("*").alias("n"))

    inbox.put([(1, "new", 1), (2, "new", 1), (3, "paid", 1)])
    run(totals, counted(), tmp_path / "cp")
    inbox.put([(4, "new", 1)])
    run(totals, counted(), tmp_path / "cp")

    found = {row["status"]: row["n"] for row in totals.to_arrow().to_pylist()}
    assert found == {"new": 3, "paid": 1}
    assert totals.history()[0].rows == 1


def test_what_cannot_work_is_refused_before_the_query_starts(
    lake: Lake, table: Table, inbox: Inbox, tmp_path: Path
) -> None:
    spark = lake.spark
    stream = inbox.stream(spark)
    keyless = lake.create_table("shop.events", SCHEMA)
    placed = lake.create_table(
        "shop.placed", SCHEMA, primary_key="order_id", partition_by=["status"]
    )
    cp = str(tmp_path / "cp")
    refusals: list[tuple[Callable[[], object], str]] = [
        (lambda: table.stream_upsert(spark.range(1), checkpoint=cp), "not streaming; use upsert"),
        (lambda: table.stream_upsert([{"order_id": 1}], checkpoint=cp), "list is no stream"),
        (lambda: table.stream_upsert(stream, checkpoint=" "), "checkpoint is ' '"),
        (lambda: table.stream_upsert(stream, checkpoint=cp, trigger="once"), "trigger 'once'"),
        (lambda: table.stream_upsert(stream.drop("qty"), checkpoint=cp), "lack column qty"),
        (lambda: table.stream_upsert(stream, checkpoint=cp, order_by="lsn"), "order_by names"),
        (lambda: table.stream_upsert(stream, checkpoint=cp, delete_when="op"), "delete_when"),
        (lambda: keyless.stream_upsert(stream, checkpoint=cp, order_by="qty"), "no primary key"),
        (lambda: placed.stream_upsert(stream, checkpoint=cp), "locate=True"),
    ]

    for start, message in refusals:
        with pytest.raises(InvalidRequest, match=message):
            start()

    assert not Path(cp).exists()
    assert spark.streams.active == []


def run_format(lake: Lake, frame: DataFrame, checkpoint: Path, **options: str) -> None:
    """The same through the thin door."""
    writer = frame.writeStream.format(ArcticSource.name()).options(**options)
    writer = writer.option("warehouse", lake.catalog.properties["warehouse"])
    writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    writer.start("shop.orders").awaitTermination()


def test_the_format_takes_every_batch_once_too(
    lake: Lake, table: Table, inbox: Inbox, tmp_path: Path
) -> None:
    """RTI-09: tasks write, one committer commits, a repeated batch is recognised."""
    inbox.put([(1, "b", 1, "U", 12), (1, "a", 1, "U", 11), (2, "x", 1, "U", 13)], LOG)
    rules = {"order_by": "lsn", "delete_when": "op = 'D'"}
    stream = inbox.stream(lake.spark, LOG)
    run_format(lake, stream, tmp_path / "cp", **rules)
    inbox.put([(2, "x", 1, "D", 14)], LOG)
    run_format(lake, stream, tmp_path / "cp", **rules)
    # Spark forgets that the last batch was committed, as after a crash of the driver.
    for commit in (tmp_path / "cp" / "commits").glob("*1*"):
        commit.unlink()
    run_format(lake, stream, tmp_path / "cp", **rules)

    assert (tmp_path / "cp" / "commits" / "1").exists(), "the batch was run again"
    assert statuses(table) == {1: "b"}
    assert len(table.history()) == 2
    assert table.verify().ok


def test_the_format_refuses_a_key_that_two_tasks_bring(
    lake: Lake, table: Table, inbox: Inbox, tmp_path: Path
) -> None:
    inbox.put([(1, "a", 1), (2, "a", 1), (1, "b", 2), (2, "b", 2)])
    apart = inbox.stream(lake.spark).repartition(2, "qty")

    with pytest.raises(StreamingQueryException, match="comes twice in the rows"):
        run_format(lake, apart, tmp_path / "cp")

    assert table.history() == []
    assert table.files() == []
