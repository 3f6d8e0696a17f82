"""compact and plan_compaction, from the call to the last commit.

    state ─▶ plan ─▶ tasks ─▶ new files ─▶ commit, group by group ─▶ merged changes dropped

A small plan runs in threads of this process; a large one on Spark, where there is a session.
Nothing is visible before the commit: whoever stops the work leaves the table as it was, and files
that were written until then are removed again.

Touches the clock, files, the catalog, Spark and, with progress, standard error.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from arcticlake.commit.iceberg_state import TableState, load_state
from arcticlake.compact.explain import partition_label
from arcticlake.compact.iceberg import Landing, Rewrite, commit_merge, commit_minor, trim
from arcticlake.compact.job import Rewritten, TaskJob
from arcticlake.compact.parquet import run_in_threads
from arcticlake.compact.plan import CompactionPlan, Facts, GroupPlan, Work, plan_compaction
from arcticlake.compact.prepare import Workshop, prepare_tasks
from arcticlake.compact.progress import Progress
from arcticlake.compact.result import CompactionResult, Numbers, Skipped, encode_numbers
from arcticlake.compact.spark import run_on_spark
from arcticlake.errors import InvalidRequest
from arcticlake.ingest.iceberg import Committed, mark_all
from arcticlake.ingest.job import WrittenFile
from arcticlake.ingest.parquet import remove_files
from arcticlake.read.iceberg import load_positions
from arcticlake.tree.forest import Partition
from arcticlake.verbs.opened import Opened
from arcticlake.verbs.read import keep_partitions

IN_PROCESS_BYTES_MAX = 256 * 2**20
"""Input up to which a plan runs in this process even where Spark is at hand."""
PROGRESS_SECONDS = 2.0
"""How often progress is told; work that ends sooner tells nothing."""


@dataclass(frozen=True, slots=True)
class CompactionRequest:
    """What the caller asked of a compaction."""

    kind: str = "auto"
    where: str | None = None
    to_version: int | None = None


def plan(table: Opened, request: CompactionRequest) -> CompactionPlan:
    """Return what a compaction would do now; nothing but metadata is touched."""
    return _plan(table.state(), request)


def _plan(state: TableState, request: CompactionRequest) -> CompactionPlan:
    pair, view = state.pair, state.view
    facts = Facts(
        spec=pair.spec,
        version=_version(state, request),
        watermark=view.watermark,
        bases=state.files.bases,
        changes=state.files.changes,
        base_sequence=view.base_sequence,
        chosen=_chosen(state, request.where),
    )
    return plan_compaction(facts, request.kind, parallelism=_cores())


def _version(state: TableState, request: CompactionRequest) -> int:
    asked, newest, name = request.to_version, state.view.version, state.pair.spec.name
    if asked is None:
        return newest
    if isinstance(asked, bool) or not isinstance(asked, int):
        message = f"table {name}: to_version must be a whole number, not {asked!r}"
        raise InvalidRequest(message)
    if request.kind not in {"major", "full"}:
        message = f"table {name}: to_version goes with kind major or full, not {request.kind}"
        raise InvalidRequest(message)
    if not 0 <= asked <= newest:
        message = f"table {name} has no version {asked} to merge to; the newest is {newest}"
        raise InvalidRequest(message)
    return asked


def _chosen(state: TableState, where: str | None) -> Callable[[Partition], bool]:
    if where is None:
        return lambda _: True
    kept = keep_partitions(state, where)
    return lambda partition: partition in kept


def _cores() -> int:
    return os.cpu_count() or 1


@dataclass(slots=True)
class _Run:
    """One compaction under way: what is written so far, and since when."""

    state: TableState
    plan: CompactionPlan
    started: float
    rows_total: int
    told: float = 0.0
    rows_done: int = 0
    written: dict[int, list[WrittenFile]] = field(default_factory=lambda: defaultdict(list))

    def done(self, pieces: Sequence[Rewritten]) -> None:
        """Take in what a task wrote, and tell how far the work is."""
        for piece in pieces:
            self.written[piece.group].extend(piece.files)
            self.rows_done += piece.rows_read
        now = time.monotonic()
        if now - max(self.told, self.started) >= PROGRESS_SECONDS:
            self.told = now
            far = Progress(self.rows_done, self.rows_total, now - self.started)
            sys.stderr.write(f"compacting {self.plan.table}: {far}\n")

    def place(self, group: GroupPlan) -> str:
        """Return the partition of a group as the start of a sentence; empty where there is none."""
        label = partition_label(self.plan.terms, group.partition)
        return f"{label}: " if label else ""

    def numbers(self, groups: Sequence[int]) -> Numbers:
        """Return what the rewrite of some groups amounts to."""
        pieces = [piece for n in groups for piece in self.plan.groups[n].pieces]
        files = [file for n in groups for file in self.written[n]]
        return Numbers(
            files_removed=sum(len(piece.files) for piece in pieces),
            files_added=len(files),
            rows_read=sum(piece.rows for piece in pieces),
            rows_written=sum(file.rows for file in files),
            bytes_read=sum(piece.bytes for piece in pieces),
            bytes_written=sum(file.size for file in files),
            change_bytes=sum(file.bytes for piece in pieces for file in piece.changes),
            seconds=time.monotonic() - self.started,
            events=tuple(
                f"{self.place(group)}{event}"
                for group in (self.plan.groups[n] for n in groups)
                for event in group.events
            ),
        )


def compact(table: Opened, request: CompactionRequest) -> CompactionResult:
    """Plan afresh, rewrite, commit; groups that somebody else changed meanwhile are skipped."""
    started = time.monotonic()
    mark_all(table.pair())
    state = load_state(table.pair_to_write())
    planned = _plan(state, request)
    jobs = prepare_tasks(planned, workshop(state))
    rows = sum(piece.rows for job in jobs for piece in job)
    run = _Run(state, planned, started, rows)
    _run_tasks(planned, jobs, run)
    landings = _commit(run)
    trim(table.pair())
    return _result(run, landings)


def after_write(table: Opened, done: Committed) -> Committed:
    """Compact what the write made worth it, where the table wants that (`compact-after-write`).

    The write is committed whatever happens here, so a compaction that fails only warns.
    """
    try:
        if table.pair().spec.options.compact_after_write:
            compact(table, CompactionRequest())
    except Exception as error:  # noqa: BLE001 - a full disk must not stop a stream either
        message = f"version {done.version} is committed; the compaction after it failed: {error}"
        warnings.warn(message, RuntimeWarning, stacklevel=3)
    return done


def workshop(state: TableState) -> Workshop:
    """Return where a compaction of a loaded state works."""
    pair = state.pair
    return Workshop(
        spec=pair.spec,
        view=state.view,
        storage=pair.storage,
        base_location=pair.base.location(),
        change_location=None if pair.change is None else pair.change.location(),
        positions=load_positions(pair.base.io, state.files.bases),
    )


def _run_tasks(planned: CompactionPlan, jobs: Sequence[TaskJob], run: _Run) -> None:
    if not jobs:
        return
    spark = SparkSession.getActiveSession()
    if spark is None or sum(task.bytes for task in planned.tasks) <= IN_PROCESS_BYTES_MAX:
        run_in_threads(jobs, _cores(), run.done)
        return
    workers = int(str(spark.conf.get("spark.sql.shuffle.partitions", "4")))
    run_on_spark(spark, jobs, workers, run.done)


def _commit(run: _Run) -> dict[str, Landing]:
    """Commit minor and major groups, each kind in its own table.

    Files are removed only where it is certain that no commit named them: those of groups that gave
    up. After any other error they stay, for whoever looks for orphans.
    """
    landings: dict[str, Landing] = {}
    works = {n: group.work for n, group in enumerate(run.plan.groups) if group.pieces}
    minors = [n for n, work in works.items() if work is Work.MINOR]
    merges = [n for n, work in works.items() if work in {Work.MAJOR, Work.FULL}]
    if minors:
        landings["minor"] = commit_minor(_rewrite(run, minors, "minor"))
        _remove(run, landings["minor"].lost)
    if merges:
        kind = "full" if any(works[n] is Work.FULL for n in merges) else "major"
        landings[kind] = commit_merge(_rewrite(run, merges, kind))
        _remove(run, landings[kind].lost)
    return landings


def _rewrite(run: _Run, groups: Sequence[int], kind: str) -> Rewrite:
    def tell(landed: Sequence[int]) -> Mapping[str, str]:
        return encode_numbers(run.numbers(landed))

    written = {n: tuple(run.written.get(n, ())) for n in groups}
    return Rewrite(run.state, run.plan, written, kind, tell)


def _remove(run: _Run, groups: Iterable[int]) -> None:
    """Remove the files of groups that gave up."""
    paths = [file.path for n in groups for file in run.written.pop(n, ())]
    remove_files(run.state.pair.storage, paths)


def _result(run: _Run, landings: Mapping[str, Landing]) -> CompactionResult:
    landed = [n for landing in landings.values() for n in landing.landed]
    skipped = tuple(
        Skipped(f"{run.place(group)}{group.node}", reason)
        for landing in landings.values()
        for group, reason in ((run.plan.groups[n], why) for n, why in landing.lost.items())
    )
    order = ("full", "major", "minor")
    kind = next((k for k in order if k in landings and landings[k].landed), "none")
    return CompactionResult(
        table=run.plan.table,
        kind=kind,
        version=run.plan.version,
        numbers=run.numbers(landed),
        skipped=skipped,
    )
