"""Arctic's turns; runs in the project's own environment.

    make     create and load every table (no Spark)
    check    after the other engine acted: read, verify, write
    resume   after the other engine repaired three tables: read, verify, write

Touches the warehouse, Spark and standard output.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import pyarrow as pa
import story
from claims import claim, claim_refused, claim_rows, finish

from arcticlake import Lake, Table
from arcticlake.errors import CorruptData
from arcticlake.spark import make_session

CHUNK_ROWS = 100


def frame(rows: list[story.Row], table: Table) -> pa.Table:
    """Return rows in small batches: a leaf splits between two batches."""
    schema = table.to_arrow(where="1 = 0").schema
    wanted = pa.schema([column for column in schema if column.name in rows[0]])
    whole = pa.Table.from_pylist(rows, schema=pa.schema([c.with_nullable(True) for c in wanted]))
    return pa.Table.from_batches(whole.to_batches(max_chunksize=CHUNK_ROWS))


def make_days(lake: Lake) -> None:
    """Load the partitioned table, change its rows, then its schema, and write again."""
    days = lake.create_table(
        story.DAYS,
        story.DAYS_SCHEMA,
        primary_key=("id", "at"),
        partition_by="day(at)",
        options=story.OPTIONS,
    )
    days.insert(frame(story.days_loaded(), days))
    days.upsert(frame(story.days_upserted(), days))
    days.delete(frame(story.days_deleted(), days))
    days.add_column("note", "string")
    days.rename_column("name", "title")
    days.widen_column("qty", "bigint")
    days.widen_column("price", "decimal(12,2)")
    days.insert(frame(story.days_loaded_later(), days))
    days.upsert(frame(story.days_upserted_later(), days))
    depths = {(str(leaf.partition), leaf.mask) for leaf in days.tree().leaves}
    mixed = max(sum(day == one for one, _ in depths) for day, _ in depths)
    claim(1, mixed > 1, "a day has leaves of several depths", f"{mixed} depths")
    claim_rows(1, days.to_arrow().to_pylist(), story.days_merged(), "Arctic reads it merged")


def make_table(lake: Lake, name: str) -> None:
    """Load one table of the lake: a base of mixed depth, with changes pending."""
    table = lake.create_table(name, story.SCHEMA, primary_key="id", options=story.OPTIONS)
    table.insert(frame(story.made(story.LOADED, "loaded"), table))
    if name in story.WITH_RETURNED:
        returned = frame(story.made(story.RETURNED, "returned"), table)
        table.upsert(returned)
        table.delete(returned.select(["id"]))
        table.insert(returned)
    table.upsert(frame(story.made(story.CHANGED, "changed", 2), table))
    table.delete(frame([{"id": number} for number in story.REMOVED], table))


def turn_make(lake: Lake) -> None:
    """Create and load everything."""
    make_days(lake)
    options = {"initial-nodes": story.LOOKED_UP_NODES}
    table = lake.create_table(story.LOOKED_UP, story.SCHEMA, primary_key="id", options=options)
    table.insert(frame(story.made(story.LOADED, "loaded"), table))
    for name in story.LAKE:
        make_table(lake, name)
    leaves = lake.table(story.INSERTED).tree().leaves
    masks = sorted({leaf.mask for leaf in leaves})
    claim(1, len(masks) > 1, "a table without partitions has leaves of several depths", masks)


def readings(table: Table) -> Iterator[tuple[str, Callable[[str], list[story.Row]]]]:
    """Yield both ways to read, by name."""
    yield "read()", lambda mode: table.read(mode=mode).toArrow().to_pylist()
    yield "to_arrow()", lambda mode: table.to_arrow(mode=mode).to_pylist()


def check_table(lake: Lake, act: int, name: str) -> None:
    """Read the table in every way, write to it, and read again."""
    table = lake.table(name)
    base = story.base_after(name)
    merged = story.apply_pending(base)
    if name == story.INSERTED:
        merged |= {row["id"]: row for row in story.made(story.SPARK_INSERTED, "spark")}
    for way, rows in readings(table):
        claim_rows(act, rows("merged"), merged.values(), f"{name}: {way} sees it at once")
        claim_rows(act, rows("base"), base.values(), f"{name}: {way} of mode base too")
    verdict = table.verify()
    claim(act, verdict.ok, f"{name}: verify() finds nothing wrong", verdict.problems or "ok")
    known = {entry.version for entry in table.history()}
    added = story.made(story.LAST, "last")
    table.upsert(frame(added, table))
    fresh = [entry for entry in table.history() if entry.version not in known]
    foreign = [entry.kind for entry in fresh if entry.summary.get("arctic.foreign") == "true"]
    acted = name not in {story.COMPACTED, story.EXPIRED}
    claim(
        act,
        len(fresh) == (2 if acted else 1) and len(foreign) == acted,
        f"{name}: the next write gives it {'one version' if acted else 'no version of its own'}",
        ", ".join(f"{entry.version} {entry.kind}" for entry in fresh),
    )
    merged |= {row["id"]: row for row in added}
    claim_rows(act, table.to_arrow().to_pylist(), merged.values(), f"{name}: right after it")
    verdict = table.verify()
    claim(act, verdict.ok, f"{name}: verify() after the write", verdict.problems or "ok")


def check_refused(lake: Lake, act: int, name: str) -> None:
    """Every way in is closed, and the error says what to do."""
    table = lake.table(name)
    rows = pa.Table.from_pylist(story.made(story.LAST, "last")).cast(
        pa.schema([("id", pa.int64()), ("name", pa.string()), ("qty", pa.int32())])
    )
    calls: dict[str, Callable[[], object]] = {
        "read()": lambda: table.read().count(),
        "to_arrow()": table.to_arrow,
        "upsert()": lambda: table.upsert(rows),
        "insert()": lambda: table.insert(rows),
    }
    for way, call in calls.items():
        claim_refused(act, call, CorruptData, "Roll the", f"{name}: {way} is refused")
    claim(act, not table.verify().ok, f"{name}: verify() reports it")


def turn_check(lake: Lake) -> None:
    """Check what the other engine left behind."""
    check_table(lake, 3, story.INSERTED)
    check_table(lake, 4, story.DELETED)
    check_refused(lake, 5, story.OVERWRITTEN)
    check_table(lake, 6, story.MERGED)
    check_refused(lake, 7, story.CHANGES)
    check_table(lake, 8, story.COMPACTED)
    check_refused(lake, 8, story.MIXED_UP)
    check_table(lake, 9, story.EXPIRED)
    days = lake.table(story.DAYS)
    claim_rows(1, days.read().toArrow().to_pylist(), story.days_merged(), "Arctic reads by Spark")
    done = days.compact("full")
    claim(10, done.kind == "full", "Arctic merges changes into base", done.events)
    base = days.to_arrow(mode="base").to_pylist()
    claim_rows(10, base, story.days_merged(), "Arctic reads base after the merge")


def turn_resume(lake: Lake) -> None:
    """Go on with the tables that were rolled back."""
    for act, name in ((5, story.OVERWRITTEN), (7, story.CHANGES), (8, story.MIXED_UP)):
        table = lake.table(name)
        wanted = story.apply_pending(story.base_before(name))
        claim_rows(act, table.to_arrow().to_pylist(), wanted.values(), f"{name}: rolled back")
        added = story.made(story.LAST, "last")
        table.upsert(frame(added, table))
        wanted |= {row["id"]: row for row in added}
        claim_rows(act, table.to_arrow().to_pylist(), wanted.values(), f"{name}: written again")
        verdict = table.verify()
        claim(act, verdict.ok, f"{name}: verify() finds nothing wrong", verdict.problems or "ok")


if __name__ == "__main__":
    turn, warehouse = sys.argv[1:]
    if turn == "check":
        session = make_session("interop", "local[2]", {"spark.driver.memory": "1g"})
        turn_check(Lake.open(warehouse, spark=session))
        session.stop()
    else:
        {"make": turn_make, "resume": turn_resume}[turn](Lake.open(warehouse))
    finish()
