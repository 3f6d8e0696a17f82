"""The obvious model of a table: a dict of rows, and a copy of it for every version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
    base: list[Row] = field(default_factory=list)
    """Rows that batches wrote into base; nothing compacts here, so they stay."""
    unmerged: int = 0

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
