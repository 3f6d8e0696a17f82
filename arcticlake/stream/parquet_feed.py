"""One share of a micro-batch as a task reads it: some files, or rows that have no file.

A file of changes is told as a pull tells it. A file of the state that comes first is told as
inserts of that version, without its dead rows. Rows of an overwrite were computed on the driver
and travel with the share.

Touches data files, which it only reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from arcticlake.pull.columns import INSERT, tell, told_schema
from arcticlake.pull.parquet import PullTask, pull_file
from arcticlake.read.parquet import read_batches, scan_file
from arcticlake.resolve.bitmap import Words, mask_of
from arcticlake.stream.change_order import CHANGE_ORDER, Places, change_order, distinct_places
from arcticlake.table.change import ORDER
from arcticlake.table.storage import Storage

_NO_PLACES: Places = np.array([], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class FeedFile:
    """One file of a share."""

    task: PullTask
    state: bool = False
    """Whether its rows belong to the state that comes first."""
    dead: Words | None = None
    peers: tuple[str, ...] = ()
    """Files of the same commit that may hold the same keys, itself among them."""


@dataclass(frozen=True, slots=True)
class FeedShare:
    """What one task reads; pickles to executors."""

    storage: Storage
    schema: pa.Schema
    """Business columns, with field ids."""
    ordered: bool
    files: tuple[FeedFile, ...] = ()
    rows: pa.Table | None = None
    """Travelling rows that have no file."""


def feed_rows(share: FeedShare) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a share as the stream shows them."""
    wanted = told_schema(share.schema)
    if share.ordered:
        wanted = wanted.append(pa.field(CHANGE_ORDER, pa.int64()))
    for batch in () if share.rows is None else share.rows.to_batches():
        yield _shown(batch, _NO_PLACES, wanted)
    places: dict[tuple[str, ...], Places] = {}
    for file in share.files:
        if share.ordered and file.peers not in places:
            places[file.peers] = _places(share.storage, file.peers)
        for batch in _travelling(share, file):
            yield _shown(batch, places.get(file.peers, _NO_PLACES), wanted)


def _travelling(share: FeedShare, file: FeedFile) -> Iterator[pa.RecordBatch]:
    task = file.task
    if not file.state:
        yield from pull_file(share.storage, task, share.schema, None)
        return
    dead = None if file.dead is None else mask_of(file.dead, task.scan.rows)
    commit = (task.version, task.timestamp_ms, task.rank)
    for batch in scan_file(share.storage, task.scan.path, share.schema, dead):
        business = [batch.column(name) for name in share.schema.names]
        types = pa.repeat(pa.scalar(INSERT), batch.num_rows)
        yield tell(business, types, pa.nulls(batch.num_rows, pa.int64()), commit, share.schema)


def _shown(batch: pa.RecordBatch, places: Places, wanted: pa.Schema) -> pa.RecordBatch:
    columns = [
        change_order(batch, places) if field.name == CHANGE_ORDER else batch.column(field.name)
        for field in wanted
    ]
    return pa.RecordBatch.from_arrays(columns, schema=wanted)


def _places(storage: Storage, paths: tuple[str, ...]) -> Places:
    wanted = pa.schema([pa.field(ORDER, pa.int64())])
    parts = [batch.column(0) for path in paths for batch in read_batches(storage, path, wanted)]
    return distinct_places(parts)
