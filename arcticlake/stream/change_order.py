"""The number that orders all changes of one key, for whoever takes them out of a stream.

Two changes of one key are ordered by version, then by their place in the commit, then an ending
before what replaces it. One number says it all:

    _change_order = version · 2^31 + 2 · rank of the place + (0 if the row ends the key, else 1)

The rank counts the places in the files that may hold the same key, from 1; no place has rank 0.

Pure.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from arcticlake.pull.columns import COMMIT_VERSION, ENDS
from arcticlake.table.change import ORDER

CHANGE_ORDER = "_change_order"
VERSION_STEP = 2**31

Places = npt.NDArray[np.int64]


def distinct_places(parts: list[pa.Array]) -> Places:
    """Return the places in a commit that rows have, each once and in order."""
    values = pa.chunked_array(parts, pa.int64()).drop_null()
    return np.unique(values.to_numpy())


def change_order(rows: pa.RecordBatch, places: Places) -> pa.Array:
    """Return the number of each travelling row that orders it among the changes of its key."""
    assert 2 * len(places) + 1 < VERSION_STEP - 1, "a commit has fewer places than fit a step"
    at = rows.column(ORDER)
    known = pc.fill_null(at, 0).to_numpy(zero_copy_only=False)
    ranks = np.where(at.is_null().to_numpy(zero_copy_only=False), 0, 1 + places.searchsorted(known))
    versions = rows.column(COMMIT_VERSION).to_numpy(zero_copy_only=False)
    lives = ~rows.column(ENDS).to_numpy(zero_copy_only=False)
    return pa.array(versions * VERSION_STEP + 2 * ranks + lives, pa.int64())
