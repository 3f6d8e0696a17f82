"""Compactions taken apart: planned, run and committed one step at a time, so that others may act
in between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arcticlake import Table
from arcticlake.commit.iceberg_state import TableState
from arcticlake.compact.iceberg import Landing, Rewrite, commit_merge, commit_minor
from arcticlake.compact.job import PieceJob
from arcticlake.compact.parquet import run_task
from arcticlake.compact.plan import CompactionPlan
from arcticlake.compact.prepare import prepare_tasks
from arcticlake.ingest.job import WrittenFile
from arcticlake.verbs.compact import workshop
from arcticlake.verbs.opened import Opened


def opened(table: Table) -> Opened:
    """Return what the verbs work on."""
    return table._opened


def job_of(table: Table, kind: str = "major") -> PieceJob:
    """Return the one piece of a compaction that has a single one."""
    ((job,),) = prepare_tasks(table.plan_compaction(kind), workshop(opened(table).state()))
    return job


@dataclass(frozen=True)
class Started:
    """A compaction whose files are written and not committed."""

    state: TableState
    plan: CompactionPlan
    written: Mapping[int, tuple[WrittenFile, ...]]

    def commit(self) -> Landing:
        def tell(_: Sequence[int]) -> Mapping[str, str]:
            return {}

        kind = self.plan.kind
        work = Rewrite(self.state, self.plan, self.written, kind, tell)
        return commit_minor(work) if kind == "minor" else commit_merge(work)


def start(table: Table, kind: str = "major") -> Started:
    """Plan and write; nothing is visible yet."""
    plan = table.plan_compaction(kind)
    state = opened(table).state()
    written: dict[int, tuple[WrittenFile, ...]] = {
        number: () for number, group in enumerate(plan.groups) if group.pieces
    }
    for job in prepare_tasks(plan, workshop(state)):
        for piece in run_task(job):
            written[piece.group] += piece.files
    return Started(state, plan, written)
