"""Pulling 10,000 changes from a small and from a large table; the bar is 1.5 times the small one.

    python -m benchmarks.pull [--large 10000000] [--folder PATH]

The cost of a pull follows its range. Both tables get the same changes in ten commits on top of
batches of different size; pulls of the two take turns, and nothing that was resolved is kept
between them. Each line gives the medians.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from time import perf_counter

from arcticlake import Lake, Table
from arcticlake.read.arrow import forget_resolved
from benchmarks.shop import SCHEMA, changes, in_parts, orders

SMALL_ROWS = 100_000
CHANGES, COMMITS = 10_000, 10
BATCH_ROWS = 1_000_000
RUNS = 9
TIMES_MAX = 1.5


def main() -> None:
    """Build both tables, then print one line for each mode."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--large", type=int, default=10_000_000)
    parser.add_argument("--folder")
    given = parser.parse_args()
    with _folder(given.folder) as folder:
        lake = Lake.open(folder)
        small, since_small = build(lake, "bench.small", SMALL_ROWS)
        large, since_large = build(lake, "bench.large", given.large)
        print(f"{'mode':6} {'rows':>7} {'small s':>8} {'large s':>8} {'times':>6} {'of bar':>7}")
        for mode in ("raw", "net"):
            pull(small, since_small, mode)  # warm: imports and the file system's cache
            rows, _ = pull(large, since_large, mode)
            times = [
                (pull(small, since_small, mode)[1], pull(large, since_large, mode)[1])
                for _ in range(RUNS)
            ]
            few, many = (median(column) for column in zip(*times, strict=True))
            ratio = many / few
            shown = f"{few:8.3f} {many:8.3f} {ratio:6.2f} {ratio / TIMES_MAX:7.0%}"
            print(f"{mode:6} {rows:7} {shown}")


@contextmanager
def _folder(given: str | None) -> Iterator[str]:
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory() as made:
        yield made


def build(lake: Lake, name: str, rows: int) -> tuple[Table, int]:
    """Make a table of this size with changes on top; return the version before them."""
    table = lake.create_table(name, SCHEMA, primary_key="order_id")
    started = perf_counter()
    version = 0
    for ids in in_parts(rows, BATCH_ROWS):
        version = table.insert(orders(ids, int(ids[0]))).version
    for number in range(COMMITS):
        # Keys of the small table in both, so that the changes are the same rows.
        batch = changes(SMALL_ROWS, CHANGES // COMMITS, number)
        table.upsert(batch, delete_when="op = 'D'")
    files = len(table.files())
    print(f"{name}: {rows:,} rows, {files} files, built in {perf_counter() - started:.0f} s")
    return table, version


def pull(table: Table, since: int, mode: str) -> tuple[int, float]:
    """Pull the changes; return how many rows there were and the seconds."""
    forget_resolved()
    started = perf_counter()
    rows = table.changes_to_arrow(since, mode=mode).num_rows
    return rows, perf_counter() - started


if __name__ == "__main__":
    main()
