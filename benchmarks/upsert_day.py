"""One day of upserts: load, five batches of changes, fresh reads; every number is a ratio.

    10 M orders of 10 columns are inserted into an empty keyed table, then 5 batches of 200 k
    changes arrive (80 % update, 10 % insert, 10 % delete, random keys).

Each number is compared inside the same run with the plain thing it stands against: Spark's own
Parquet writer for the load, Spark's own scan for the reads, Spark joins for the merge. Seconds are
the best of several tries, because other load on a machine only ever adds.

    python benchmarks/upsert_day.py [--rows 10000000] [--batch 200000] [--folder F] [--json FILE]

Touches Spark, the disk and the clock.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import psutil
from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F

from arcticlake import Lake, Table
from arcticlake.read.arrow import forget_resolved
from arcticlake.spark import make_session

SCHEMA = (
    "order_id bigint, user_id bigint, amount decimal(12,2), status string, created_at timestamp, "
    "qty int, price double, city string, note string, flag boolean"
)
COLUMNS = [part.split()[0] for part in SCHEMA.split(", ")]


@dataclass(frozen=True)
class Number:
    """One line of the result: what was measured, against what, and the limit."""

    name: str
    seconds: float
    against: float
    limit: float
    unit: str = "x"

    @property
    def value(self) -> float:
        """The number that the limit is for."""
        return self.seconds / self.against if self.unit == "x" else self.seconds

    @property
    def met(self) -> bool:
        """Whether the limit is kept."""
        return self.value <= self.limit


class WorkerMemory(threading.Thread):
    """Watches the largest Python worker of this process tree."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak_bytes = 0
        self._stop_asked = threading.Event()

    def run(self) -> None:
        """Look at all children until stopped."""
        me = psutil.Process()
        while not self._stop_asked.wait(0.2):
            for child in me.children(recursive=True):
                try:
                    if "python" in child.name():
                        self.peak_bytes = max(self.peak_bytes, child.memory_info().rss)
                except psutil.Error:
                    continue

    def stop(self) -> int:
        """Stop watching and return the peak."""
        self._stop_asked.set()
        return self.peak_bytes


def seconds(action: Callable[[], object]) -> float:
    """Return how long one call takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def best(action: Callable[[], object], tries: int = 3) -> float:
    """Return the shortest of some tries."""
    return min(seconds(action) for _ in range(tries))


def in_turns(*actions: Callable[[], object], tries: int = 4) -> list[float]:
    """Return the shortest try of each action; they take turns, so that all are equally warm."""
    found = [[seconds(action) for action in actions] for _ in range(tries)]
    return [min(column) for column in zip(*found, strict=True)]


def orders(keys: DataFrame, seed: int) -> DataFrame:
    """Return order rows for a frame with an `id` column."""
    key = F.col("id")
    mixed = F.xxhash64(key, F.lit(seed))

    def part(of: int, salt: int) -> Column:
        return F.pmod(F.xxhash64(key, F.lit(seed * 31 + salt)), F.lit(of))

    return keys.select(
        key.alias("order_id"),
        part(1_000_000, 1).alias("user_id"),
        (part(1_000_000, 2) / 100).cast("decimal(12,2)").alias("amount"),
        F.element_at(
            F.lit(["new", "paid", "sent", "done", "back"]), (part(5, 3) + 1).cast("int")
        ).alias("status"),
        F.timestamp_seconds(F.lit(1_760_000_000) + part(30_000_000, 4)).alias("created_at"),
        part(20, 5).cast("int").alias("qty"),
        (part(100_000, 6) / 7).alias("price"),
        F.concat(F.lit("city "), part(100, 7).cast("string")).alias("city"),
        F.substring(F.hex(mixed), 1, 12).alias("note"),
        (part(2, 8) == 0).alias("flag"),
    )


def batch(spark: SparkSession, rows: int, size: int, number: int) -> DataFrame:
    """Return one batch of changes: 80 % update, 10 % insert, 10 % delete; keys are random."""
    updates, news = size * 9 // 10, size // 10
    step = rows // updates
    old = spark.range(updates).select(
        (F.col("id") * step + F.pmod(F.xxhash64("id", F.lit(number)), F.lit(step))).alias("id"),
        F.when(F.col("id") % 9 == 0, "D").otherwise("U").alias("op"),
    )
    new = spark.range(news).select(
        (F.col("id") + rows + number * news).alias("id"), F.lit("I").alias("op")
    )
    keys = old.unionAll(new)
    values = orders(keys.select("id"), number + 100)
    return values.join(keys.withColumnRenamed("id", "order_id"), "order_id")


def aggregate(frame: DataFrame) -> Row:
    """Return an aggregate over five columns."""
    (answer,) = frame.agg(
        F.sum("amount"), F.sum("qty"), F.sum("price"), F.max("created_at"), F.count("status")
    ).collect()
    return answer


def by_joins(spark: SparkSession, table: Table) -> DataFrame:
    """Return the merged answer the plain way: dedupe the changes, anti join base, union."""
    rows = table.files()
    base = spark.read.parquet(*(str(f["path"]) for f in rows if f["role"] == "base"))
    frames = [
        spark.read.parquet(str(f["path"])).withColumn("_version", F.lit(f["version"]))
        for f in rows
        if f["role"] == "change"
    ]
    changes = frames[0]
    for frame in frames[1:]:
        changes = changes.unionAll(frame)
    newest = Window.partitionBy("order_id").orderBy(F.desc("_version"), F.desc("_order"))
    last = changes.withColumn("rank", F.row_number().over(newest)).where("rank = 1")
    kept = base.join(last, "order_id", "left_anti").select(*COLUMNS)
    return kept.unionAll(last.where("_action <> '-D'").select(*COLUMNS))


def measure(folder: Path, rows: int, size: int) -> list[Number]:
    """Run the day and return its numbers."""
    spark = make_session("upsert-day", master="local[2]", config={"spark.driver.memory": "8g"})
    lake = Lake.open(str(folder / "lake"), spark=spark)
    memory = WorkerMemory()
    memory.start()
    numbers: list[Number] = []

    def note(number: Number) -> None:
        numbers.append(number)
        print(line(number), file=sys.stderr, flush=True)

    source = folder / "source"
    orders(spark.range(rows), 1).write.parquet(str(source))
    frame = spark.read.parquet(str(source))
    note(_load(lake, frame, folder))
    table = lake.table("shop.orders")
    paths = _base_paths(table)
    fresh, plain = in_turns(
        lambda: aggregate(table.read()), lambda: aggregate(spark.read.parquet(*paths))
    )
    note(Number("read, nothing pending / spark.read.parquet", fresh, plain, 1.05))
    for number in _upserts(lake, spark, table, rows, size):
        note(number)
    first, merged, base = in_turns(
        lambda: aggregate(_fresh(table)),
        lambda: aggregate(table.read()),
        lambda: aggregate(table.read(mode="base")),
    )
    joins = best(lambda: aggregate(by_joins(spark, table)), tries=2)
    _same(aggregate(table.read()), aggregate(by_joins(spark, table)))
    note(Number("read, 5 batches pending / mode=base (files resolved before)", merged, base, 1.9))
    note(Number("read, 5 batches pending / mode=base (first read)", first, base, 1.9))
    note(Number("read, 5 batches pending / Spark joins", first, joins, 0.6))
    note(_many_files(lake, spark))
    tasks = lake.create_table("shop.tasks", SCHEMA, primary_key="order_id")
    tasks.upsert(frame.where("order_id % 4 = 0"))  # too large for the driver: Python tasks write
    peak = memory.stop()
    note(Number("peak memory of a Python worker, GB", peak / 2**30, 1, 1.0, "GB"))
    spark.stop()
    return numbers


def _load(lake: Lake, frame: DataFrame, folder: Path) -> Number:
    """Load into an empty table, against Spark's own writer of the same frame."""
    copy = str(folder / "copy")

    def write() -> None:
        frame.write.mode("overwrite").parquet(copy)

    def load() -> None:
        if "shop.orders" in lake.tables():
            lake.drop_table("shop.orders", purge=True)
        table = lake.create_table("shop.orders", SCHEMA, primary_key="order_id")
        table.insert(frame)

    writes, loads = [], []
    for _ in range(2):
        writes.append(seconds(write))
        loads.append(seconds(load))
    shutil.rmtree(copy)
    return Number("load / df.write.parquet", min(loads), min(writes), 1.4)


def _upserts(lake: Lake, spark: SparkSession, table: Table, rows: int, size: int) -> list[Number]:
    """Five batches into a small table and into one ten times as large, turn by turn."""
    small = lake.create_table("shop.small", SCHEMA, primary_key="order_id")
    small.insert(orders(spark.range(rows // 10), 1))
    condition = "op = 'D'"
    warm = lake.create_table("shop.warm", SCHEMA, primary_key="order_id")
    large_seconds: list[float] = []
    small_seconds: list[float] = []
    for number in range(5):
        path = str(Path(str(lake.catalog.properties["warehouse"])) / f"batch{number}")
        batch(spark, rows, size, number).coalesce(2).write.parquet(path)
        changes = spark.read.parquet(path)
        if number == 0:
            warm.upsert(changes, delete_when=condition)
        turns = [(table, large_seconds), (small, small_seconds)]
        for target, found in turns if number % 2 else reversed(turns):  # the second finds it warm
            write = partial(target.upsert, changes, delete_when=condition)
            found.append(seconds(write))
    large, little = statistics.median(large_seconds), statistics.median(small_seconds)
    return [
        Number(f"upsert of {size:,} rows, seconds", large, 1, 1.2, "s"),
        Number("the same / on a table a tenth as large", large, little, 1.1),
    ]


def _fresh(table: Table) -> DataFrame:
    """Return a read whose resolution is not cached, as the first reader after a commit sees it."""
    forget_resolved()
    return table.read()


def _many_files(lake: Lake, spark: SparkSession) -> Number:
    """Plan a read of a table with 10,000 files."""
    table = lake.create_table(
        "shop.many",
        "id bigint, day int",
        primary_key=["id", "day"],
        partition_by=["day"],
        options={"initial-nodes": 4},
    )
    table.insert(spark.range(100_000).select("id", (F.col("id") % 2500).cast("int").alias("day")))
    found = len(table.files())
    assert found == 10_000, f"{found} files"
    table.read().count()
    return Number("a read of 10,000 files starts, seconds", best(table.read), 1, 2.0, "s")


def _base_paths(table: Table) -> list[str]:
    return [str(file["path"]) for file in table.files() if file["role"] == "base"]


def _same(our: Row, other: Row) -> None:
    for left, right in zip(our, other, strict=True):
        close = isinstance(left, float) and abs(left - right) <= abs(right) * 1e-9
        assert left == right or close, f"the answers differ: {our} and {other}"


def line(number: Number) -> str:
    """Return one row of the printed table."""
    mark = "ok " if number.met else "OVER"
    return (
        f"{number.name:<62} {number.value:>7.2f} {number.unit:<2} limit {number.limit:<5} {mark} "
        f"({number.seconds:.2f} s against {number.against:.2f} s)"
    )


def main() -> int:
    """Run the benchmark, print a table and write JSON."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("--rows", type=int, default=10_000_000)
    arguments.add_argument("--batch", type=int, default=200_000)
    arguments.add_argument("--folder", type=Path)
    arguments.add_argument("--json", type=Path, default=Path("benchmarks/upsert_day.json"))
    asked = arguments.parse_args()
    folder = asked.folder or Path(tempfile.mkdtemp(prefix="arctic-bench-"))
    try:
        numbers = measure(folder, asked.rows, asked.batch)
    finally:
        if asked.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
    print("\n".join(line(number) for number in numbers))
    results = [{**asdict(n), "value": round(n.value, 3), "met": n.met} for n in numbers]
    asked.json.write_text(json.dumps({"rows": asked.rows, "numbers": results}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
