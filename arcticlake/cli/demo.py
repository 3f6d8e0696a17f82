"""`arctic demo`: one table from its first row to its proof, on generated orders.

    create ─ load ─ four batches of changes ─ tree ─ fresh query ─ SQL ─ time travel
           ─ read-optimized ─ new column ─ plan and compact ─ verify ─ history

Every answer is compared with a plain recomputation: the same changes, sorted by their position,
the last one of each key kept (`Truth`). One difference, and the demo fails.

Touches Spark, and a folder of its own.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
from polars.exceptions import PolarsError

from arcticlake.cli.output import Form, Screen, count_text
from arcticlake.errors import InvalidRequest
from arcticlake.lake import Lake, Table

ORDERS = "shop.orders"
CUSTOMERS = "shop.customers"
BATCHES = 4
BATCH_SHARE = 10
"""One batch changes a tenth as many rows as the table began with."""
CUSTOMERS_COUNT = 1000

ORDER_COLUMNS = """
    id as order_id,
    id % 1000 as customer_id,
    cast(pmod(hash(id, {salt}), 100000) * 0.01 as decimal(12,2)) as amount,
    element_at(array('new', 'paid', 'shipped', 'returned'), 1 + pmod(hash(id, {salt}, 1), 4))
        as status,
    timestamp'2026-11-01 00:00:00' + make_dt_interval(0, 0, 0, pmod(hash(id, 2), 864000))
        as created_at
"""
QUERY = """
    select c.country, count(*) as orders, sum(o.amount) as amount
    from shop.orders o join shop.customers c on o.customer_id = c.customer_id
    where o.status = 'paid'
    group by c.country order by c.country
"""


class Different(Exception):
    """An answer differs from the plain recomputation."""


@dataclass(slots=True)
class Truth:
    """What the table must hold, computed the obvious way."""

    rows: pl.DataFrame
    before: list[pl.DataFrame] = field(default_factory=list)
    """The rows as they were before each batch."""

    def apply(self, changes: pl.DataFrame) -> None:
        """Take a batch: the last change of each key wins, and a delete removes it."""
        self.before.append(self.rows)
        last = changes.sort("lsn").unique("order_id", keep="last")
        alive = last.filter(pl.col("op") != "D").select(self.rows.columns)
        self.rows = pl.concat([self.rows.join(last, on="order_id", how="anti"), alive])


@dataclass(slots=True)
class Stage:
    """Where the demo plays, and what it has told so far."""

    screen: Screen
    lake: Lake
    steps: list[dict[str, object]] = field(default_factory=list)

    @contextmanager
    def step(self, name: str, about: str) -> Iterator[list[str]]:
        """Run one step; its line has the seconds, and below it what the step shows."""
        shown: list[str] = []
        started = time.monotonic()
        yield shown
        seconds = time.monotonic() - started
        self.steps.append({"step": name, "about": about, "seconds": round(seconds, 2)})
        if self.screen.form is Form.TEXT:
            text = "\n".join("       " + line for block in shown for line in block.splitlines())
            self.screen.show(None, f"{seconds:5.1f}s {name:<11} {about}")
            self.screen.show(None, text)


def run_demo(screen: Screen, keep: Path | None, rows: int) -> bool:
    """Play the demo in a folder of its own; whether every answer was right."""
    if keep is not None:
        if keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
            message = f"{keep} is not an empty folder; name another one for --keep"
            raise InvalidRequest(message)
        return _play_in(str(keep), screen, rows, kept=True)
    with tempfile.TemporaryDirectory(prefix="arctic-demo-") as folder:
        return _play_in(folder, screen, rows, kept=False)


def _play_in(folder: str, screen: Screen, rows: int, *, kept: bool) -> bool:
    stage = Stage(screen, Lake.open(folder))
    started = time.monotonic()
    problem: str | None = None
    try:
        _play(stage, rows)
    except Different as difference:
        problem = str(difference)
    seconds = time.monotonic() - started
    if screen.form is Form.JSON:
        answer = {"ok": problem is None, "problem": problem, "seconds": round(seconds, 1)}
        screen.show({**answer, "steps": stage.steps}, "")
    elif problem is not None:
        screen.show(None, f"WRONG: {problem}")
    else:
        screen.show(None, f"\nEvery answer equals a plain recomputation. {seconds:.0f} s in all.")
        screen.show(None, _what_next(folder if kept else None))
    return problem is None


def _play(stage: Stage, rows: int) -> None:
    with stage.step("spark", "start a local session") as shown:
        shown.append(f"Spark {stage.lake.spark.version}")
    orders, truth = _load(stage, rows)
    for number in range(1, BATCHES + 1):
        _change(stage, orders, truth, number)
    with stage.step("tree", "the leaves, each with base files and pending changes") as shown:
        shown.append(str(orders.tree()))
    _query(stage, orders, truth)
    _travel(stage, orders, truth)
    _evolve(stage, orders, truth)
    _compact(stage, orders, truth)
    _prove(stage, orders)


def _load(stage: Stage, rows: int) -> tuple[Table, Truth]:
    lake, spark = stage.lake, stage.lake.spark
    with stage.step("create", f"{ORDERS} with primary key order_id, and {CUSTOMERS}"):
        orders = lake.create_table(
            ORDERS,
            "order_id bigint, customer_id bigint, amount decimal(12,2), status string, "
            "created_at timestamp",
            primary_key="order_id",
        )
        customers = lake.create_table(
            CUSTOMERS, "customer_id bigint, country string", primary_key="customer_id"
        )
    columns = ORDER_COLUMNS.format(salt=0)
    frame = spark.sql(f"select {columns} from range({rows})")  # noqa: S608 - our own text
    with stage.step("insert", f"{rows:,} orders straight into base") as shown:
        done = orders.insert(frame)
        shown.append(f"version {done.version}: {done.rows:,} rows in {done.files} files")
    countries = ["FR", "IN", "KE", "PE"]
    people = pl.DataFrame({"customer_id": range(CUSTOMERS_COUNT)}).with_columns(
        country=pl.col("customer_id").map_elements(lambda i: countries[i % 4], pl.String)
    )
    with stage.step("insert", f"{CUSTOMERS_COUNT:,} customers, from Polars"):
        customers.insert(people)
    return orders, Truth(_polars(frame.toArrow()))


def _change(stage: Stage, orders: Table, truth: Truth, number: int) -> None:
    """One batch of a change log: 80 % updates, 10 % inserts, 10 % deletes, keys repeat."""
    size = max(100, truth.rows.height // BATCH_SHARE)
    known = truth.rows.height + number * size
    columns = ORDER_COLUMNS.format(salt=number)
    text = f"""
        with log as (
            select id as lsn, case id % 10 when 0 then 'I' when 1 then 'D' else 'U' end as op
            from range({number * 10_000_000}, {number * 10_000_000 + size})
        ), keyed as (
            select lsn, op,
                   if(op = 'I', {known} + lsn % {size}, pmod(hash(lsn), {known})) as id
            from log
        )
        select {columns}, op, lsn from keyed
    """  # noqa: S608 - our own text
    changes = stage.lake.spark.sql(text)
    with stage.step("upsert", f"batch {number}: a change log with inserts, updates, deletes") as s:
        done = orders.upsert(changes, order_by="lsn", delete_when="op = 'D'")
        s.append(f"version {done.version}: {done.rows:,} changes in {done.files} files")
    truth.apply(_polars(changes.toArrow()))


def _query(stage: Stage, orders: Table, truth: Truth) -> None:
    with stage.step("read", "fresh to the last commit: orders by status") as shown:
        frame = orders.read().groupBy("status").count().orderBy("status")
        found = _polars(frame.toArrow())
        shown.append(_lines(found))
    wanted = truth.rows.group_by("status").agg(count=pl.len().cast(pl.Int64)).sort("status")
    _same(found, wanted, "the count of orders by status")

    with stage.step("to_arrow", "all rows without Spark, compared one by one") as shown:
        everything = _polars(orders.to_arrow())
        shown.append(f"{everything.height:,} rows")
    _same(everything.sort("order_id"), truth.rows.sort("order_id"), "the rows of the table")

    with stage.step("sql", "join of two tables, both fresh") as shown:
        found = _polars(stage.lake.sql(QUERY).toArrow())
        shown.append(_lines(found))
    country = pl.col("customer_id").replace_strict(
        list(range(CUSTOMERS_COUNT)), ["FR", "IN", "KE", "PE"] * (CUSTOMERS_COUNT // 4)
    )
    wanted = (
        truth.rows.filter(pl.col("status") == "paid")
        .group_by(country=country)
        .agg(orders=pl.len().cast(pl.Int64), amount=pl.col("amount").sum())
        .sort("country")
    )
    _same(found, wanted, "the join by SQL")


def _travel(stage: Stage, orders: Table, truth: Truth) -> None:
    entries = [entry for entry in reversed(orders.history()) if entry.compaction is None]
    versions = [entry.version for entry in entries]
    first = truth.before[0]
    with stage.step("travel", f"version {versions[0]}, before any change") as shown:
        count = orders.read(version=versions[0]).count()
        shown.append(f"{count:,} orders")
    _same(count, first.height, f"the count at version {versions[0]}")

    moment = entries[2].timestamp
    with stage.step("travel", f"timestamp {moment.isoformat()}, after batch 2") as shown:
        count = orders.read(timestamp=moment).count()
        shown.append(f"{count:,} orders")
    _same(count, truth.before[2].height, f"the count at {moment.isoformat()}")

    with stage.step("modes", "the same table read-optimized (base only) and fresh") as shown:
        base, fresh = orders.read(mode="base").count(), orders.read().count()
        shown.append(f"base {base:,} orders · fresh {fresh:,} orders")
    _same((base, fresh), (first.height, truth.rows.height), "the counts of both modes")


def _evolve(stage: Stage, orders: Table, truth: Truth) -> None:
    key = int(truth.rows["order_id"].min())  # type: ignore[arg-type]
    with stage.step("add_column", "note string; one order gets a value, the others are NULL") as s:
        orders.add_column("note", "string")
        row = truth.rows.filter(pl.col("order_id") == key).with_columns(note=pl.lit("gift"))
        orders.upsert(row)
        noted = orders.read(columns=["order_id", "note"], where="note is not null").collect()
        s.append(f"orders with a note: {[tuple(found) for found in noted]}")
    _same([tuple(found) for found in noted], [(key, "gift")], "the orders with a note")


def _compact(stage: Stage, orders: Table, truth: Truth) -> None:
    with stage.step("plan", "what a compaction would do now, and why") as shown:
        shown.append(orders.plan_compaction().explain())
    with stage.step("compact", "merge the changes into base; no version, no lock") as shown:
        shown.append(str(orders.compact()))
    base, fresh = (orders.to_arrow(mode=mode).num_rows for mode in ("base", "merged"))
    _same((base, fresh), (truth.rows.height, truth.rows.height), "the counts after the merge")


def _prove(stage: Stage, orders: Table) -> None:
    with stage.step("verify", "every rule against every file") as shown:
        verdict = orders.verify()
        shown.append(str(verdict).partition("\n")[0])
    if not verdict.ok:
        raise Different(str(verdict))
    with stage.step("history", "one history for batch and stream") as shown:
        for entry in orders.history():
            moment = f"{entry.timestamp:%H:%M:%S}"
            counted = count_text(entry.rows, "row")
            shown.append(f"{entry.version:>3}  {entry.kind:<8} {moment}  {counted:>14}")


def _polars(rows: object) -> pl.DataFrame:
    frame = pl.from_arrow(rows)
    assert isinstance(frame, pl.DataFrame), "a table becomes a frame"
    return frame


def _lines(frame: pl.DataFrame) -> str:
    return "\n".join("  ".join(f"{value!s:>12}" for value in row) for row in frame.iter_rows())


def _same(found: object, wanted: object, what: str) -> None:
    if isinstance(found, pl.DataFrame) and isinstance(wanted, pl.DataFrame):
        try:
            if found.equals(wanted.cast(found.schema).select(found.columns)):
                return
        except PolarsError:
            pass  # columns or types differ: that is a difference too
    elif found == wanted:
        return
    message = f"{what} differs.\nfound:\n{found}\nrecomputed:\n{wanted}"
    raise Different(message)


def _what_next(folder: str | None) -> str:
    lake = folder or "lake"
    if folder is None:
        look = f"arctic demo --keep {lake:<14} the same, and the lake stays to look around in"
    else:
        look = f"arctic --warehouse {lake} tree {ORDERS}    look around in what the demo left"
    python = f"from arcticlake import Lake; Lake.open('{lake}').table('{ORDERS}').read().show()"
    return "\n".join(
        [
            "What next:",
            "  README.md, docs/quickstart.md     twelve lines of Python, and the rest",
            "  arctic --help                     the same verbs in a terminal",
            f"  {look}",
            f'  then  python -c "{python}"',
        ]
    )
