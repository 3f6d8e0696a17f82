"""The live rows of the files of a piece, batch by batch.

Batches are as large as the memory of the task allows, so that wide rows come fewer at a time. How
wide rows are is seen from a few of them: a file does not tell, repeated text takes no room there.

Touches data files, which it only reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from arcticlake.compact.job import PieceJob, Source
from arcticlake.read.parquet import read_batches
from arcticlake.resolve.bitmap import Mask
from arcticlake.table.change import SEQ

SAMPLE_FILES = 3
SAMPLE_ROWS = 1024


def measured(job: PieceJob) -> PieceJob:
    """Return the job with the width of its rows."""
    every = max(1, len(job.sources) // SAMPLE_FILES)
    widths = [0]
    for source in job.sources[::every]:
        storage, schema = job.write.storage, job.write.schema
        for first in read_batches(storage, source.path, schema, batch_rows=SAMPLE_ROWS):
            widths.append(-(-first.nbytes // max(1, first.num_rows)))
            break
    return replace(job, row_bytes=max(1, *widths))


def live_rows(job: PieceJob, source: Source, dead: Mask | None) -> Iterator[pa.Table]:
    """Yield the live rows of a file."""
    for rows, alive in marked_rows(job, source, dead):
        yield rows if alive is None else rows.filter(pa.array(alive))


def marked_rows(
    job: PieceJob, source: Source, dead: Mask | None
) -> Iterator[tuple[pa.Table, Mask | None]]:
    """Yield the rows of a file with a mask of those that live; None where all do."""
    start = 0
    storage, schema = job.write.storage, job.write.schema
    for read in read_batches(storage, source.path, schema, batch_rows=job.batch_rows):
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
