"""One piece of a compaction: find the dead rows, write the others anew.

    files ─ resolve ─▶ dead rows ─┐
    files ─ scan, batch by batch ─┴▶ live rows ─▶ new files, leaf by leaf

Without a sort key this is the hash merge: base files pass by in the order of their keys, then the
change rows that no base row met (HSH-04). Rows go straight to their leaf, and in a leaf with more
than one file to the file of their key range, so files come out disjoint while rows inside stay as
they come (HSH-03, HSH-10).

With a sort key it is the sort merge: the range of the sort key is cut into segments that fit the
memory, at the borders of row groups; each segment is read from all files, sorted and written, and a
full file is followed by the next one (SRT-03 to SRT-05). Base files are sorted already, so a
segment reads little more than its own rows.

Neither holds more than a segment, the keys of the changes, and the buffers of the open files. The
functions run in-process or on an executor. Nothing here is visible until a commit names it, and a
piece that fails removes what it wrote.

Touches data files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from arcticlake.compact.cuts import cut_by_weight, cut_evenly, part_of
from arcticlake.compact.job import PieceJob, Rewritten, Source, TaskJob
from arcticlake.ingest.parquet import TreeWriter, remove_files
from arcticlake.ingest.place import Placed, number_among, place_among, sort_rows
from arcticlake.read.parquet import open_file, read_batches, run_resolve
from arcticlake.read.project import find_field
from arcticlake.resolve.bitmap import Mask
from arcticlake.resolve.job import ResolveJob
from arcticlake.table.change import SEQ

SAMPLE_ROWS = 100_000
"""Values of the first key column that decide where files are cut."""
BATCH_ROWS = 256 * 1024
"""Rows that are read at a time: enough that rows of one file come in handy chunks."""
SEGMENT_SHARE = 8
"""A segment takes this part of a task's memory: read, sorted and cut up it is there thrice, beside
the buffers of open files and the keys of changes."""


def run_task(job: TaskJob) -> tuple[Rewritten, ...]:
    """Do the pieces of a task one after the other."""
    return tuple(run_piece(piece) for piece in job)


def run_in_threads(
    jobs: Sequence[TaskJob], workers: int, done: Callable[[Sequence[Rewritten]], None]
) -> None:
    """Run tasks in this process; `done` hears of each as it ends."""
    run_side_by_side(run_task, jobs, workers, done)


def run_side_by_side(
    run: Callable[[TaskJob], tuple[Rewritten, ...]],
    jobs: Sequence[TaskJob],
    workers: int,
    done: Callable[[Sequence[Rewritten]], None],
    interrupt: Callable[[], None] = lambda: None,
) -> None:
    """Run several tasks at a time; if one fails, or the caller is stopped, all are undone.

    `interrupt` stops tasks that are under way elsewhere.
    """
    with ThreadPoolExecutor(max(1, min(workers, len(jobs)))) as pool:
        tasks = {pool.submit(run, job): job for job in jobs}
        try:
            for task in as_completed(tasks):
                done(task.result())
        except BaseException:
            for task in tasks:
                task.cancel()
            interrupt()
            wait(tasks)
            for task, job in tasks.items():
                if not task.cancelled() and task.exception() is None:
                    paths = [file.path for piece in task.result() for file in piece.files]
                    remove_files(job[0].write.storage, paths)
            raise


def run_piece(job: PieceJob) -> Rewritten:
    """Write the live rows of a piece as new files."""

    def place(rows: pa.Table) -> Iterator[Placed]:
        return place_among(rows, job.partition, job.outputs, job.write.bucket)

    writer = TreeWriter(job.write, place)
    try:
        dead = {} if job.resolve is None else _dead_rows(job.resolve)
        if job.sort:
            _write_sorted(job, dead, writer)
        else:
            _write_in_lanes(job, dead, writer)
        written = writer.finish()
        assert written.problem is None, f"rows of the table break its rules: {written.problem}"
    except BaseException:
        writer.abandon()
        raise
    return Rewritten(job.group, written.files, job.rows)


def _dead_rows(job: ResolveJob) -> Mapping[str, Mask]:
    if job.changes or job.key_schema.names:
        return run_resolve(job)
    dead = {}  # a table without a key: only rows that another engine deleted are dead
    for file in job.bases:
        if file.positions is not None:
            with open_file(job.storage, file.path) as opened:
                dead[file.path] = np.zeros(opened.metadata.num_rows, dtype=bool)
            dead[file.path][file.positions] = True
    return dead


def _write_in_lanes(job: PieceJob, dead: Mapping[str, Mask], writer: TreeWriter) -> None:
    """Send every live row to the file of its leaf and key range, with one copy of the row."""
    cuts = _plan_lanes(job)
    lanes = len(cuts) + 1
    for source in job.sources:
        for rows, alive in _batches(job, source, dead.get(source.path)):
            slots = _slots(job, rows, cuts)
            if slots is None:
                kept = rows if alive is None else rows.filter(pa.array(alive))
                writer.take(Placed(job.partition, job.outputs[0], kept))
                continue
            if alive is not None:
                slots[~alive] = -1
            for slot in range(len(job.outputs) * lanes):
                chosen = slots == slot
                if chosen.any():
                    node, lane = divmod(slot, lanes)
                    part = rows.filter(pa.array(chosen))
                    writer.take(Placed(job.partition, job.outputs[node], part), lane)


def _slots(job: PieceJob, rows: pa.Table, cuts: pa.Array) -> npt.NDArray[np.int32] | None:
    """Return the number of the file that each row goes to; None where there is one file."""
    nodes = number_among(rows, job.outputs, job.write.bucket)
    if len(cuts) == 0:
        return nodes
    lanes = part_of(rows.column(job.write.key[0]), cuts)
    return lanes if nodes is None else nodes * np.int32(len(cuts) + 1) + lanes


def _plan_lanes(job: PieceJob) -> pa.Array:
    """Return the keys at which the files of a leaf are cut."""
    if job.lanes <= 1:
        return pa.array([])
    column = job.write.schema.field(job.write.key[0])
    every = max(1, job.rows // SAMPLE_ROWS)
    taken = [
        values.take(pa.array(np.arange(0, len(values), every)))
        for source in job.sources
        for batch in read_batches(job.write.storage, source.path, pa.schema([column]))
        for values in batch.columns
    ]
    return cut_evenly(pa.concat_arrays(taken), job.lanes)


def _live_rows(
    job: PieceJob, source: Source, dead: Mask | None, groups: Sequence[int] | None = None
) -> Iterator[pa.Table]:
    """Yield the live rows of a file, or of some row groups; the mask fits what is read."""
    for rows, alive in _batches(job, source, dead, groups):
        yield rows if alive is None else rows.filter(pa.array(alive))


def _batches(
    job: PieceJob, source: Source, dead: Mask | None, groups: Sequence[int] | None = None
) -> Iterator[tuple[pa.Table, Mask | None]]:
    """Yield the rows of a file with a mask of those that live; None where all do."""
    start = 0
    storage, schema = job.write.storage, job.write.schema
    for read in read_batches(
        storage, source.path, schema, batch_rows=BATCH_ROWS, row_groups=groups
    ):
        rows = pa.Table.from_batches([_stamped(read, source) if job.stamps else read])
        alive = None
        if dead is not None:
            alive = ~dead[start : start + rows.num_rows]
            start += rows.num_rows
            if not alive.any():
                continue
            alive = None if alive.all() else alive
        if rows.num_rows:
            yield rows, alive


def _stamped(batch: pa.RecordBatch, source: Source) -> pa.RecordBatch:
    """Write down the sequence that rows inherit from their file, before they leave it."""
    place = batch.schema.get_field_index(SEQ)
    own = pc.fill_null(batch.column(place), source.sequence)
    return batch.set_column(place, batch.schema.field(place), own)


def _write_sorted(job: PieceJob, dead: Mapping[str, Mask], writer: TreeWriter) -> None:
    opened = [_measure(job, source) for source in job.sources]
    column = job.write.schema.field(job.sort[0])
    starts = [
        (group.low, group.bytes) for file in opened for group in file if group.low is not None
    ]
    cuts = cut_by_weight(starts, job.memory // SEGMENT_SHARE, column.type)
    for part in range(len(cuts) + 1):
        pieces: list[pa.Table] = []
        for source, groups in zip(job.sources, opened, strict=True):
            segment = _Segment(cuts, part)
            pieces.extend(_segment_rows(job, source, groups, dead.get(source.path), segment))
        if pieces:
            writer.write(sort_rows(pa.concat_tables(pieces), job.sort))


@dataclass(frozen=True, slots=True)
class _RowGroup:
    """What the footer says of a row group."""

    number: int
    start: int
    rows: int
    bytes: int
    low: object = None
    """Lowest and highest sort value, NULL and NaN aside; None where they are not known."""
    high: object = None
    leads: bool = True
    """Whether it may hold NULLs, which come before all values."""
    trails: bool = True
    """Whether it may hold NaN, which comes after all values."""


def _measure(job: PieceJob, source: Source) -> list[_RowGroup]:
    """Return the row groups of a file with the range of the first sort column."""
    wanted = job.write.schema.field(job.sort[0])
    found: list[_RowGroup] = []
    start = 0
    with open_file(job.write.storage, source.path) as file:
        column = find_field(wanted, file.schema_arrow)
        exact = column is not None and column.type == wanted.type
        names = [file.metadata.schema.column(i).path for i in range(len(file.metadata.schema))]
        place = names.index(column.name) if exact and column and column.name in names else None
        for number in range(file.num_row_groups):
            group = file.metadata.row_group(number)
            plain = _RowGroup(number, start, group.num_rows, group.total_byte_size)
            found.append(plain if place is None else _with_range(plain, group, place, wanted.type))
            start += group.num_rows
    return found


def _with_range(
    plain: _RowGroup, group: pq.RowGroupMetaData, place: int, kind: pa.DataType
) -> _RowGroup:
    chunk = group.column(place).statistics
    if chunk is None or not chunk.has_min_max:
        return plain
    return replace(
        plain,
        low=chunk.min,
        high=chunk.max,
        leads=not chunk.has_null_count or chunk.null_count > 0,
        trails=bool(pa.types.is_floating(kind)),
    )


@dataclass(frozen=True, slots=True)
class _Segment:
    """One part of the sort range."""

    cuts: pa.Array
    part: int

    def meets(self, group: _RowGroup) -> bool:
        """Whether a row group may hold rows of the segment."""
        if group.low is None or group.high is None:
            return True
        if (group.leads and self.part == 0) or (group.trails and self.part == len(self.cuts)):
            return True
        ends = part_of(pa.array([group.low, group.high], self.cuts.type), self.cuts)
        return bool(ends[0] <= self.part <= ends[1])


def _segment_rows(
    job: PieceJob,
    source: Source,
    groups: Sequence[_RowGroup],
    dead: Mask | None,
    segment: _Segment,
) -> Iterator[pa.Table]:
    """Yield the live rows of one file that fall into one part of the sort range."""
    if len(segment.cuts) == 0:
        yield from _live_rows(job, source, dead)
        return
    chosen = [group for group in groups if segment.meets(group)]
    if not chosen:
        return
    mask = None
    if dead is not None:
        mask = np.concatenate([dead[g.start : g.start + g.rows] for g in chosen])
    for rows in _live_rows(job, source, mask, [group.number for group in chosen]):
        inside = part_of(rows.column(job.sort[0]), segment.cuts) == segment.part
        if inside.any():
            yield rows.filter(pa.array(inside))
