"""What differs between two states of some rows, by their key.

    only before   delete, with the values that it had
    only after    insert
    in both       update_postimage, if any value differs; NULL equals NULL and NaN equals NaN

Deletes come first, then inserts, then updates, each by key.

Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from arcticlake.pull.columns import CHANGE_TYPE, DELETE, INSERT, UPDATE_AFTER

_OLD, _NEW = "__old", "__new"


def differ(before: pa.Table, after: pa.Table, key: Sequence[str]) -> pa.Table:
    """Return the rows that differ, with their `_change_type`; both states have the same columns."""
    old_keys, new_keys = _keys(before, key, _OLD), _keys(after, key, _NEW)
    pairs = old_keys.join(new_keys, on=list(key), how="full", coalesce=True).sort(*key)
    gone = pairs.filter(pl.col(_NEW).is_null())[_OLD].to_numpy()
    come = pairs.filter(pl.col(_OLD).is_null())[_NEW].to_numpy()
    both = pairs.filter(pl.col(_OLD).is_not_null(), pl.col(_NEW).is_not_null())
    old, new = both[_OLD].to_numpy(), both[_NEW].to_numpy()
    changed = np.zeros(len(new), dtype=bool)
    for name in before.column_names:
        if name not in key:
            changed |= _differing(before[name].take(old), after[name].take(new))
    parts = [
        _told(before, gone, DELETE),
        _told(after, come, INSERT),
        _told(after, new[changed], UPDATE_AFTER),
    ]
    return pa.concat_tables(parts)


def _keys(rows: pa.Table, key: Sequence[str], number: str) -> pl.DataFrame:
    frame = pl.from_arrow(rows.select(list(key)))
    assert isinstance(frame, pl.DataFrame)
    return frame.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias(number))


def _told(rows: pa.Table, numbers: npt.NDArray[np.int64], told: str) -> pa.Table:
    chosen = rows.take(pa.array(numbers, pa.int64()))
    return chosen.append_column(CHANGE_TYPE, pa.repeat(pa.scalar(told), chosen.num_rows))


def _differing(old: pa.ChunkedArray, new: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    if pa.types.is_nested(old.type):
        values = zip(old.to_pylist(), new.to_pylist(), strict=True)
        return np.array([a != b for a, b in values], dtype=bool)
    same = pc.fill_null(pc.equal(old, new), False)
    same = pc.or_(same, pc.and_(pc.is_null(old), pc.is_null(new)))
    if pa.types.is_floating(old.type):
        same = pc.or_(same, pc.fill_null(pc.and_(pc.is_nan(old), pc.is_nan(new)), False))
    mask: npt.NDArray[np.bool_] = ~same.to_numpy().astype(bool)
    return mask
