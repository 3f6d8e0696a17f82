"""How long a plan takes: 10,000 files, laid out in the ways that could be slow; the bar is 2 s.

    python -m benchmarks.compaction_plan

Nothing is read: files are made up. Each line gives the seconds of planning and of its text.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from time import perf_counter

from pyiceberg.manifest import DataFile

from arcticlake.compact.plan import Facts, plan_compaction
from arcticlake.table.ddl import schema_from_ddl
from arcticlake.table.spec import TableSpec, plan_table
from arcticlake.table.watermark import Watermark
from arcticlake.tree.files import FileEntry, Role
from arcticlake.tree.node import ROOT, Node

FILES = 10_000
SECONDS_MAX = 2.0
MB = 2**20
DRAW = random.Random(4)


def main() -> None:
    """Print one line for each layout and kind."""
    print(f"{'layout':44} {'kind':6} {'plan s':>7} {'text s':>7} {'of bar':>7}")
    for name, facts in layouts():
        for kind in ("auto", "major", "minor", "full"):
            started = perf_counter()
            plan = plan_compaction(facts, kind, parallelism=8)
            planned = perf_counter()
            plan.explain()
            told = perf_counter() - planned
            took = planned - started
            print(f"{name:44} {kind:6} {took:7.2f} {told:7.2f} {took / SECONDS_MAX:7.0%}")


def layouts() -> Iterator[tuple[str, Facts]]:
    """Yield the layouts with their names."""
    plain = table(("id",), ())
    pair = table(("id", "line"), ())
    by_time = table(("id", "line"), ("v",))
    yield "64 leaves, 50 partitions, one key column", facts(plain, spread_out())
    yield "64 leaves, 50 partitions, sort key", facts(by_time, spread_out(lines=True))
    yield "one leaf, one key column", facts(plain, crowded())
    yield "one leaf, two key columns", facts(pair, crowded(lines=True))
    yield "one leaf, sort key", facts(by_time, crowded(lines=True))
    yield "one leaf, sort key, half changes", facts(by_time, crowded(lines=True, every=2))
    root = [entry("root", ROOT, 0, (0, 3 * FILES), lines=False)]
    yield "64 leaves below a file of the root", facts(plain, [*spread_out(days=1), *root])


def table(key: tuple[str, ...], sort: tuple[str, ...]) -> TableSpec:
    """Return a table without a partition field; the planner does not look at the fields."""
    return plan_table(
        "db.t",
        schema_from_ddl("id bigint, line bigint, v bigint, day date"),
        primary_key=list(key),
        partition_by=["day"],
        sort_by=list(sort),
        bucket_by=None,
        options={},
    )


def spread_out(*, lines: bool = False, days: int = 50) -> list[FileEntry]:
    """Return files in every leaf of many partitions, a fifth of them changes."""
    return [
        entry(str(n), Node(63, n % 64), n // 64 % days, spot(n), lines=lines, change=n % 5 == 0)
        for n in range(FILES)
    ]


def crowded(*, lines: bool = False, every: int = 5) -> list[FileEntry]:
    """Return files side by side in one leaf, some of them changes."""
    return [
        entry(str(n), Node(3, 1), 0, spot(n), lines=lines, change=n % every == 0)
        for n in range(FILES)
    ]


def spot(number: int) -> tuple[int, int]:
    """Return a short range of its own place, now and then a longer one."""
    return 3 * number, 3 * number + DRAW.choice([1, 1, 2, 2, 7])


def entry(
    name: str, node: Node, day: int, span: tuple[int, int], *, lines: bool, change: bool = False
) -> FileEntry:
    """Describe a file; with lines, its first key column says nothing and the second is the span."""
    return FileEntry(
        path=name,
        role=Role.CHANGE if change else Role.BASE,
        partition=(day,),
        node=node,
        rows=10_000,
        bytes=(2 if change else 30) * MB,
        key_lower=(0, span[0]) if lines else span[:1],
        key_upper=(FILES, span[1]) if lines else span[1:],
        sort_lower=span[:1],
        sort_upper=span[1:],
        snapshot_id=1,
        sequence=3,
        data_file=DataFile.from_args(),
    )


def facts(spec: TableSpec, files: list[FileEntry]) -> Facts:
    """Return all that the planner looks at."""
    return Facts(
        spec=spec,
        version=9,
        watermark=Watermark(),
        bases=tuple(f for f in files if f.role is Role.BASE),
        changes=tuple(f for f in files if f.role is Role.CHANGE),
        base_sequence=lambda _: 0,
        chosen=lambda _: True,
    )


if __name__ == "__main__":
    main()
