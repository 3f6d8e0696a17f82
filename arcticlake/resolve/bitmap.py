"""Dead rows of one file as bits: row r is dead when bit r % 64 of word r // 64 is set.

The words travel to the JVM as an array of longs, where one shift and one mask test a row.

Pure.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]
Words = npt.NDArray[np.int64]


def words_of(dead: Mask) -> Words:
    """Return the bits of a mask as 64-bit words, lowest row first."""
    packed = np.packbits(dead, bitorder="little")
    padding = -len(packed) % 8
    if padding:
        packed = np.concatenate([packed, np.zeros(padding, dtype=np.uint8)])
    return packed.view(np.int64)


def mask_of(words: Words, rows: int) -> Mask:
    """Return the mask of a file with this many rows; the reverse of `words_of`."""
    bits = np.unpackbits(words.view(np.uint8), bitorder="little")
    return bits[:rows].astype(bool)
