"""A pull as Arrow, without Spark: resolve in threads, scan in threads, then put in order.

    raw         by version, then place in the commit, then place in the file
    net, base   by version, then key

Touches data files through `pull/parquet.py`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from arcticlake.pull.columns import (
    COMMIT_VERSION,
    ENDS,
    RANK,
    overwrite_row,
    travel_schema,
)
from arcticlake.pull.parquet import PullTask, pull_file
from arcticlake.pull.plan import PulledFile, PullPlan
from arcticlake.read.parquet import FileToScan
from arcticlake.resolve.bitmap import Mask
from arcticlake.resolve.job import FileToResolve, ResolveJob
from arcticlake.table.change import ORDER
from arcticlake.table.storage import Storage

_NUMBER = "__arctic_number"


def pull_jobs(
    plan: PullPlan, storage: Storage, key_schema: pa.Schema, hidden_schema: pa.Schema
) -> list[ResolveJob]:
    """Return one job for each group of the plan."""
    return [
        ResolveJob(
            storage=storage,
            key_schema=key_schema,
            hidden_schema=hidden_schema,
            bases=(),
            changes=tuple(
                FileToResolve(file.path, plan.ranks[file.path])
                for file in sorted(group.changes, key=lambda file: plan.ranks[file.path])
            ),
            keep=group.keep,
        )
        for group in plan.groups
    ]


def pull_task(pulled: PulledFile) -> PullTask:
    """Return a file of a plan as a worker sees it."""
    file = pulled.file
    scan = FileToScan(file.path, file.role, file.rows, pulled.version)
    return PullTask(scan, pulled.version, pulled.timestamp_ms, pulled.rank)


def scan_pull(
    plan: PullPlan,
    storage: Storage,
    schema: pa.Schema,
    dead: Mapping[str, Mask],
    condition: pc.Expression | None,
) -> pa.Table:
    """Return the rows of the plan's files as they travel, in the order of the files.

    A condition may only be given where the newest of a key is not chosen again.
    """
    assert condition is None or not plan.chosen_again, "rows outside decide too"

    def read(pulled: PulledFile) -> list[pa.RecordBatch]:
        batches = pull_file(storage, pull_task(pulled), schema, dead.get(pulled.file.path))
        return [batch if condition is None else batch.filter(condition) for batch in batches]

    with ThreadPoolExecutor(max(1, min(len(plan.files), os.cpu_count() or 1))) as pool:
        batches = [batch for found in pool.map(read, plan.files) for batch in found]
    return pa.Table.from_batches(batches, schema=travel_schema(schema))


def overwrite_rows(plan: PullPlan, schema: pa.Schema) -> pa.Table:
    """Return one row for each overwrite that is told by it."""
    rows = [overwrite_row(step.version, step.timestamp_ms, schema) for step in plan.overwrites]
    return pa.Table.from_batches(rows, schema=travel_schema(schema))


def newest_of_key(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """Return the newest row of each key; of two in one place, the one that does not end it.

    A row that moves to another partition leaves a delete behind, in the same place of the commit.
    """
    frame = pl.from_arrow(rows.select([*key, RANK, ORDER, ENDS]))
    assert isinstance(frame, pl.DataFrame)
    newest = (
        frame.with_row_index(_NUMBER)
        .sort(RANK, ORDER, ENDS, descending=[False, False, True], nulls_last=False)
        .unique(list(key), keep="last", maintain_order=True)
    )
    return rows.take(newest[_NUMBER].sort().to_arrow().cast(pa.int64()))


def in_order(rows: pa.Table, plan: PullPlan, key: Iterable[str], *, moves: bool) -> pa.Table:
    """Return rows in the order of the answer; `moves` if a key may change its partition."""
    if plan.one_of_key:
        terms = {COMMIT_VERSION: False} | dict.fromkeys(key, False)
    else:
        terms = {COMMIT_VERSION: False, ORDER: False} | ({ENDS: True} if moves else {})
    frame = pl.from_arrow(rows.select([*terms]))
    assert isinstance(frame, pl.DataFrame)
    ordered = frame.with_row_index(_NUMBER).sort(
        *terms, _NUMBER, descending=[*terms.values(), False], nulls_last=False
    )
    return rows.take(ordered[_NUMBER].to_arrow().cast(pa.int64()))
