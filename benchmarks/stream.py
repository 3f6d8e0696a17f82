"""Streams into a keyed table of ten columns: latency of small batches, rows a second of large ones.

    python -m benchmarks.stream                 what has a limit
    python -m benchmarks.stream middle cdc      the named ones, see LOADS

The source makes its rows itself (`rate-micro-batch`), so nothing but Spark's own work stands before
the write; what that costs alone is measured with a sink that drops all rows. Change messages
(Debezium's envelope, updates with both images) come from files. Every number is the median over
the batches after the first few.

Prints its table; starts Spark on two cores; writes to a temporary folder.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from arcticlake import Lake
from arcticlake.spark import make_session
from benchmarks.shop import SCHEMA

LATENCY_SECONDS_MAX = 1.0
ROWS_A_SECOND_MIN = 300_000
WARM = 3
"""Batches that are not counted: code is compiled, workers start."""


@dataclass(frozen=True, slots=True)
class Load:
    """One measurement: batches of a size, and how many of them."""

    rows: int
    batches: int
    messages: bool = False
    """Whether rows come as change messages."""


LOADS = {
    "latency": Load(10_000, 15),
    "middle": Load(100_000, 10),
    "rows": Load(1_000_000, 8),
    "large": Load(4_000_000, 6),
    "cdc": Load(10_000, 15, messages=True),
    "cdc_large": Load(200_000, 8, messages=True),
}


def orders(spark: SparkSession, rows: int) -> DataFrame:
    """Return a stream of orders, ten columns, new keys in every batch."""
    source = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", rows)
        .option("numPartitions", 2)
        .load()
    )
    return _order_columns(source)


def _order_columns(source: DataFrame) -> DataFrame:
    value, mixed = F.col("value"), F.xxhash64("value")
    return source.select(
        value.alias("order_id"),
        F.pmod(mixed, F.lit(1_000_000)).alias("user_id"),
        (F.pmod(mixed, F.lit(1_000_000)) / 100).cast("decimal(12,2)").alias("amount"),
        F.element_at(
            F.array(*(F.lit(word) for word in ("new", "paid", "sent", "done", "back"))),
            (F.pmod(mixed, F.lit(5)) + 1).cast("int"),
        ).alias("status"),
        F.timestamp_seconds(F.lit(1_760_000_000) + value).alias("created_at"),
        F.pmod(mixed, F.lit(20)).cast("int").alias("qty"),
        (F.pmod(mixed, F.lit(100_000)) / 7).alias("price"),
        F.concat(F.lit("city "), F.pmod(mixed, F.lit(100))).alias("city"),
        mixed.cast("string").alias("note"),
        (F.pmod(mixed, F.lit(2)) == 0).alias("flag"),
    )


def write_messages(spark: SparkSession, load: Load, place: str) -> None:
    """Write a file of change messages for each batch."""
    names = ", ".join(column.split()[0] for column in SCHEMA.split(", "))
    for batch in range(load.batches):
        ids = spark.range(batch * load.rows, (batch + 1) * load.rows, 1, 1)
        rows = _order_columns(ids.withColumnRenamed("id", "value"))
        source = "named_struct('connector', 'postgresql', 'lsn', order_id)"
        image = f"struct({names})"
        envelope = (
            f"named_struct('before', {image}, 'after', {image}, 'source', {source}, 'op', 'u')"
        )
        rows.selectExpr(f"to_json({envelope}) AS value").write.mode("append").text(place)


def messages(spark: SparkSession, place: str) -> DataFrame:
    """Return the files as a stream, one in each batch."""
    return spark.readStream.option("maxFilesPerTrigger", 1).text(place)


def watch(query: StreamingQuery, load: Load) -> list[dict[str, float]]:
    """Wait for the batches and return seconds of each, by the name of its part."""
    while query.isActive and (query.lastProgress or {"batchId": -1})["batchId"] + 1 < load.batches:
        time.sleep(0.1)
    found = [dict(progress["durationMs"]) for progress in query.recentProgress]
    query.stop()
    if failure := query.exception():
        raise failure
    return [{name: ms / 1000 for name, ms in one.items()} for one in found[WARM : load.batches]]


def median(batches: list[dict[str, float]], part: str) -> float:
    """Return the seconds of a part in the batch of the middle."""
    return statistics.median(batch[part] for batch in batches)


def measure(lake: Lake, name: str, load: Load, place: str) -> None:
    """Print one line: the write itself, the whole batch, and the source alone."""
    table = lake.create_table(f"shop.{name}", SCHEMA, primary_key="order_id")
    if load.messages:
        log = f"{place}/{name}-log"
        write_messages(lake.spark, load, log)
        source, checkpoint = messages(lake.spark, log), f"{place}/{name}"
        query = table.stream_changes(source, format="debezium-json", checkpoint=checkpoint)
    else:
        source = orders(lake.spark, load.rows)
        query = table.stream_upsert(source, checkpoint=f"{place}/{name}")
    batches = watch(query, load)
    bare = source.writeStream.format("noop")
    alone = watch(bare.option("checkpointLocation", f"{place}/{name}-bare").start(), load)
    whole, write = median(batches, "triggerExecution"), median(batches, "addBatch")
    before = median(alone, "triggerExecution")
    total = load.rows * len(batches) / sum(batch["triggerExecution"] for batch in batches)
    print(
        f"{name:8} {load.rows:>9,} rows a batch: write and commit {write:.2f} s, whole batch "
        f"{whole:.2f} s (source alone {before:.2f} s), {total:,.0f} rows/s"
    )
    if name == "latency":
        _judge("commit of 10,000 rows", write, LATENCY_SECONDS_MAX, "s", low=True)
    if name == "rows":
        _judge("sustained rows a second", total, ROWS_A_SECOND_MIN, "rows/s", low=False)


def _judge(what: str, found: float, limit: float, unit: str, *, low: bool) -> None:
    good = found <= limit if low else found >= limit
    print(f"{'ok  ' if good else 'MISS'} {what}: {found:,.2f} {unit} (limit {limit:,.0f})")


def main() -> None:
    """Run the named measurements, or the two that have a limit."""
    names = sys.argv[1:] or ["latency", "rows"]
    session = make_session("stream", "local[2]", {"spark.driver.memory": "3g"})
    with tempfile.TemporaryDirectory(prefix="arctic-stream-") as place:
        lake = Lake.open(f"{place}/warehouse", spark=session)
        for name in names:
            measure(lake, name, LOADS[name], place)
    session.stop()


if __name__ == "__main__":
    main()
