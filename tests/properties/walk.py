"""A random walk: one step after the other on a real table, and the same on its model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import strategies as st

from arcticlake import Lake
from arcticlake.commit.history import BASE_SNAPSHOT
from arcticlake.errors import InvalidRequest
from arcticlake.lake import Table
from tests.properties.conditions import COMPARED, conditions, literal, literals
from tests.properties.model import Column, Key, Model, Row, Stored
from tests.properties.values import KEY_KINDS, VALUES, WIDER

NAMES = ["alpha", "Beta", "gamma delta", "größe", "e_5", "zeta"]
KEYS_MAX = 8


@dataclass
class Walk:
    """One random history: the real table beside its model."""

    data: st.DataObject
    lake: Lake
    table: Table
    model: Model
    pool: Sequence[Key]
    """Keys to choose from; few, so that they meet."""
    fixed: frozenset[int]
    """Columns that cannot be dropped."""
    located: bool
    parted: tuple[int, ...]
    """Columns that are partition fields as they are."""
    taken: frozenset[str] = frozenset()
    """Names that partition fields keep when their columns are renamed."""
    identities: int = 1000

    @property
    def version(self) -> int:
        return self.model.moments[-1].version if self.model.moments else 0

    def draw(self, strategy: st.SearchStrategy[object]) -> object:
        return self.data.draw(strategy)

    def chance(self, one_in: int) -> bool:
        return self.data.draw(st.integers(1, one_in)) == one_in

    def keys(self, *, unique: bool = True) -> list[Key]:
        return self.data.draw(
            st.lists(st.sampled_from(self.pool), min_size=1, max_size=6, unique=unique)
        )

    def row(self, key: Key) -> Row:
        row: dict[int, object] = dict(zip(self.model.key, key, strict=True))
        for column in self.model.columns:
            if column.identity not in row:
                values = st.sampled_from(VALUES[column.kind])
                row[column.identity] = self.data.draw(st.none() | values)
        return row

    def frame(self, rows: pa.Table) -> object:
        """Return the rows as some frame, columns in some order, names in some case."""
        names = self.data.draw(st.permutations(rows.column_names))
        rows = rows.select(names)
        if self.chance(3):
            rows = rows.rename_columns([name.upper().replace("SS", "ß") for name in names])
            if [name.lower() for name in rows.column_names] != [name.lower() for name in names]:
                rows = rows.rename_columns(names)
        return pl.from_arrow(rows) if self.chance(4) and _polars_holds(rows) else rows


def _polars_holds(rows: pa.Table) -> bool:
    """Polars keeps no maps, and its times do not reach as far as these do."""
    return not any(
        pa.types.is_map(kind) or pa.types.is_timestamp(kind) or pa.types.is_nested(kind)
        for kind in rows.schema.types
    )


def start(data: st.DataObject, folder: str) -> Walk:
    """Create a table with random columns and keys."""
    key_kinds = data.draw(st.lists(st.sampled_from(KEY_KINDS), min_size=1, max_size=3))
    kinds = data.draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=4))
    names = [f"k{number}" for number in range(len(key_kinds))]
    named = list(zip(names, key_kinds, strict=True))
    key = [Column(number, name, kind) for number, (name, kind) in enumerate(named)]
    values = [Column(100 + number, NAMES[number], kind) for number, kind in enumerate(kinds)]
    by_key = [f"`{column.name}`" for column in key[1:]] + _transformed(key)
    by_value = [c.name for c in values if c.kind in {"string", "int", "date", "timestamp_ntz"}]
    partition_by = data.draw(st.lists(st.sampled_from([*by_key, *by_value, ""]), max_size=2))
    partition_by = list(filter(None, dict.fromkeys(partition_by)))
    sortable = [c.name for c in [*key, *values] if "<" not in c.kind]
    sort_by = data.draw(st.just(()) | st.sampled_from([(name,) for name in sortable]))
    located = any(term in by_value for term in partition_by)
    options: dict[str, object] = {"initial-nodes": data.draw(st.sampled_from([1, 2, 4, 8]))}
    if located:
        options["locate"] = True
    if data.draw(st.booleans()):
        options["leaf-commit-size"] = data.draw(st.sampled_from(["1", "2KB"]))
        options["target-file-size"] = data.draw(st.sampled_from(["1", "2KB"]))
    options["leaf-size"] = data.draw(st.sampled_from(["auto", "1", "3KB"]))
    options["collapse-changes"] = data.draw(st.booleans())
    lake = Lake.open(folder)
    columns = data.draw(st.permutations([*key, *values]))
    ddl = ", ".join(f"`{column.name}` {column.kind}" for column in columns)
    table = lake.create_table(
        "db.t",
        ddl,
        primary_key=names,
        partition_by=partition_by,
        sort_by=sort_by,
        options=options,
    )
    pool = data.draw(
        st.lists(
            st.tuples(*(st.sampled_from(VALUES[kind]) for kind in key_kinds)),
            min_size=1,
            max_size=KEYS_MAX,
            unique=True,
        )
    )
    fixed = {c.identity for c in [*key, *values] if c in key or c.name in {*partition_by, *sort_by}}
    model = Model(
        tuple(columns),
        tuple(column.identity for column in key),
        places=tuple(column.identity for column in values if column.name in partition_by),
    )
    parted = [c.identity for c in [*key, *values] if {c.name, f"`{c.name}`"} & {*partition_by}]
    taken = frozenset(name.strip("`") for name in partition_by)
    return Walk(data, lake, table, model, pool, frozenset(fixed), located, tuple(parted), taken)


def _transformed(key: Sequence[Column]) -> list[str]:
    terms = []
    for column in key:
        if column.kind in {"timestamp", "timestamp_ntz", "date"}:
            terms += [f"month({column.name})", f"year({column.name})", f"day({column.name})"]
        if column.kind in {"string", "int", "bigint"}:
            terms.append(f"truncate({column.name}, 2)")
    return terms


def upsert(walk: Walk) -> None:
    model = walk.model
    ordered, deleting = walk.chance(2), walk.chance(2)
    keys = walk.keys(unique=not ordered)
    rows = [walk.row(key) for key in keys]
    frame = model.table_of(rows)
    places = list(range(len(rows)))
    if ordered:
        places = walk.data.draw(st.permutations(places))
        frame = frame.append_column("Lsn", pa.array([10 * place - 20 for place in places]))
    gone = [deleting and walk.chance(3) for _ in rows]
    if deleting:
        frame = frame.append_column("op", pa.array(["D" if dead else "U" for dead in gone]))
    done = walk.table.upsert(
        walk.frame(frame),
        order_by="lsn" if ordered else None,
        delete_when="OP = 'D'" if deleting else None,
    )
    for _, key, row, dead in sorted(zip(places, keys, rows, gone, strict=True), key=_place):
        model.change(done.version, key, row, dead=dead)
    model.grew(done.rows)
    assert walk.located or done.rows == len(rows)
    model.committed(done.version)


def _place(entry: tuple[int, Key, Row, bool]) -> int:
    return entry[0]


def delete_keys(walk: Walk) -> None:
    model = walk.model
    keys = walk.keys()
    columns = [column for column in model.columns if column.identity in model.key]
    frame = replace(model, columns=tuple(columns)).table_of(
        [dict(zip(model.key, key, strict=True)) for key in keys]
    )
    done = walk.table.delete(walk.frame(frame))
    known = [key for key in keys if key in model.rows or not walk.located]
    if not known:
        assert (done.version, done.rows) == (walk.version, 0)
        return
    for key in known:
        stored = model.rows.get(key)
        named = dict(zip(model.key, key, strict=True))
        model.change(done.version, key, stored.row if stored else named, dead=True)
    model.grew(done.rows)
    model.committed(done.version)


def delete_where(walk: Walk) -> None:
    model = walk.model
    condition = walk.data.draw(conditions(model.columns))
    gone = [key for key, stored in model.rows.items() if condition.truth(stored.row)]
    done = walk.table.delete(condition.sql)
    if not gone:
        assert (done.version, done.rows) == (walk.version, 0)
        return
    for key in gone:
        model.change(done.version, key, model.rows[key].row, dead=True)
    model.grew(done.rows)
    model.committed(done.version)


def insert(walk: Walk) -> None:
    model = walk.model
    keys = walk.keys()
    rows = [walk.row(key) for key in keys]
    frame = walk.frame(model.table_of(rows))
    if any(key in model.rows for key in keys):
        with pytest.raises(InvalidRequest, match=r"db\.t.*exists already"):
            walk.table.insert(frame)
        return
    done = walk.table.insert(frame)
    if BASE_SNAPSHOT in walk.table.history()[0].summary:
        model.rows |= {k: Stored(row, done.version) for k, row in zip(keys, rows, strict=True)}
        model.grow_base(rows)
        model.batch = done.version
    else:  # base still holds a deleted row of one of the keys
        for key, row in zip(keys, rows, strict=True):
            model.change(done.version, key, row, dead=False)
    model.grew(len(rows))
    model.committed(done.version)


def overwrite(walk: Walk) -> None:
    model = walk.model
    where, inside = _region(walk)
    rows = [row for row in map(walk.row, walk.keys()) if inside(row)]
    able = [model.batch, *(m.version for m in model.moments if m.version > model.batch)]
    since = walk.data.draw(st.none() | st.sampled_from(able))
    start = walk.version if since is None else since
    frame = walk.frame(model.table_of(rows))
    content = model.overwritten(rows, inside, start, walk.version + 1)
    if rows and len(dict(content)) < len(content):
        with pytest.raises(InvalidRequest, match=r"db\.t.*would live twice"):
            walk.table.overwrite(frame, where=where, change_version=since)
        return
    done = walk.table.overwrite(frame, where=where, change_version=since)
    if done.version == walk.version:
        assert where is not None
        assert not rows
        assert dict(content) == model.rows
        return
    model.rows = dict(model.overwritten(rows, inside, start, done.version))
    model.replace_base(rows, inside, whole=where is None)
    model.waiting = [change for change in model.waiting if not inside(change.row)]
    model.waiting += [c for c in model.log if c.version > start and inside(c.row)]
    known = model.base is not None and not walk.located and not model.rewritten
    model.unmerged = len(model.base or ()) + len(model.waiting) if known else None
    model.batch = done.version
    model.committed(done.version)


def compact(walk: Walk) -> None:
    model = walk.model
    kind = walk.data.draw(st.sampled_from(["minor", "major", "full", "auto"]))
    to_version = None
    if kind in {"major", "full"} and walk.chance(3):
        to_version = walk.data.draw(st.sampled_from([0, *(m.version for m in model.moments)]))
    done = walk.table.compact(kind, to_version=to_version)
    assert done.skipped == ()
    if done.kind == "none":
        return
    model.rewritten = True
    model.unmerged = None
    if kind in {"major", "full"} and to_version is None:
        model.base = [stored.row for stored in model.rows.values()]
        model.unmerged = len(model.base)
    elif kind != "minor":
        model.base = None  # merged in part


def _region(walk: Walk) -> tuple[str | None, Callable[[Row], bool]]:
    """Return a condition that selects whole partitions, or none, and the rows inside."""
    if not walk.parted or walk.chance(3):
        return None, lambda _: True
    chosen = walk.data.draw(st.sampled_from(walk.parted))
    column = next(column for column in walk.model.columns if column.identity == chosen)
    name = f"`{column.name}`"
    if column.kind not in COMPARED or walk.chance(4):
        is_null = walk.chance(2)
        sql = f"{name} is null" if is_null else f"{name} is not null"
        return sql, lambda row: (row.get(chosen) is None) == is_null
    value = walk.data.draw(st.sampled_from(literals(column.kind)))
    if walk.chance(2):
        return f"{name} = {literal(value, column.kind)}", lambda row: row.get(chosen) == value
    return (
        f"{name} <> {literal(value, column.kind)}",
        lambda row: row.get(chosen) is not None and row.get(chosen) != value,
    )


def add(walk: Walk) -> None:
    used = {c.name for c in walk.model.columns} | walk.taken
    free = [name for name in NAMES if name not in used]
    if not free:
        return
    name = walk.data.draw(st.sampled_from(free))
    kind = walk.data.draw(st.sampled_from(sorted(VALUES)))
    walk.table.add_column(name, kind)
    walk.identities += 1
    walk.model.columns = (*walk.model.columns, Column(walk.identities, name, kind))


def rename(walk: Walk) -> None:
    column = walk.data.draw(st.sampled_from(walk.model.columns))
    used = {c.name for c in walk.model.columns} | walk.taken
    free = [name for name in (*NAMES, "k_0", "k9") if name not in used]
    name = walk.data.draw(st.sampled_from(free))
    walk.table.rename_column(column.name, name)
    _swap(walk.model, column, replace(column, name=name))


def drop(walk: Walk) -> None:
    column = walk.data.draw(st.sampled_from(walk.model.columns))
    if column.identity in walk.fixed:
        with pytest.raises(InvalidRequest, match=r"db\.t.*cannot be dropped"):
            walk.table.drop_column(column.name)
        return
    walk.table.drop_column(column.name)
    _swap(walk.model, column, None)


def widen(walk: Walk) -> None:
    able = [column for column in walk.model.columns if column.kind in WIDER]
    if not able:
        return
    column = walk.data.draw(st.sampled_from(able))
    walk.table.widen_column(column.name, WIDER[column.kind])
    _swap(walk.model, column, replace(column, kind=WIDER[column.kind]))


def move(walk: Walk) -> None:
    column = walk.data.draw(st.sampled_from(walk.model.columns))
    walk.table.move_column(column.name)
    rest = [other for other in walk.model.columns if other != column]
    walk.model.columns = (column, *rest)


def reopen(walk: Walk) -> None:
    walk.table = walk.lake.table("db.t")


def _swap(model: Model, old: Column, new: Column | None) -> None:
    found = [new if column == old else column for column in model.columns]
    model.columns = tuple(column for column in found if column is not None)


STEPS: Mapping[str, Callable[[Walk], None]] = {
    "upsert": upsert,
    "upsert again": upsert,
    "insert": insert,
    "overwrite": overwrite,
    "compact": compact,
    "compact again": compact,
    "delete keys": delete_keys,
    "delete where": delete_where,
    "add": add,
    "rename": rename,
    "drop": drop,
    "widen": widen,
    "move": move,
    "reopen": reopen,
}
