"""How a JVM scan finds the bits of its file: by size where sizes differ, else by name.

A row of a Spark scan can see its file's size and name, and comparing a number is far cheaper than
hashing a name for every row. `split_by_size` finds a shift and a power of two such that
``(size >> shift) & (slots - 1)`` is different for every file; the bits of all files then lie in one
flat array behind a table of offsets:

    [ offset of slot 0, offset of slot 1, … | words of one file | words of the next | … ]

Files that share their size with another one, mostly tiny ones, are left to the name.

Pure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

import numpy as np

from arcticlake.resolve.bitmap import Words

_GLOB = re.compile(r"([\\?*\[\]{}])")
_KEPT = "_-!.~'()*,;:$&+=/@"
_SLOT_BITS_MAX = 16
_SHIFT_MAX = 16


@dataclass(frozen=True, slots=True)
class SizeTable:
    """Every file has a slot of its own: ``(size >> shift) & (slots - 1)``."""

    shift: int
    slots: int
    sizes: Mapping[str, int]

    @property
    def paths(self) -> frozenset[str]:
        """The files of the table."""
        return frozenset(self.sizes)

    def slot(self, path: str) -> int:
        """Return the slot of a file."""
        return (self.sizes[path] >> self.shift) & (self.slots - 1)


def split_by_size(
    files: Sequence[tuple[str, int]],
) -> tuple[SizeTable | None, tuple[str, ...]]:
    """Return a table of the files whose sizes tell them apart, and the paths of the others."""
    counts = Counter(size for _, size in files)
    alone = {path: size for path, size in files if counts[size] == 1}
    rest = tuple(path for path, _ in files if path not in alone)
    sizes = np.array(sorted(alone.values()), dtype=np.int64)
    if len(sizes) == 0:
        return None, rest
    for bits in range((len(sizes) - 1).bit_length(), _SLOT_BITS_MAX + 1):
        for shift in range(_SHIFT_MAX):
            slots = (sizes >> shift) & (2**bits - 1)
            if len(np.unique(slots)) == len(sizes):
                return SizeTable(shift, 2**bits, alone), rest
    return None, tuple(path for path, _ in files)


def flatten_words(table: SizeTable, words: Mapping[str, Words]) -> Words:
    """Return the offsets of all slots and behind them the words of all files."""
    offsets = np.zeros(table.slots, dtype=np.int64)
    parts = [offsets]
    end = table.slots
    for path in sorted(table.sizes):
        offsets[table.slot(path)] = end
        parts.append(words[path])
        end += len(words[path])
    return np.concatenate(parts)


def escape_glob(path: str) -> str:
    """Return a path that Spark takes as it stands, although it takes paths for patterns."""
    return _GLOB.sub(r"\\\1", path)


def spark_file_name(path: str) -> str:
    """Return the name of a file as `_metadata.file_name` spells it: like a URI, ASCII only."""
    name = path.rpartition("/")[2]
    return "".join(c if ord(c) > 127 else quote(c, safe=_KEPT) for c in name)
