"""Where a range of values is cut, and which part each value falls into.

    cuts        c1     c2          c3
    parts    0  │  1   │     2     │  3
              NULL goes to part 0, NaN to the last: the order in which rows are sorted

A value equal to a cut opens the part above it, so equal values always share a part, and files made
of different parts have disjoint ranges.

Pure.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


def part_of(column: pa.ChunkedArray | pa.Array, cuts: pa.Array) -> npt.NDArray[np.int32]:
    """Return the part of every value."""
    parts = np.zeros(len(column), dtype=np.int32)
    for cut in cuts:
        reached = pc.fill_null(pc.greater_equal(column, cut), False)
        parts += reached.to_numpy(zero_copy_only=False)
    if pa.types.is_floating(column.type):
        nan = pc.fill_null(pc.is_nan(column), False)
        parts[nan.to_numpy(zero_copy_only=False)] = len(cuts)
    return parts


def cut_evenly(sample: pa.Array, parts: int) -> pa.Array:
    """Return cuts that give every part about as many values of the sample; fewer if values repeat.

    No cut is the lowest value: the part below it would be empty.
    """
    known = sample.drop_null()
    if pa.types.is_floating(known.type):
        known = known.filter(pc.invert(pc.is_nan(known)))
    if parts <= 1 or len(known) == 0:
        return known.slice(0, 0)
    ordered = known.take(pc.sort_indices(known))
    places = [len(ordered) * number // parts for number in range(1, parts)]
    chosen = pc.unique(ordered.take(pa.array(places, pa.int64())))
    return chosen.filter(pc.greater(chosen, ordered[0]))
