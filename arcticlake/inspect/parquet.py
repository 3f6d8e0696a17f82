"""One data file on the table: is it there, is it whole, do its rows keep the rules.

Every page is read with its checksum; `deep` reads all columns, otherwise only those that a rule
needs. Whatever is wrong with the file comes back as a finding, nothing is raised.

Touches data files, which it only reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from arcticlake.inspect.rows import RowRules, RowTally
from arcticlake.inspect.verdict import Findings, Rule
from arcticlake.read.project import field_id, find_field, project
from arcticlake.table.storage import Storage

_BROKEN = (OSError, pa.ArrowException, ValueError, TypeError, ArithmeticError, MemoryError)
"""What Arrow raises on bytes that are no Parquet, or not this Parquet, and what follows from
columns of another type than expected."""
_BATCH_ROWS = 128 * 1024

Chunks: TypeAlias = Mapping[str, Sequence[pq.ColumnChunkMetaData]]
"""Column chunks by the column's name in the table, one for each row group."""


@dataclass(frozen=True, slots=True)
class FileToExamine:
    """One file and all that it is held against."""

    storage: Storage
    rules: RowRules
    schema: pa.Schema
    """Columns to look at, with field ids, in the types of the table."""
    kept: tuple[str, ...]
    """Columns whose values come back, for checks over several files."""
    ours: bool
    """Whether Arctic wrote it: then field ids and column sizes are promised."""
    deep: bool


@dataclass(frozen=True, slots=True)
class Examined:
    """What is wrong with one file, and its kept columns if it can be read."""

    path: str
    findings: Findings
    rows: pl.DataFrame | None


def examine_file(asked: FileToExamine) -> Examined:
    """Read a file from its first byte to its last and hold it against its manifest and rules."""
    found = Findings()
    file = asked.rules.file
    found.count(Rule.FILES, 1, "files")
    try:
        if not _is_present(asked, found):
            return Examined(file.path, found, None)
        system, place = asked.storage.open(file.path)
        with pq.ParquetFile(place, filesystem=system, page_checksum_verification=True) as opened:
            _check_schema(asked, opened, found)
            found.count(Rule.CONTENT, opened.metadata.num_rows, "rows")
            rows = _look(asked, opened, found)
    except FileNotFoundError:
        found.add(Rule.FILES, "the file is missing", file.path)
        return Examined(file.path, found, None)
    except _BROKEN as error:
        found.add(Rule.CONTENT, f"the file cannot be read: {error}", file.path)
        return Examined(file.path, found, None)
    return Examined(file.path, found, rows)


def _is_present(asked: FileToExamine, found: Findings) -> bool:
    file = asked.rules.file
    system, place = asked.storage.open(file.path)
    status = system.get_file_info(place)
    if status.type == fs.FileType.NotFound:
        found.add(Rule.FILES, "the file is missing", file.path)
        return False
    if status.size is not None and status.size != file.bytes:
        message = f"the file has {status.size} bytes, the manifest says {file.bytes}"
        found.add(Rule.FILES, message, file.path)
    return True


def _check_schema(asked: FileToExamine, opened: pq.ParquetFile, found: Findings) -> None:
    """Hold row count and columns against the manifest."""
    file, present = asked.rules.file, opened.schema_arrow
    if opened.metadata.num_rows != file.rows:
        message = f"the file has {opened.metadata.num_rows} rows, the manifest says {file.rows}"
        found.add(Rule.FILES, message, file.path)
    found.count(Rule.FIELD_IDS, 1, "files")
    nameless = [column.name for column in present if field_id(column) is None]
    if nameless and asked.ours:
        found.add(Rule.FIELD_IDS, f"columns without field id: {', '.join(nameless)}", file.path)
    elif nameless:
        found.notes.append(f"{file.path} of another program has no field ids; it is read by name")
    counted = file.data_file.value_counts or {}
    gone = [
        column.name
        for column in asked.schema
        if field_id(column) in counted and find_field(column, present) is None
    ]
    if gone:
        message = f"columns of the manifest are not in the file: {', '.join(gone)}"
        found.add(Rule.FIELD_IDS, message, file.path)


def _look(asked: FileToExamine, opened: pq.ParquetFile, found: Findings) -> pl.DataFrame:
    """Look at every row, then at what the footer tells of the columns."""
    tally = RowTally(asked.rules)
    kept: list[pa.RecordBatch] = []
    for batch in _batches(asked, opened):
        tally.look(batch)
        kept.append(batch.select(list(asked.kept)))
    if tally.rows != opened.metadata.num_rows:
        message = f"{tally.rows} rows can be read, the footer says {opened.metadata.num_rows}"
        found.add(Rule.CONTENT, message, asked.rules.file.path)
    if asked.ours:
        _check_sizes(asked, _chunks(asked, opened), found)
    found.take([tally.findings()])
    schema = pa.schema([asked.schema.field(name).with_nullable(True) for name in asked.kept])
    frame = pl.from_arrow(pa.Table.from_batches(kept, schema=schema))
    assert isinstance(frame, pl.DataFrame)
    return frame


def _chunks(asked: FileToExamine, opened: pq.ParquetFile) -> Chunks:
    """Return the column chunks of plain columns.

    Only for columns that were read: PyArrow ends the process when asked for a broken chunk, and
    reading the column raises before that. Statistics are left alone for the same reason.
    """
    present, paths = opened.schema_arrow, opened.schema
    places = {paths.column(number).path: number for number in range(len(paths))}
    groups = [opened.metadata.row_group(number) for number in range(opened.num_row_groups)]
    chunks = {}
    for column in asked.schema:
        held = find_field(column, present)
        place = None if held is None else places.get(held.name)
        if place is not None:
            chunks[column.name] = [group.column(place) for group in groups]
    return chunks


def _check_sizes(asked: FileToExamine, chunks: Chunks, found: Findings) -> None:
    """Hold sizes and value counts of columns against the manifest."""
    record = asked.rules.file.data_file
    for name, parts in chunks.items():
        identity = field_id(asked.schema.field(name))
        assert identity is not None, "columns of a table have field ids"
        for what, count, told in (
            ("bytes", sum(part.total_compressed_size for part in parts), record.column_sizes or {}),
            ("values", sum(part.num_values for part in parts), record.value_counts or {}),
        ):
            if told.get(identity, count) != count:
                message = f"column {name} has {count} {what}, the manifest says {told[identity]}"
                found.add(Rule.FILES, message, asked.rules.file.path)


def _batches(asked: FileToExamine, opened: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
    """Yield the file in the columns to look at; `deep` also reads columns that nobody knows."""
    present = opened.schema_arrow
    names = [found.name for column in asked.schema if (found := find_field(column, present))]
    columns = None if asked.deep else names
    for batch in opened.iter_batches(batch_size=_BATCH_ROWS, columns=columns):
        yield project(batch, asked.schema)
