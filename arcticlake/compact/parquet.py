"""One piece of a compaction: find the dead rows, write the others anew.

    files ─ resolve ─▶ dead rows ─┐
    files ─ scan, batch by batch ─┴▶ live rows ─▶ new files, leaf by leaf

Without a sort key this is the hash merge: base files pass by in the order of their keys, then the
change rows that no base row met (HSH-04). Rows go straight to their leaf, and in a leaf with more
than one file to the file of their key range, so files come out disjoint while rows inside stay as
they come (HSH-03, HSH-10).

With a sort key it is the sort merge: rows come in order (`parquet_sort.py`), and a full file is
followed by the next one (SRT-05).

Neither holds more than a part of the rows, the keys of the changes, and the buffers of the open
files. The functions run in-process or on an executor. Nothing here is visible until a commit names
it, and a piece that fails removes what it wrote.

Touches data files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed, wait

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from arcticlake.compact.cuts import cut_evenly, part_of
from arcticlake.compact.job import PieceJob, Rewritten, TaskJob
from arcticlake.compact.parquet_rows import marked_rows, measured
from arcticlake.compact.parquet_sort import sorted_rows
from arcticlake.ingest.parquet import TreeWriter, remove_files
from arcticlake.ingest.place import Placed, number_among, place_among
from arcticlake.read.parquet import open_file, read_batches, run_resolve
from arcticlake.resolve.bitmap import Mask
from arcticlake.resolve.job import ResolveJob

SAMPLE_ROWS = 100_000
"""Values of the first key column that decide where files are cut."""


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
    job = measured(job)

    def place(rows: pa.Table) -> Iterator[Placed]:
        return place_among(rows, job.partition, job.outputs, job.write.bucket)

    writer = TreeWriter(job.write, place)
    try:
        dead = {} if job.resolve is None else _dead_rows(job.resolve)
        if job.sort:
            for rows in sorted_rows(job, dead):
                writer.write(rows)
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
        for rows, alive in marked_rows(job, source, dead.get(source.path)):
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
