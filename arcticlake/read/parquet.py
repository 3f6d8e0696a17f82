"""Reading data files: keys for a resolution, live rows for a scan.

The functions run in-process or on an executor; they know files, columns by field id, and masks
of dead rows, and nothing of catalogs or plans.

Touches data files, which it only reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from arcticlake.errors import CorruptData
from arcticlake.read.project import find_field, project
from arcticlake.resolve.bitmap import Mask
from arcticlake.resolve.job import FileToResolve, ResolveJob
from arcticlake.resolve.kernel import KeysOfBase, KeysOfChange, resolve
from arcticlake.table.change import ACTION, ORDER, SEQ
from arcticlake.table.storage import Storage
from arcticlake.tree.files import Role

BATCH_ROWS = 128 * 1024
KEY_ROWS = 4 * 2**20
"""Base rows whose keys a resolution holds at once."""
VERSION = "_version"


def run_resolve(job: ResolveJob) -> Mapping[str, Mask]:
    """Return the dead rows of every file of the group.

    The keys of changes are held together, those of base pass by in parts. Where even the keys of
    changes are too many, each share of them is resolved on its own: a base row is dead if any
    share says so, a change row unless its own share says that it lives.
    """
    dead = _resolve_share(job, 0)
    for share in range(1, job.parts):
        for path, mask in _resolve_share(job, share).items():
            if any(file.path == path for file in job.changes):
                dead[path] &= mask
            else:
                dead[path] |= mask
    for file in job.bases:
        if file.positions is not None:
            dead[file.path][file.positions] = True
    return dead


def _resolve_share(job: ResolveJob, share: int) -> dict[str, Mask]:
    key = job.key_schema.names
    change_schema = pa.schema([*job.key_schema, *job.hidden_schema])
    changes: list[KeysOfChange] = []
    chosen: dict[str, Mask] = {}
    for file in job.changes:
        rows = read_frame(job.storage, file.path, change_schema)
        if job.parts > 1:
            mine = rows.select(key).hash_rows(seed=17) % job.parts == share
            chosen[file.path] = mine.to_numpy()
            rows = rows.filter(mine)
        changes.append(
            KeysOfChange(file.path, file.sequence, rows, after=file.after, until=file.until)
        )
    bases = (part for file in job.bases for part in _key_parts(job, file))
    dead = resolve(bases, changes, key, job.keep)
    for path, rows_of_share in chosen.items():
        mask = np.ones(len(rows_of_share), dtype=bool)
        mask[rows_of_share] = dead[path]
        dead[path] = mask
    return dead


def _key_parts(job: ResolveJob, file: FileToResolve) -> Iterator[KeysOfBase]:
    batches: list[pa.RecordBatch] = []
    rows = 0
    for batch in read_batches(job.storage, file.path, job.key_schema):
        batches.append(batch)
        rows += batch.num_rows
        if rows >= KEY_ROWS:
            yield KeysOfBase(file.path, file.sequence, _frame(batches, job.key_schema))
            batches, rows = [], 0
    yield KeysOfBase(file.path, file.sequence, _frame(batches, job.key_schema))


def read_frame(storage: Storage, path: str, schema: pa.Schema) -> pl.DataFrame:
    """Return columns of one file as a Polars frame, rows in file order."""
    return _frame(list(read_batches(storage, path, schema)), schema)


def _frame(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pl.DataFrame:
    rows = pa.Table.from_batches(batches, schema=pa.schema([f.with_nullable(True) for f in schema]))
    frame = pl.from_arrow(rows)
    assert isinstance(frame, pl.DataFrame)
    return frame


def read_batches(
    storage: Storage,
    path: str,
    schema: pa.Schema,
    *,
    batch_rows: int = BATCH_ROWS,
    row_groups: Sequence[int] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the wanted columns of one file, or of some row groups of it, in file order."""
    with open_file(storage, path) as file:
        present = file.schema_arrow
        names = [found.name for column in schema if (found := find_field(column, present))]
        groups = range(file.num_row_groups) if row_groups is None else row_groups
        if not names:
            rows = sum(file.metadata.row_group(group).num_rows for group in groups)
            yield from _all_null(rows, schema)
            return
        try:
            for batch in file.iter_batches(
                batch_size=batch_rows, row_groups=groups, columns=names, use_threads=True
            ):
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


def out_schema(schema: pa.Schema, extra: Sequence[str]) -> pa.Schema:
    """Return the schema of a scan: wanted columns, then the hidden ones asked for."""
    kinds = {ACTION: pa.string(), VERSION: pa.int64(), ORDER: pa.int64()}
    fields = [field.with_nullable(True) for field in schema]
    return pa.schema([*fields, *(pa.field(name, kinds[name]) for name in extra)])


@dataclass(frozen=True, slots=True)
class FileToScan:
    """One file of a scan; pickles to executors without pyiceberg."""

    path: str
    role: Role
    rows: int
    version: int | None
    """Version of its rows, where they have none of their own."""


def file_rows(
    storage: Storage,
    file: FileToScan,
    schema: pa.Schema,
    dead: Mask | None,
    extra: Sequence[str],
) -> Iterator[pa.RecordBatch]:
    """Yield the live rows of one file with the hidden columns asked for."""
    if not extra:
        yield from scan_file(storage, file.path, schema, dead)
        return
    read = schema
    if file.role is Role.CHANGE:
        hidden = [pa.field(name, kind) for name, kind in _HIDDEN if name in {*extra, SEQ}]
        read = pa.schema([*schema, *hidden])
    wanted = out_schema(schema, extra)
    for batch in scan_file(storage, file.path, read, dead):
        columns = [batch.column(field.name) for field in wanted if field.name not in extra]
        columns.extend(_extra_column(batch, file, name) for name in extra)
        yield pa.RecordBatch.from_arrays(columns, schema=wanted)


_HIDDEN = ((ACTION, pa.string()), (ORDER, pa.int64()), (SEQ, pa.int64()))


def _extra_column(batch: pa.RecordBatch, file: FileToScan, name: str) -> pa.Array:
    if name == VERSION:
        if file.role is Role.CHANGE:
            return pc.fill_null(batch.column(SEQ), file.version)
        return pa.repeat(pa.scalar(file.version, pa.int64()), batch.num_rows)
    if file.role is Role.CHANGE:
        return batch.column(name)
    return pa.nulls(batch.num_rows, pa.string() if name == ACTION else pa.int64())
