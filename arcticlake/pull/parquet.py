"""One file of a pull, as rows of a change feed.

Runs in this process or on an executor: it knows a file, columns by field id and dead rows, and
nothing of catalogs or plans.

Touches data files, which it only reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from arcticlake.pull.columns import change_types, tell
from arcticlake.read.parquet import FileToScan, file_rows
from arcticlake.resolve.bitmap import Mask
from arcticlake.table.change import ACTION, ORDER
from arcticlake.table.storage import Storage


@dataclass(frozen=True, slots=True)
class PullTask:
    """One file to pull; pickles to executors without pyiceberg."""

    scan: FileToScan
    version: int
    timestamp_ms: int
    rank: int


def pull_file(
    storage: Storage, task: PullTask, schema: pa.Schema, dead: Mask | None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one file that are not dead, in file order, as they travel."""
    commit = (task.version, task.timestamp_ms, task.rank)
    for batch in file_rows(storage, task.scan, schema, dead, (ACTION, ORDER)):
        business = [batch.column(name) for name in schema.names]
        types = change_types(batch.column(ACTION))
        yield tell(business, types, batch.column(ORDER), commit, schema)
