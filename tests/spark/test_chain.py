"""ODS → DWD → DWS: three tables fed by each other's changes (TRI-10, INC-28).

A source that changes keys and days tells its log; the drivers of two layers die in the middle of
their work, and the last table equals a batch recomputation of the first, and a plain dict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from arcticlake import Lake, Table
from tests.stream.source import Source, act, debezium

AddUp = Callable[[DataFrame, int], None]


@pytest.fixture
def lake(spark: SparkSession, warehouse: Path) -> Lake:
    lake = Lake.open(str(warehouse), spark=spark)
    few = {"initial-nodes": 2}
    lake.create_table("ods.t", "id bigint, day string, v string", primary_key="id", options=few)
    lake.create_table(
        "dwd.t", "id bigint, day string, letters bigint", primary_key="id", options=few
    )
    lake.create_table("dws.t", "day string, rows bigint, letters bigint", primary_key="day")
    return lake


class Layers:
    """The three queries, each with its checkpoint; a new object is a new driver."""

    def __init__(self, lake: Lake, warehouse: Path, place: Path) -> None:
        self.lake, self.warehouse, self.place = lake, warehouse, place
        self.ods, self.dwd, self.dws = (lake.table(f"{layer}.t") for layer in ("ods", "dwd", "dws"))

    def take_log(self) -> None:
        log = self.lake.spark.readStream.text(str(self.place / "log"))
        self.ods.stream_changes(
            log,
            format="debezium-json",
            checkpoint=str(self.place / "ods"),
            trigger="available-now",
        ).awaitTermination()

    def changes_of(self, name: str) -> DataFrame:
        source = self.lake.spark.readStream.format("arctic")
        source = source.option("warehouse", str(self.warehouse)).option("order", "true")
        return source.option("maxFilesPerTrigger", "2").option("consumer", "next").load(name)

    def refine(self) -> None:
        found = self.changes_of("ods.t").drop("_commit_version", "_commit_timestamp")
        letters = F.coalesce(F.length("v"), F.lit(0)).cast("bigint")
        self.dwd.stream_upsert(
            found.withColumn("letters", letters).drop("v"),
            checkpoint=str(self.place / "dwd"),
            trigger="available-now",
            order_by="_change_order",
            delete_when="_change_type = 'delete'",
        ).awaitTermination()

    def add_up(self, changes: DataFrame, _: int) -> None:
        """Compute the days anew that the batch touched."""
        first = changes.agg(F.min("_commit_version")).collect()[0][0]
        if first is None:
            return
        earlier = self.dwd.read(version=first - 1)
        left = earlier.join(changes.select("id"), "id", "left_semi").select("day")
        touched = changes.select("day").union(left).dropna().distinct()
        rows = touched.join(totals(self.dwd.read()), "day", "left").fillna(0, ["rows"])
        self.dws.upsert(rows, delete_when="rows = 0")

    def sum_up(self, add_up: AddUp | None = None) -> None:
        query = self.changes_of("dwd.t").writeStream.foreachBatch(add_up or self.add_up)
        query = query.option("checkpointLocation", str(self.place / "dws"))
        query.trigger(availableNow=True).start().awaitTermination()


def totals(rows: DataFrame) -> DataFrame:
    counted = rows.groupBy("day").agg(F.count("*").alias("rows"), F.sum("letters"))
    return counted.toDF("day", "rows", "letters")


def told(table: Table) -> set[tuple[object, ...]]:
    return {tuple(row.values()) for row in table.to_arrow().to_pylist()}


def test_the_last_layer_equals_a_recomputation_after_drivers_died(
    lake: Lake, warehouse: Path, tmp_path: Path
) -> None:
    source, chance = Source(), Random(7)
    (tmp_path / "log").mkdir()

    def go_on(file: str, deeds: int) -> None:
        for _ in range(deeds):
            act(source, chance)
        text = "\n".join(debezium(change) for change in source.take())
        (tmp_path / "log" / file).write_text(text, encoding="utf-8")

    go_on("1", 40)
    layers = Layers(lake, warehouse, tmp_path)
    layers.take_log()
    layers.refine()
    layers.sum_up()

    go_on("2", 40)
    layers.take_log()
    go_on("3", 40)
    layers.take_log()
    layers.ods.compact("full")
    layers.refine()
    done: list[int] = []

    def die_after_the_commit(changes: DataFrame, batch: int) -> None:
        layers.add_up(changes, batch)
        done.append(batch)
        if len(done) == 2:
            message = "the driver dies before Spark knows that the batch is done"
            raise RuntimeError(message)

    with pytest.raises(StreamingQueryException, match="the driver dies"):
        layers.sum_up(die_after_the_commit)
    assert len(done) == 2, "in the middle: one batch done, one half done"

    layers.dwd.compact("major")
    go_on("4", 20)
    restarted = Layers(Lake.open(str(warehouse), spark=lake.spark), warehouse, tmp_path)
    restarted.take_log()
    restarted.refine()
    restarted.sum_up()

    days = Counter(str(row["day"]) for row in source.rows.values())
    letters: Counter[str] = Counter()
    for row in source.rows.values():
        letters[str(row["day"])] += len(str(row["v"] or ""))
    assert told(layers.dws) == {(day, days[day], letters[day]) for day in days}
    refined = layers.ods.read().withColumn("letters", F.coalesce(F.length("v"), F.lit(0)))
    assert told(layers.dws) == {tuple(row) for row in totals(refined).collect()}
    assert (
        {n for n, *_ in told(layers.ods)} == {n for n, *_ in told(layers.dwd)} == set(source.rows)
    )
    assert all(table.verify().ok for table in (layers.ods, layers.dwd, layers.dws))
