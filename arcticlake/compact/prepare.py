"""A plan as jobs: what every worker needs to know of its pieces.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from arcticlake.commit.history import View
from arcticlake.compact.job import PieceJob, Source, TaskJob
from arcticlake.compact.plan import CompactionPlan, Piece, Work
from arcticlake.ingest.job import BUFFER_BYTES_MAX, WriteJob
from arcticlake.ingest.plan import base_job, change_job, changes_schema
from arcticlake.read.arrow import change_to_resolve
from arcticlake.resolve.job import FileToResolve, ResolveJob
from arcticlake.resolve.kernel import Keep
from arcticlake.table.change import ACTION, ORDER, SEQ
from arcticlake.table.spec import TableSpec
from arcticlake.table.storage import Storage
from arcticlake.tree.files import FileEntry
from arcticlake.tree.forest import Forest

WITHOUT_END = 2**62
"""A file that is not closed by its size: its range is planned instead."""
LANES_MAX = 64
KEY_BYTES = 96
"""What a change row takes while its key is resolved: key, place and address, twice."""


@dataclass(frozen=True, slots=True)
class Workshop:
    """Where a compaction works: the table, its folders, and the state it was planned on."""

    spec: TableSpec
    view: View
    storage: Storage
    base_location: str
    change_location: str | None
    positions: Mapping[str, npt.NDArray[np.int64]]
    """Rows of base files that another engine deleted."""


def prepare_tasks(plan: CompactionPlan, shop: Workshop) -> list[TaskJob]:
    """Return the job of every task of a plan."""
    return [
        tuple(
            _minor(plan, shop, group, piece)
            if plan.groups[group].work is Work.MINOR
            else _merge(plan, shop, group, piece)
            for group, piece in task.pieces
        )
        for task in plan.tasks
    ]


def _merge(plan: CompactionPlan, shop: Workshop, group: int, piece: Piece) -> PieceJob:
    """Return the job that writes live rows as base files."""
    spec = shop.spec
    write = base_job(spec, shop.base_location, shop.storage, Forest(spec.options.initial_nodes))
    rolls = bool(spec.sort_ids) or not spec.keyed
    marked = any(file.path in shop.positions for file in piece.bases)
    bases = sorted(piece.bases, key=_by_key)
    changes = sorted(piece.changes, key=_by_commit)
    return PieceJob(
        group=group,
        resolve=_resolve(plan, shop, piece) if changes or marked else None,
        sources=tuple(_source(file) for file in (*bases, *changes)),
        write=_bounded(
            replace(write, file_bytes_max=write.file_bytes_max if rolls else WITHOUT_END), spec
        ),
        partition=plan.groups[group].partition,
        outputs=piece.outputs,
        sort=spec.sort,
        lanes=1 if rolls else _lanes(plan, piece),
        memory=spec.options.task_memory,
    )


def _minor(plan: CompactionPlan, shop: Workshop, group: int, piece: Piece) -> PieceJob:
    """Return the job that writes change rows as fewer change files."""
    spec = shop.spec
    assert shop.change_location is not None, "only a table with a key has changes"
    nodes = Forest(spec.options.initial_nodes)
    write = change_job(spec, shop.change_location, shop.storage, nodes, ordered=True)
    collapses = spec.options.collapse_changes
    return PieceJob(
        group=group,
        resolve=replace(_resolve(plan, shop, piece), keep=Keep.NEWEST) if collapses else None,
        sources=tuple(_source(file) for file in sorted(piece.changes, key=_by_commit)),
        write=_bounded(replace(write, file_bytes_max=plan.target_file_size), spec),
        partition=plan.groups[group].partition,
        outputs=piece.outputs,
        sort=(),
        lanes=1,
        memory=spec.options.task_memory,
        stamps=True,
    )


def _bounded(write: WriteJob, spec: TableSpec) -> WriteJob:
    """Return the job of a rewrite: rows were checked when they came, memory is what is allowed."""
    return replace(
        write,
        unique=(),
        required=(),
        split_full_leaves=False,
        buffer_bytes_max=min(BUFFER_BYTES_MAX, spec.options.task_memory // 4),
    )


def _resolve(plan: CompactionPlan, shop: Workshop, piece: Piece) -> ResolveJob:
    spec, view = shop.spec, shop.view
    whole = changes_schema(spec)
    rows = sum(file.rows for file in piece.changes)
    return ResolveJob(
        storage=shop.storage,
        key_schema=pa.schema([whole.field(name) for name in spec.key]),
        hidden_schema=pa.schema([whole.field(name) for name in (ACTION, ORDER, SEQ)]),
        bases=tuple(
            FileToResolve(
                file.path,
                view.base_sequence(file.snapshot_id),
                positions=shop.positions.get(file.path),
            )
            for file in piece.bases
        ),
        changes=tuple(
            change_to_resolve(file, view.watermark, until=plan.version)
            for file in sorted(piece.changes, key=_by_commit)
        ),
        parts=1 + rows * KEY_BYTES * 4 // spec.options.task_memory,
    )


def _lanes(plan: CompactionPlan, piece: Piece) -> int:
    """Return how many files a leaf's rows are spread over, by what the input weighs."""
    size = sum(file.bytes for file in piece.bases) or piece.bytes
    leaf = size / len(piece.outputs)
    return min(LANES_MAX, max(1, round(leaf / plan.target_file_size)))


def _source(file: FileEntry) -> Source:
    low, high = (*file.sort_lower, None)[0], (*file.sort_upper, None)[0]
    known = None if low is None or high is None else (low, high)
    return Source(file.path, file.role, file.rows, file.sequence, known)


def _by_key(file: FileEntry) -> tuple[bool, object, str]:
    low = file.key_lower[0] if file.key_lower else None
    return low is None, 0 if low is None else low, file.path


def _by_commit(file: FileEntry) -> tuple[int, str]:
    return file.sequence, file.path
