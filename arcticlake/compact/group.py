"""Files that must be rewritten together.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from arcticlake.tree.files import FileEntry
from arcticlake.tree.node import Node


@dataclass(frozen=True, slots=True)
class Piece:
    """Files that one task reads together and writes anew."""

    bases: tuple[FileEntry, ...]
    changes: tuple[FileEntry, ...]
    outputs: tuple[Node, ...]
    """Disjoint leaves that the rows go to; mostly one."""

    @property
    def files(self) -> tuple[FileEntry, ...]:
        """Every file that is read: base first."""
        return (*self.bases, *self.changes)

    @property
    def rows(self) -> int:
        """How many rows are read."""
        return sum(file.rows for file in self.files)

    @property
    def bytes(self) -> int:
        """How many bytes are read."""
        return sum(file.bytes for file in self.files)
