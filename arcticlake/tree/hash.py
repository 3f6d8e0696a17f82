"""The key hash on Arrow arrays, and the partition values of rows.

The hash is Iceberg's own bucket hash (murmur3, 31 bits); `bucket(array, 2**30)` hands out its low
30 bits, of which a node looks at the last few. Partition values come from the same library, so a
row lands where every Iceberg writer would put it. Runs on executors: no pyiceberg import.

Values leave in their plain Iceberg form: dates as days, timestamps as microseconds.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg_core import transform

HASH_BUCKETS = 2**30


@dataclass(frozen=True, slots=True)
class PlaceTerm:
    """One partition field as executors see it: a transform of a column, by name."""

    column: str
    transform: str
    """identity, year, month, day, hour or truncate."""
    width: int = 0
    name: str = ""
    """Name of the partition field, for the directory."""


def key_hash(keys: pa.ChunkedArray | pa.Array) -> npt.NDArray[np.int32]:
    """Return the low 30 bits of every key's hash; a null, which no table takes, hashes to 0."""
    array = _plain(keys)
    if len(array) == 0:
        return np.empty(0, dtype=np.int32)
    hashed = transform.bucket(array, HASH_BUCKETS).fill_null(0)
    numbers: npt.NDArray[np.int32] = hashed.to_numpy(zero_copy_only=False)
    return numbers


def partition_values(rows: pa.Table, term: PlaceTerm) -> pa.Array:
    """Return the value of one partition field for every row, in plain Iceberg form."""
    array = _plain(rows.column(term.column))
    match term.transform:
        case "identity":
            value = array
        case "truncate":
            value = transform.truncate(array, term.width)
        case "year" | "month" | "day" | "hour":
            value = getattr(transform, term.transform)(array)
        case unknown:
            message = f"no transform {unknown}"
            raise AssertionError(message)
    return _days_and_micros(value)


def _plain(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return one array of a kind that the hash library takes, in memory it can read."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks)
    kind = array.type
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return array.cast(pa.string())
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return array.cast(pa.binary())
    if pa.types.is_dictionary(kind):
        return _plain(array.dictionary_decode())
    if pa.types.is_int8(kind) or pa.types.is_int16(kind):
        return array.cast(pa.int32())
    if pa.types.is_timestamp(kind) and kind.unit != "us":
        return array.cast(pa.timestamp("us", kind.tz))
    if pa.types.is_decimal(kind):
        # The library panics on decimals that are not 16-byte aligned, as Spark's often are.
        return pa.concat_arrays([array, array.slice(0, 0)])
    return array


def _days_and_micros(values: pa.Array) -> pa.Array:
    if pa.types.is_date(values.type):
        return pc.cast(values, pa.int32())
    if pa.types.is_timestamp(values.type):
        return pc.cast(values, pa.int64())
    return values
