"""The live rows of a piece in the order of its sort key, whatever its size.

    base files one behind the other ─▶ pass by as they lie ─┐
    all other files ─▶ sorted in runs that fit memory ──────┴▶ merged

Base files are sorted already, and after a compaction they follow each other, so mostly one chain
of files is read once, and only changes are sorted (SRT-03 to SRT-05). What does not follow goes
into runs; a second run means that rows do not fit, and then runs wait in a temporary folder, which
takes as much as their rows in memory at the most. Whether files are in order is looked at, not
believed: another engine may have written them.

Touches data files, which it only reads, and a temporary folder.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from arcticlake.compact.job import PieceJob, Source
from arcticlake.compact.merge import merge_sorted
from arcticlake.compact.parquet_rows import live_rows
from arcticlake.ingest.place import sort_order, sort_rows
from arcticlake.read.parquet import read_batches
from arcticlake.resolve.bitmap import Mask
from arcticlake.tree.files import Role

RUN_SHARE = 8
"""A run takes this part of a task's memory: gathered, sorted and cut up it is there thrice, beside
the buffers of open files and the keys of changes."""
RUN_BATCH_BYTES = 2**20
"""What is read of a waiting run at a time."""


def sorted_rows(job: PieceJob, dead: Mapping[str, Mask]) -> Iterator[pa.Table]:
    """Yield the live rows of all files of a piece in order."""
    run_bytes = max(1, job.memory // RUN_SHARE)
    chain = _chain(job) if job.row_bytes * job.rows > run_bytes else ()
    loose = [source for source in job.sources if source not in chain]
    with tempfile.TemporaryDirectory(prefix="arctic-sort-") as place:
        streams = list(_runs(job, loose, dead, run_bytes, Path(place)))
        if chain:
            streams.append(_in_turn(job, chain, dead))
        yield from merge_sorted(streams, job.sort, run_bytes // max(1, len(streams)))


def _in_turn(
    job: PieceJob, sources: Sequence[Source], dead: Mapping[str, Mask]
) -> Iterator[pa.Table]:
    for source in sources:
        yield from live_rows(job, source, dead.get(source.path))


def _chain(job: PieceJob) -> tuple[Source, ...]:
    """Return base files whose rows are in order, one file after the other."""
    chosen: list[Source] = []
    last: pa.Table | None = None
    for source in follow_up([one for one in job.sources if one.role is Role.BASE]):
        end = _end_of_sorted(job, source, last)
        if end is not None:
            chosen.append(source)
            last = end
    return tuple(chosen)


def follow_up(sources: Sequence[Source]) -> list[Source]:
    """Return as many files as possible whose ranges follow each other, in their order."""
    known = [(one.sort_range[1], one.sort_range[0], one) for one in sources if one.sort_range]
    found: list[Source] = []
    end = None
    for high, low, source in sorted(known, key=lambda one: one[:2]):
        if end is None or low >= end:
            found.append(source)
            end = high
    return found


def _end_of_sorted(job: PieceJob, source: Source, last: pa.Table | None) -> pa.Table | None:
    """Return the last key of a file that is in order and follows a key; None if it is not."""
    schema = pa.schema([job.write.schema.field(name) for name in job.sort])
    for batch in read_batches(job.write.storage, source.path, schema):
        keys = pa.Table.from_batches([batch])
        stretch = keys if last is None else pa.concat_tables([last, keys])
        order = sort_order(stretch, job.sort)
        if (np.diff(order.astype(np.int64)) < 0).any():
            return None
        last = keys.slice(keys.num_rows - 1) if keys.num_rows else last
    return last


def _runs(
    job: PieceJob,
    sources: Sequence[Source],
    dead: Mapping[str, Mask],
    run_bytes: int,
    place: Path,
) -> Iterator[Iterator[pa.Table]]:
    """Yield sorted streams of the rows of some files; one that fits stays in memory."""
    gathered: list[pa.Table] = []
    size, spilled = 0, 0
    for rows in _in_turn(job, sources, dead):
        gathered.append(rows)
        size += rows.nbytes
        if size >= run_bytes:
            path = place / str(spilled)
            _spill(sort_rows(pa.concat_tables(gathered), job.sort), path)
            yield _read_run(path)
            gathered, size, spilled = [], 0, spilled + 1
    if gathered:
        run = sort_rows(pa.concat_tables(gathered), job.sort)
        yield iter([run])


def _spill(rows: pa.Table, path: Path) -> None:
    batch_rows = max(1, rows.num_rows * RUN_BATCH_BYTES // max(1, rows.nbytes))
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with (
        pa.OSFile(str(path), "wb") as sink,
        pa.ipc.new_file(sink, rows.schema, options=options) as out,
    ):
        out.write_table(rows, max_chunksize=batch_rows)


def _read_run(path: Path) -> Iterator[pa.Table]:
    with pa.OSFile(str(path)) as file, pa.ipc.open_file(file) as run:
        for number in range(run.num_record_batches):
            yield pa.Table.from_batches([run.get_batch(number)])
    path.unlink()
