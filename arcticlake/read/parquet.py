"""Reading data files: keys for a resolution, live rows for a scan.

The functions run in-process or on an executor; they know files, columns by field id, and masks
of dead rows, and nothing of catalogs or plans.

Touches data files, which it only reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from arcticlake.errors import CorruptData
from arcticlake.read.project import find_field, project
from arcticlake.resolve.bitmap import Mask
from arcticlake.resolve.kernel import BaseKeys, ChangeKeys, resolve
from arcticlake.table.storage import Storage

BATCH_ROWS = 128 * 1024


@dataclass(frozen=True, slots=True)
class FileToResolve:
    """One file of a resolution."""

    path: str
    sequence: int
    positions: npt.NDArray[np.int64] | None = None
    """Rows that another engine deleted by position."""


@dataclass(frozen=True, slots=True)
class ResolveJob:
    """One group of files whose rows may hide one another; pickles to executors."""

    storage: Storage
    key_schema: pa.Schema
    """Key columns with field ids."""
    hidden_schema: pa.Schema
    """`_action`, `_order` and `_seq` with field ids."""
    bases: tuple[FileToResolve, ...]
    changes: tuple[FileToResolve, ...]


@dataclass(frozen=True, slots=True)
class ScanJob:
    """Live rows of some files; pickles to executors."""

    storage: Storage
    schema: pa.Schema
    """Wanted columns with field ids."""
    paths: tuple[str, ...]
    dead: Mapping[str, Mask] = field(default_factory=dict)


def run_resolve(job: ResolveJob) -> Mapping[str, Mask]:
    """Return the dead rows of every file of the group."""
    key = job.key_schema.names
    change_schema = pa.schema([*job.key_schema, *job.hidden_schema])
    changes = [
        ChangeKeys(file.path, file.sequence, read_frame(job.storage, file.path, change_schema))
        for file in job.changes
    ]
    bases = [
        BaseKeys(file.path, file.sequence, read_frame(job.storage, file.path, job.key_schema))
        for file in job.bases
    ]
    dead = resolve(bases, changes, key)
    for file in job.bases:
        if file.positions is not None:
            dead[file.path][file.positions] = True
    return dead


def read_frame(storage: Storage, path: str, schema: pa.Schema) -> pl.DataFrame:
    """Return columns of one file as a Polars frame, rows in file order."""
    batches = list(read_batches(storage, path, schema))
    rows = pa.Table.from_batches(batches, schema=pa.schema([f.with_nullable(True) for f in schema]))
    frame = pl.from_arrow(rows)
    assert isinstance(frame, pl.DataFrame)
    return frame


def read_batches(
    storage: Storage, path: str, schema: pa.Schema, *, batch_rows: int = BATCH_ROWS
) -> Iterator[pa.RecordBatch]:
    """Yield the wanted columns of one file, batch by batch, in file order."""
    with open_file(storage, path) as file:
        present = file.schema_arrow
        names = [found.name for column in schema if (found := find_field(column, present))]
        if not names:
            yield from _all_null(file.metadata.num_rows, schema)
            return
        try:
            for batch in file.iter_batches(batch_size=batch_rows, columns=names, use_threads=True):
                yield project(batch, schema)
        except (OSError, pa.ArrowInvalid) as error:
            message = f"data file {path} cannot be read: {error}; run verify()"
            raise CorruptData(message) from error


def open_file(storage: Storage, path: str) -> pq.ParquetFile:
    """Open a data file; say which one when it is missing or broken."""
    system, place = storage.open(path)
    try:
        return pq.ParquetFile(
            place, filesystem=system, page_checksum_verification=True, pre_buffer=True
        )
    except FileNotFoundError as error:
        message = f"data file {path} is missing; run verify() to see what else is"
        raise CorruptData(message) from error
    except (OSError, pa.ArrowInvalid) as error:
        message = f"data file {path} cannot be opened: {error}; run verify()"
        raise CorruptData(message) from error


def _all_null(rows: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    optional = pa.schema([column.with_nullable(True) for column in schema])
    for start in range(0, rows, BATCH_ROWS):
        count = min(BATCH_ROWS, rows - start)
        yield pa.RecordBatch.from_arrays(
            [pa.nulls(count, column.type) for column in schema], schema=optional
        )


def scan_rows(job: ScanJob) -> Iterator[pa.RecordBatch]:
    """Yield the live rows of the files, with the wanted columns."""
    for path in job.paths:
        yield from scan_file(job.storage, path, job.schema, job.dead.get(path))


def scan_file(
    storage: Storage, path: str, schema: pa.Schema, dead: Mask | None
) -> Iterator[pa.RecordBatch]:
    """Yield the live rows of one file."""
    start = 0
    for batch in read_batches(storage, path, schema):
        if dead is None:
            yield batch
            continue
        alive = ~dead[start : start + batch.num_rows]
        start += batch.num_rows
        if alive.any():
            yield batch.filter(pa.array(alive))


def keep_matching(batch: pa.RecordBatch, condition: pc.Expression | None) -> pa.RecordBatch:
    """Return the rows of a batch that meet a condition."""
    return batch if condition is None else batch.filter(condition)


def count_rows(storage: Storage, paths: Sequence[str]) -> int:
    """Return how many rows the files hold, from their footers."""
    total = 0
    for path in paths:
        with open_file(storage, path) as file:
            total += file.metadata.num_rows
    return total
