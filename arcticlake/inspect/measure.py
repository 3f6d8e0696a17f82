"""How much there is: files, rows and bytes, and which change files still wait.

A counter always says what it counts (PAC-08): base rows and change rows are never added up into a
total, because neither of them, nor their sum, is the number of live rows.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from arcticlake.commit.history import View
from arcticlake.compact.explain import readable_bytes
from arcticlake.tree.files import FileEntry


@dataclass(frozen=True, slots=True)
class Amount:
    """Some files together."""

    files: int = 0
    rows: int = 0
    bytes: int = 0

    def __str__(self) -> str:
        files = f"{self.files} file" + ("" if self.files == 1 else "s")
        rows = f"{self.rows:,} row" + ("" if self.rows == 1 else "s")
        return f"{files} {rows} {readable_bytes(self.bytes)}"


def measure(files: Iterable[FileEntry]) -> Amount:
    """Return how much some files hold, by their manifest."""
    listed = tuple(files)
    return Amount(len(listed), sum(f.rows for f in listed), sum(f.bytes for f in listed))


def is_pending(file: FileEntry, view: View) -> bool:
    """Whether a change file is not merged into base yet."""
    node = file.node
    return not view.watermark.covers(file.partition, node.mask, node.index, file.sequence)
