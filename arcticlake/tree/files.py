"""FileEntry: the one description of a data file that planners see.

It is what a manifest says of the file, decoded once: where the file lies in the tree, how much
is in it, between which keys, and which commit brought it. Planners never open files.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile

    from arcticlake.tree.node import Node

Bounds: TypeAlias = tuple[object, ...]
"""One value for each column of a key; None where the manifest does not know."""


class Role(StrEnum):
    """Which of the two tables a file belongs to."""

    BASE = "base"
    CHANGE = "change"


@dataclass(frozen=True, slots=True, eq=False)
class FileEntry:
    """One live data file of the base or the change table."""

    path: str
    role: Role
    partition: tuple[object, ...]
    """Values of the user's partition fields, in spec order, without the bucket."""
    node: Node
    rows: int
    bytes: int
    key_lower: Bounds
    key_upper: Bounds
    sort_lower: Bounds
    sort_upper: Bounds
    snapshot_id: int
    """The snapshot that added the file."""
    sequence: int
    """The Iceberg data sequence number; for a change file this is its version."""
    data_file: DataFile = field(repr=False)
    """The manifest's own record, for metrics and for removal."""
    oldest: int = 0
    """The lowest sequence of a row in a change file; 0 stands for `sequence`, since only a rewrite
    of change files puts rows of several commits into one file."""
    row_deletes: tuple[DataFile, ...] = field(default=(), repr=False)
    """Position-delete files and deletion vectors of another engine that may name this file."""

    @property
    def sequence_min(self) -> int:
        """The lowest commit sequence among its rows."""
        return self.oldest or self.sequence


@dataclass(frozen=True, slots=True)
class TableFiles:
    """The live files of both tables at one moment."""

    bases: tuple[FileEntry, ...]
    changes: tuple[FileEntry, ...]

    @property
    def all(self) -> tuple[FileEntry, ...]:
        """Return the files of both tables."""
        return (*self.bases, *self.changes)
