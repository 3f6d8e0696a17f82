"""The obvious model of a table: a dict of rows, and a copy of it for every version."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from tests.properties.values import arrow_type, plain

Key = tuple[object, ...]
Row = Mapping[int, object]
"""Values by column identity, which a rename does not change."""


@dataclass(frozen=True)
class Column:
    """A column; identity stays for its life, and a later one of the same name has another."""

    identity: int
    name: str
    kind: str


@dataclass(frozen=True)
class Stored:
    """A live row and the version that wrote it."""

    row: Row
    version: int


@dataclass(frozen=True)
class Change:
    """One change row: what it says of a key, in the partition that a row like this lies in."""

    version: int
    key: Key
    row: Row
    dead: bool


@dataclass(frozen=True)
class Moment:
    """The table as it was at one version."""

    version: int
    columns: tuple[Column, ...]
    rows: Mapping[Key, Stored]


@dataclass
class Model:
    """What a table must answer."""

    columns: tuple[Column, ...]
    key: tuple[int, ...]
    rows: dict[Key, Stored] = field(default_factory=dict)
    moments: list[Moment] = field(default_factory=list)
    base: list[Row] | None = field(default_factory=list)
    """Rows that a reader of base alone sees; None after changes were merged in part."""
    rewritten: bool = False
    """Whether a compaction wrote files anew; then a row's version is only known from above."""
    unmerged: int | None = 0
    """Rows of base and change files together; None when that is not known any more."""
    places: tuple[int, ...] = ()
    """Partition columns outside the key: a row that changes one of them moves."""
    log: list[Change] = field(default_factory=list)
    """Every change row there ever was, in order."""
    waiting: list[Change] = field(default_factory=list)
    """Those that are live in the change table."""
    batch: int = 0
    """The version of the last batch that went into base."""

    def change(self, version: int, key: Key, row: Row, *, dead: bool) -> None:
        """Apply one change row; a row that moves leaves a delete where it was."""
        old = self.rows.pop(key, None)
        if old is not None and self.place(old.row) != self.place(row):
            self._note(Change(version, key, old.row, dead=True))
        self._note(Change(version, key, row, dead))
        if not dead:
            self.rows[key] = Stored(row, version)

    def _note(self, change: Change) -> None:
        self.log.append(change)
        self.waiting.append(change)

    def grew(self, rows: int) -> None:
        self.unmerged = None if self.unmerged is None else self.unmerged + rows

    def grow_base(self, rows: Sequence[Row]) -> None:
        self.base = None if self.base is None else [*self.base, *rows]

    def replace_base(
        self, rows: Sequence[Row], inside: Callable[[Row], bool], *, whole: bool
    ) -> None:
        if whole:
            self.base = list(rows)
        elif self.base is not None:
            self.base = [row for row in self.base if not inside(row)] + list(rows)

    def place(self, row: Row) -> Key:
        return tuple(row.get(identity) for identity in self.places)

    def overwritten(
        self, rows: Sequence[Row], inside: Callable[[Row], bool], since: int, version: int
    ) -> list[tuple[Key, Stored]]:
        """Return the content with all rows inside replaced, changes after `since` on top.

        A key that comes twice lives in two partitions.
        """
        found = {
            (key, self.place(stored.row)): stored
            for key, stored in self.rows.items()
            if not inside(stored.row)
        }
        found |= {(self.key_of(row), self.place(row)): Stored(row, version) for row in rows}
        for change in self.log:
            if change.version > since and inside(change.row):
                found.pop((change.key, self.place(change.row)), None)
                if not change.dead:
                    stored = Stored(change.row, change.version)
                    found[change.key, self.place(change.row)] = stored
        return [(key, stored) for (key, _), stored in found.items()]

    def key_of(self, row: Row) -> Key:
        return tuple(row[identity] for identity in self.key)

    def committed(self, version: int) -> None:
        assert version > (self.moments[-1].version if self.moments else 0)
        self.moments.append(Moment(version, self.columns, dict(self.rows)))

    def column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    def table_of(self, rows: Sequence[Row]) -> pa.Table:
        """Return rows as an Arrow table of the present columns."""
        arrays = {
            column.name: pa.array([row[column.identity] for row in rows], arrow_type(column.kind))
            for column in self.columns
        }
        return pa.table(arrays)


def shown(columns: Sequence[Column], stored: Iterable[tuple[Row, int | None]]) -> list[object]:
    """Return rows as they must be read with some columns: in no order, values told apart fully."""
    rows = [
        (*(plain(row.get(column.identity)) for column in columns), version)
        for row, version in stored
    ]
    return sorted(rows, key=repr)


def seen(rows: pa.Table, columns: Sequence[Column]) -> list[object]:
    """Return the rows that a read gave, in the same form; names must be those of the columns."""
    names = [column.name for column in columns]
    versioned = "_version" in rows.column_names
    assert rows.column_names == [*names, *(["_version"] if versioned else [])]
    found = [
        (*(plain(row[name]) for name in names), row["_version"] if versioned else None)
        for row in rows.to_pylist(maps_as_pydicts=None)
    ]
    return sorted(found, key=repr)
