"""A plan as Arrow, without Spark: resolve in threads, then scan the live rows.

Results of resolutions are kept: files never change, so the dead rows of a group are a function
of its file names. The cache is bounded by the rows it holds.

Touches data files through `read/parquet.py`.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from arcticlake.read.parquet import VERSION, FileToScan, file_rows, out_schema, run_resolve
from arcticlake.read.plan import ReadMode, ScanPlan
from arcticlake.resolve.bitmap import Mask
from arcticlake.resolve.job import FileToResolve, ResolveJob
from arcticlake.resolve.kernel import NEWEST
from arcticlake.table.change import ACTION, ORDER
from arcticlake.table.storage import Storage
from arcticlake.table.watermark import Watermark
from arcticlake.tree.files import FileEntry, Role

CACHE_ROWS_MAX = 256 * 2**20
"""Rows whose masks are kept, at one byte each."""

Positions = Mapping[str, npt.NDArray[np.int64]]


class _Cache:
    """Dead rows by group, least recently used first out."""

    def __init__(self) -> None:
        self._kept: OrderedDict[object, Mapping[str, Mask]] = OrderedDict()
        self._rows = 0
        self._lock = Lock()

    def find(self, identity: object) -> Mapping[str, Mask] | None:
        with self._lock:
            found = self._kept.get(identity)
            if found is not None:
                self._kept.move_to_end(identity)
            return found

    def keep(self, identity: object, dead: Mapping[str, Mask]) -> None:
        with self._lock:
            if identity in self._kept:
                return
            self._kept[identity] = dead
            self._rows += _rows(dead)
            while self._rows > CACHE_ROWS_MAX:
                self._rows -= _rows(self._kept.popitem(last=False)[1])

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()
            self._rows = 0


def _rows(dead: Mapping[str, Mask]) -> int:
    return sum(len(mask) for mask in dead.values())


_RESOLVED = _Cache()


def forget_resolved() -> None:
    """Drop all cached resolutions; reads after this start cold."""
    _RESOLVED.clear()


def resolve_jobs(
    plan: ScanPlan,
    storage: Storage,
    key_schema: pa.Schema,
    hidden_schema: pa.Schema,
    positions: Positions,
) -> list[ResolveJob]:
    """Return one job for each group of the plan."""

    def base(file: FileEntry) -> FileToResolve:
        sequence = plan.view.base_sequence(file.snapshot_id)
        return FileToResolve(file.path, sequence, positions=positions.get(file.path))

    return [
        ResolveJob(
            storage=storage,
            key_schema=key_schema,
            hidden_schema=hidden_schema,
            bases=tuple(base(file) for file in group.bases),
            changes=tuple(
                change_to_resolve(file, plan.view.watermark)
                for file in sorted(group.changes, key=lambda file: file.sequence)
            ),
            keep=group.keep,
        )
        for group in plan.groups
    ]


def change_to_resolve(
    file: FileEntry, watermark: Watermark, *, until: int = NEWEST
) -> FileToResolve:
    """Return a change file as a resolution sees it; it may hold rows that base has already."""
    merged = watermark.merged(file.partition, file.node.mask, file.node.index)
    return FileToResolve(
        file.path,
        file.sequence,
        after=merged if file.sequence_min <= merged else 0,
        until=until if file.sequence > until else NEWEST,
    )


def run_jobs(jobs: Sequence[ResolveJob]) -> dict[str, Mask]:
    """Return the dead rows of every file of the jobs, resolved in threads, cached."""
    dead: dict[str, Mask] = {}
    with ThreadPoolExecutor(max(1, min(len(jobs), os.cpu_count() or 1))) as pool:
        for found in pool.map(_resolve_cached, jobs):
            dead.update(found)
    return dead


def _resolve_cached(job: ResolveJob) -> Mapping[str, Mask]:
    identity = (
        tuple(
            (f.path, f.sequence, 0 if f.positions is None else len(f.positions)) for f in job.bases
        ),
        tuple((f.path, f.sequence, f.after, f.until) for f in job.changes),
        job.keep,
    )
    found = _RESOLVED.find(identity)
    if found is None:
        found = run_resolve(job)
        _RESOLVED.keep(identity, found)
    return found


def scan_plan(
    plan: ScanPlan,
    storage: Storage,
    schema: pa.Schema,
    dead: Mapping[str, Mask],
    *,
    condition: pc.Expression | None,
    extra: Sequence[str] = (),
) -> pa.Table:
    """Return the live rows of a plan; `extra` names hidden columns to add, such as `_version`."""
    files = [*plan.bases, *plan.changes]

    def read(file: FileEntry) -> list[pa.RecordBatch]:
        return [
            kept
            for batch in file_rows(
                storage, file_to_scan(plan, file), schema, dead.get(file.path), extra
            )
            if (kept := batch if condition is None else batch.filter(condition)).num_rows
        ]

    with ThreadPoolExecutor(max(1, min(len(files), os.cpu_count() or 1))) as pool:
        batches = [batch for found in pool.map(read, files) for batch in found]
    wanted = out_schema(schema, extra)
    return pa.Table.from_batches(batches, schema=wanted)


def file_to_scan(plan: ScanPlan, file: FileEntry) -> FileToScan:
    """Return a file of a plan as a scan sees it."""
    version = file.sequence if file.role is Role.CHANGE else base_version(plan, file)
    return FileToScan(file.path, file.role, file.rows, version)


def base_version(plan: ScanPlan, file: FileEntry) -> int | None:
    """Return the version to show for rows of a base file; None while it has none."""
    return plan.view.base_versions.get(file.snapshot_id)


def extra_columns(mode: ReadMode, *, metadata: bool) -> tuple[str, ...]:
    """Return the hidden columns that a read shows."""
    if mode is ReadMode.UNMERGED:
        return (ACTION, VERSION, ORDER)
    return (VERSION,) if metadata else ()
