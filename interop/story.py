"""The story that both sides tell: every table, and the rows it must hold at each moment.

Nothing here asks an engine: what is expected is computed from plain dictionaries, so that neither
Arctic nor the other engines are their own judge.

    DAYS        partitioned by day, trees of mixed depth, schema evolved; two engines read it
    LOOKED_UP   one depth, one file a node: a look-up by key must read one file
    LAKE        one table for each act of another engine, all loaded alike

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from hashlib import sha256

Row = dict[str, object]
Rows = dict[object, Row]
"""Rows by key."""

NAMESPACE = "lab"
OPTIONS = {"initial-nodes": 2, "target-file-size": 7000, "leaf-commit-size": 7000}
"""Files close at 7,000 bytes, so that a few thousand rows make trees of several depths."""

# --- DAYS: what every engine must read alike ---------------------------------------------------

DAYS = f"{NAMESPACE}.days"
DAYS_SCHEMA = (
    "id bigint, at timestamp, name string, qty int, price decimal(9,2), tags array<string>"
)
_ROWS_OF_DAY = (2400, 900, 60)
_MIDNIGHT = datetime(2026, 3, 1, tzinfo=UTC)


def _order(number: int, day: int, name: str, qty: int | None) -> Row:
    return {
        "id": number,
        "at": _MIDNIGHT + timedelta(days=day, microseconds=number),
        "name": f"{name} {_noise(number)} ü😀",
        "qty": qty,
        "price": Decimal(number) / 100,
        "tags": None if number % 5 == 0 else [f"t{number % 3}", "…"],
    }


def days_loaded() -> list[Row]:
    """Return the first batch: a full day, a smaller one, a nearly empty one."""
    return [
        _order(number, day, "first", None if number % 11 == 0 else number)
        for day, count in enumerate(_ROWS_OF_DAY)
        for number in range(count)
    ]


def days_upserted() -> list[Row]:
    """Return changes of existing keys and of new ones, before the schema changes."""
    return [_order(number, 0, "changed", -number) for number in range(2300, 2500)]


def days_deleted() -> list[Row]:
    """Return keys to delete."""
    return [_key(_order(number, 1, "", 0)) for number in range(100)]


def _key(row: Row) -> Row:
    return {"id": row["id"], "at": row["at"]}


def days_loaded_later() -> list[Row]:
    """Return a batch in the new schema, with values that the old one could not hold."""
    return [_evolved(_order(number, 2, "later", 2**40 + number)) for number in range(60, 200)]


def days_upserted_later() -> list[Row]:
    """Return changes in the new schema."""
    return [_evolved(_order(number, 1, "later", -(2**40))) for number in range(50, 120)]


def _evolved(row: Row) -> Row:
    renamed = {("title" if name == "name" else name): value for name, value in row.items()}
    return {**renamed, "price": Decimal(99_999_999) + Decimal("0.25"), "note": f"n{row['id']}"}


def _as_evolved(row: Row) -> Row:
    """Return a row of the old schema as the new one shows it."""
    return {("title" if name == "name" else name): value for name, value in row.items()} | {
        "note": None
    }


def days_base() -> list[Row]:
    """Return the rows of the base table in the new schema."""
    return [*map(_as_evolved, days_loaded()), *days_loaded_later()]


def days_changes() -> list[Row]:
    """Return the rows of the change table, without places in history."""
    deleted = [dict.fromkeys(days_base()[0]) | key for key in days_deleted()]
    return [
        *({**_as_evolved(row), "_action": "+U"} for row in days_upserted()),
        *({**row, "_action": "-D"} for row in deleted),
        *({**row, "_action": "+U"} for row in days_upserted_later()),
    ]


def days_merged() -> list[Row]:
    """Return what a fresh read must answer."""
    rows = {(row["id"], row["at"]): row for row in days_base()}
    for change in days_changes():
        key = (change["id"], change["at"])
        row = {name: value for name, value in change.items() if name != "_action"}
        rows.pop(key, None)
        if change["_action"] != "-D":
            rows[key] = row
    return list(rows.values())


# --- The tables that other engines write to ----------------------------------------------------

SCHEMA = "id bigint, name string, qty int"
LOOKED_UP = f"{NAMESPACE}.looked_up"
LOOKED_UP_NODES = 16
INSERTED = f"{NAMESPACE}.inserted"
DELETED = f"{NAMESPACE}.deleted"
OVERWRITTEN = f"{NAMESPACE}.overwritten"
MERGED = f"{NAMESPACE}.merged"
CHANGES = f"{NAMESPACE}.changes_rewritten"
COMPACTED = f"{NAMESPACE}.compacted"
MIXED_UP = f"{NAMESPACE}.mixed_up"
EXPIRED = f"{NAMESPACE}.expired"
LAKE = (INSERTED, DELETED, OVERWRITTEN, MERGED, CHANGES, COMPACTED, MIXED_UP, EXPIRED)
WITH_RETURNED = {MIXED_UP, EXPIRED}

LOADED = range(1300)
CHANGED = range(100, 200)
REMOVED = range(180, 240)
RETURNED = range(5000, 5010)
"""Keys that are upserted, deleted, and then inserted as a batch: base must show them again."""
LAST = range(7000, 7003)
"""Keys of the last write of ours, after the other engine."""


def made(ids: Iterable[int], name: str, qty: int = 1) -> list[Row]:
    """Return rows with these ids."""
    rows = [{"id": number, "name": f"{name} {_noise(number)}", "qty": qty} for number in ids]
    return sorted(rows, key=lambda row: str(row["name"]))  # so that bounds of ids cannot prune


def _noise(number: int) -> str:
    """Return text that does not compress, so that few rows fill a file."""
    return sha256(str(number).encode()).hexdigest()


def _by_key(rows: Iterable[Row]) -> Rows:
    return {row["id"]: row for row in rows}


def base_before(table: str) -> Rows:
    """Return the base rows before the other engine acts."""
    rows = _by_key(made(LOADED, "loaded"))
    return rows | _by_key(made(RETURNED, "returned")) if table in WITH_RETURNED else rows


def base_after(table: str) -> Rows:
    """Return the base rows after the other engine acted."""
    rows = base_before(table)
    if table == INSERTED:
        return rows | _by_key(made(SPARK_INSERTED, "spark"))
    if table == DELETED:
        return {key: row for key, row in rows.items() if not spark_deletes(key)}
    if table == MERGED:
        merged = {
            key: {**row, "qty": -7} if key in SPARK_MERGED else row for key, row in rows.items()
        }
        new = made([number for number in SPARK_MERGED if number not in rows], "spark", -7)
        return merged | _by_key(new)
    return rows


def apply_pending(rows: Mapping[object, Row]) -> Rows:
    """Return base rows with the pending changes on top."""
    merged = dict(rows) | _by_key(made(CHANGED, "changed", 2))
    return {key: row for key, row in merged.items() if key not in REMOVED}


SPARK_INSERTED = range(9000, 9200)
SPARK_MERGED = range(150, 1600, 7)
"""Keys of a MERGE: some have pending changes, some are pending deletes, some are new."""


def spark_deletes(key: object) -> bool:
    """Whether the other engine's DELETE takes a key."""
    assert isinstance(key, int)
    return key % 10 == 3


SPARK_DELETE_CONDITION = "id % 10 = 3"


# --- One form for all engines --------------------------------------------------------------------


def canonical(rows: Iterable[Mapping[str, object]]) -> list[str]:
    """Return rows as sorted text that does not depend on who read them."""
    return sorted(repr(sorted((name, _plain(row[name])) for name in row)) for row in rows)


def _plain(value: object) -> object:
    match value:
        case datetime():
            zoned = value if value.tzinfo else value.replace(tzinfo=UTC)
            return zoned.astimezone(UTC).isoformat()
        case date():
            return value.isoformat()
        case Decimal():
            return f"{value:.2f}"
        case list() | tuple():
            return [_plain(item) for item in value]
    return value


def difference(found: Iterable[Row], wanted: Iterable[Row]) -> str:
    """Say how rows differ from what they must be; empty if they do not."""
    here, there = canonical(found), canonical(wanted)
    if here == there:
        return ""
    extra, missing = sorted(set(here) - set(there)), sorted(set(there) - set(here))
    return (
        f"{len(here)} rows found, {len(there)} wanted; {len(extra)} not wanted, such as "
        f"{extra[:2]}; {len(missing)} missing, such as {missing[:2]}"
    )
