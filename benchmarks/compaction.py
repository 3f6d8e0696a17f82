"""Compaction against its physical limit; every number is a ratio in one run, or stands alone.

    day       10 M orders, 5 batches of 200 k changes over all leaves: major compaction against a
              bare copy of the same base files by Polars (read and write, same codec, 2 threads)
    newest    changes to the newest 5 % of a table sorted by time, against its full rewrite
    minor     200 change files of 5 k rows become few
    split     one leaf of 64 is split: bytes written against bytes of the table
    headline  100 M orders and 10 M changes against the copy, with the memory of all processes;
              needs 20 GB of disk and some minutes
    memory    a leaf of 4 GB of Arrow data, merged and sorted, under a limit of 1 GB

    python -m benchmarks.compaction [day newest minor split headline memory] [--spark] [--json FILE]

With `--spark` tasks run on a local session, else in threads of this process.

Touches the disk, the clock and, if asked, Spark.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

os.environ.setdefault("POLARS_MAX_THREADS", "2")

import numpy as np
import polars as pl
import psutil
import pyarrow as pa

from arcticlake import Lake, Table
from arcticlake.spark import make_session
from arcticlake.tree.hash import key_hash
from benchmarks.shop import SCHEMA, changes, in_parts, orders

GB = 2**30


@dataclass(frozen=True)
class Number:
    """One line of the result."""

    name: str
    value: float
    limit: float
    unit: str
    detail: str

    @property
    def met(self) -> bool:
        """Whether the limit is kept."""
        return self.value <= self.limit


class Memory(threading.Thread):
    """Watches the resident memory of this process and all its children."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = 0
        self.start_bytes = _resident()
        self._stop_asked = threading.Event()
        self.start()

    def run(self) -> None:
        """Look until stopped."""
        while not self._stop_asked.wait(0.1):
            self.peak = max(self.peak, _resident())

    def stop(self) -> int:
        """Stop watching and return the peak."""
        self._stop_asked.set()
        self.join()
        return self.peak


def _resident() -> int:
    total = 0
    me = psutil.Process()
    for process in (me, *me.children(recursive=True)):
        try:
            total += process.memory_info().rss
        except psutil.Error:
            continue
    return total


@contextmanager
def fresh_lake(spark: bool) -> Iterator[Lake]:
    """Yield a lake in a folder of its own."""
    folder = tempfile.mkdtemp(prefix="arctic-bench-", dir=os.environ.get("ARCTIC_BENCH_FOLDER"))
    try:
        yield Lake.open(folder, spark=make_session() if spark else None)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def seconds(action: Callable[[], object]) -> float:
    """Return how long one call takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def base_paths(table: Table) -> list[str]:
    """Return the live base files."""
    return [str(file["path"]) for file in table.files() if file["role"] == "base"]


def copy(paths: list[str]) -> None:
    """Read and write files as Polars does, one after the other."""
    with tempfile.TemporaryDirectory(dir=Path(paths[0]).parents[1]) as folder:
        for number, path in enumerate(paths):
            rows = pl.read_parquet(path, hive_partitioning=False)
            rows.write_parquet(
                f"{folder}/{number}.parquet", compression="zstd", compression_level=1
            )


def fill(lake: Lake, rows: int, part: int, **settings: object) -> Table:
    """Create a table of orders with ids in order."""
    by_time = "sort_by" in settings
    known: dict[str, object] = {"primary_key": "order_id"} | settings
    table = lake.create_table("shop.orders", SCHEMA, **known)  # type: ignore[arg-type]
    for number, ids in enumerate(in_parts(rows, part)):
        table.insert(orders(ids, number, by_time=by_time))
    return table


def merge_against_copy(name: str, rows: int, batch: int, limit: float, spark: bool) -> list[Number]:
    """Measure a major compaction of five batches against a copy of its base files."""
    with fresh_lake(spark) as lake:
        table = fill(lake, rows, 2_000_000)
        for number in range(5):
            table.upsert(changes(rows, batch, number), delete_when="op = 'D'")
        paths = base_paths(table)
        before = seconds(lambda: copy(paths))
        memory = Memory()
        took = seconds(lambda: table.compact("major"))
        peak = memory.stop()
        after = seconds(lambda: copy(paths))
        against = min(before, after)
        live = table.detail().sizes.live_rows
        assert live == rows + 5 * batch // 10 - deleted(rows, batch), "rows were lost"
    told = f"{took:.1f} s against {against:.1f} s, {rows / took:,.0f} rows/s"
    return [
        Number(f"{name}: major / copy by Polars", took / against, limit, "x", told),
        Number(f"{name}: peak memory of all processes", peak / GB, 8, "GB", ""),
    ]


def deleted(rows: int, batch: int) -> int:
    """Return how many of the old keys the batches leave deleted: the last word on each counts."""
    gone: set[int] = set()
    for number in range(5):
        news = changes(rows, batch, number)
        ids = news["order_id"].to_numpy()
        dead = news["op"].to_numpy(zero_copy_only=False) == "D"
        gone -= set(ids[~dead].tolist())
        gone |= set(ids[dead].tolist())
    return len(gone)


def day(spark: bool) -> list[Number]:
    """The upsert day."""
    return merge_against_copy("day", 10_000_000, 200_000, 1.6, spark)


def headline(spark: bool) -> list[Number]:
    """The seeds' headline job."""
    return merge_against_copy("headline", 100_000_000, 2_000_000, 1.6, spark)


def newest(spark: bool) -> list[Number]:
    """Changes to the newest 5 % of a table that is sorted by time."""
    rows = 10_000_000
    with fresh_lake(spark) as lake:
        options = {"target-file-size": "4MB"}
        table = fill(lake, rows, 2_000_000, sort_by=["created_at"], options=options)
        table.compact("full")
        ids = np.random.default_rng(5).choice(rows // 20, 100_000, replace=False)
        table.upsert(orders(rows - 1 - ids, 7, by_time=True))
        pruned = seconds(lambda: table.compact("major"))
        whole = seconds(lambda: table.compact("full"))
    told = f"{pruned:.2f} s against {whole:.2f} s"
    return [Number("newest 5 %: major / full rewrite", pruned / whole, 0.15, "x", told)]


def minor(spark: bool) -> list[Number]:
    """Many small change files."""
    with fresh_lake(spark) as lake:
        table = lake.create_table(
            "shop.orders", SCHEMA, primary_key="order_id", options={"initial-nodes": 1}
        )
        for number in range(200):
            table.upsert(orders(np.arange(number * 2_500, number * 2_500 + 5_000), number))
        assert len(table.files()) == 200, "one file for each commit"
        took = seconds(lambda: table.compact("minor"))
        left = len(table.files())
    return [Number("minor of 200 files of 5,000 rows", took, 5, "s", f"{left} file left")]


def split(spark: bool) -> list[Number]:
    """One leaf of 64 grows over its limit."""
    with fresh_lake(spark) as lake:
        table = fill(lake, 4_000_000, 4_000_000, options={"initial-nodes": 64})
        table.compact("full")
        sizes = [int(str(file["bytes"])) for file in table.files()]
        table.set_options({"leaf-size": max(sizes) * 21 // 20})
        ids = np.arange(4_000_000, 12_000_000)
        mine = ids[(key_hash(pa.array(ids)) & 63) == 5][:6_000]
        table.upsert(orders(mine, 3))
        done = table.compact("auto")
        assert done.events == ("split 63/5 into 127/5 127/69",), done.events
    share = done.bytes_written / sum(sizes)
    told = f"{done.bytes_written:,} of {sum(sizes):,} bytes"
    return [Number("split of one leaf of 64: bytes written / table", share, 1 / 40, "", told)]


def memory(spark: bool) -> list[Number]:
    """A leaf of 4 GB of Arrow data, without and with a sort key."""
    return [
        heavy_leaf("hash merge", spark=spark, sort_by=()),
        heavy_leaf("sort merge", spark=spark, sort_by=("created_at",)),
    ]


def heavy_leaf(name: str, *, spark: bool, sort_by: tuple[str, ...]) -> Number:
    """Rewrite one leaf of 4 GB in one task, and watch what it takes."""
    with fresh_lake(spark) as lake:
        options = {"initial-nodes": 1, "leaf-size": "100GB", "task-memory": "1GB"}
        rows, size = 0, 0
        table = lake.create_table(
            "shop.orders", SCHEMA, primary_key="order_id", options=options, sort_by=sort_by
        )
        while size < 4 * GB:
            batch = orders(np.arange(rows, rows + 2_000_000), rows)
            table.insert(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
            del batch
        table.upsert(changes(rows, 1_000_000, 1), delete_when="op = 'D'")
        pa.default_memory_pool().release_unused()
        watch = Memory()
        took = seconds(lambda: table.compact("full"))
        peak = watch.stop() - watch.start_bytes
    told = f"{rows:,} rows, {size / GB:.1f} GB of Arrow, {took:.0f} s"
    return Number(f"{name} of a leaf of 4 GB: memory taken", peak / GB, 1, "GB", told)


ALL = {
    "day": day,
    "newest": newest,
    "minor": minor,
    "split": split,
    "headline": headline,
    "memory": memory,
}
USUAL = ("day", "newest", "minor", "split")


def main() -> int:
    """Measure what was asked and print one line for each number."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", choices=[[], *ALL], help=f"default: {' '.join(USUAL)}")
    parser.add_argument("--spark", action="store_true", help="run tasks on a local Spark session")
    parser.add_argument("--json", help="also write the numbers to this file")
    asked = parser.parse_args()
    found: list[Number] = []
    for name in asked.what or USUAL:
        for number in ALL[name](asked.spark):
            mark = "ok  " if number.met else "MISS"
            print(
                f"{mark} {number.name:52} {number.value:8.3f} {number.unit:2} "
                f"(limit {number.limit:.3g})  {number.detail}",
                flush=True,
            )
            found.append(number)
    if asked.json:
        told = [asdict(number) | {"met": number.met} for number in found]
        Path(asked.json).write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    return 0 if all(number.met for number in found) else 3


if __name__ == "__main__":
    sys.exit(main())
