"""PullPlan: the files of a range, what to resolve among them, and what else to tell.

A pull is planned as a read is (`read/plan.py`), with the files of the range as changes that wait
and without base: then nothing of the table is touched but what the range brought. Files of a batch
insert are changes too, each row an insert of its version.

    raw         every row of every file that may match
    net, base   the newest row of each key, found by the same resolution as in a read; a condition
                on values prunes the scan, never the resolution

Where a key may lie in several partitions, or differences of overwrites take part, the newest is
chosen once more among the rows that were read; then values prune nothing.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from arcticlake.commit.history import View
from arcticlake.pull.range import PullMode
from arcticlake.pull.steps import Rank, Step, Steps, Told
from arcticlake.read.plan import Pruning, ReadMode, ResolveGroup, plan_scan
from arcticlake.resolve.kernel import Keep
from arcticlake.table.spec import TableSpec
from arcticlake.table.watermark import Watermark
from arcticlake.tree.files import FileEntry, Role, TableFiles


@dataclass(frozen=True, slots=True)
class PulledFile:
    """One file of a range: which commit its rows belong to, and where they stand."""

    file: FileEntry
    version: int
    timestamp_ms: int
    rank: int


@dataclass(frozen=True, slots=True)
class PullPlan:
    """All that a pull does."""

    table: str
    mode: PullMode
    files: tuple[PulledFile, ...]
    """Files to scan, oldest first."""
    groups: tuple[ResolveGroup, ...]
    """Files whose rows hide one another."""
    ranks: Mapping[str, int]
    """Where the rows of a file stand, by path."""
    overwrites: tuple[Step, ...]
    """Versions that are told by one row."""
    differences: tuple[tuple[Step, int], ...]
    """Versions that are told by what differs, and where their rows stand."""
    one_of_key: bool
    """Whether each key is shown once."""
    chosen_again: bool
    """Whether the newest row of a key must be chosen among the rows that were read."""

    @property
    def bytes(self) -> int:
        """How much is scanned."""
        return sum(pulled.file.bytes for pulled in self.files)

    @property
    def rows_to_resolve(self) -> int:
        """How many keys a resolution reads."""
        return sum(group.rows for group in self.groups)


def plan_pull(
    spec: TableSpec,
    mode: PullMode,
    steps: Steps,
    added: Mapping[int, Sequence[FileEntry]],
    pruning: Pruning | None,
) -> PullPlan:
    """Return what to resolve and what to scan; `added` has the files of a version."""
    one_of_key = spec.keyed and mode is not PullMode.RAW
    compared = [step for step in steps.steps if step.told is Told.DIFFERENCE]
    again = one_of_key and (bool(compared) or not spec.key_decides_partition)
    placed = _placed(steps, added)
    numbers = _numbers(
        [*(rank for _, _, rank in placed), *(step.rank for step in compared)], one_of_key
    )
    pulled = [
        PulledFile(file, step.version, step.timestamp_ms, numbers[rank])
        for step, file, rank in placed
    ]
    if again and pruning is not None:
        pruning = replace(pruning, whole=pruning.on_key)
    reading = ReadMode.MERGED if one_of_key else ReadMode.UNMERGED
    files = TableFiles((), tuple(p.file for p in pulled))
    plan = plan_scan(spec, _ALL, files, mode=reading, pruning=pruning)
    scanned = {file.path for file in plan.changes}
    return PullPlan(
        table=spec.name,
        mode=mode,
        files=tuple(p for p in pulled if p.file.path in scanned),
        groups=tuple(replace(g, keep=Keep.NEWEST) for g in plan.groups if _may_hide(g)),
        ranks={p.file.path: p.rank for p in pulled},
        overwrites=tuple(step for step in steps.steps if step.told is Told.OVERWRITE),
        differences=tuple((step, numbers[step.rank]) for step in compared),
        one_of_key=one_of_key,
        chosen_again=again,
    )


_ALL = View(0, None, None, Watermark(), {}, {}, None)
"""A state in which nothing is merged."""


def _placed(
    steps: Steps, added: Mapping[int, Sequence[FileEntry]]
) -> list[tuple[Step, FileEntry, Rank]]:
    found = []
    for step in steps.steps:
        if step.told is Told.DIFFERENCE:
            continue
        for file in added.get(step.version, ()):
            rank = steps.rank(step, file)
            if rank is not None:
                found.append((step, file, rank))
    return found


def _numbers(ranks: Sequence[Rank], one_of_key: bool) -> dict[Rank, int]:
    """Return ranks as whole numbers from 1; a resolution takes them for sequences."""
    assert one_of_key or all(segment == 0 for segment, _ in ranks), "only base has segments"
    return {rank: number for number, rank in enumerate(sorted(set(ranks)), start=1)}


def _may_hide(group: ResolveGroup) -> bool:
    """Whether a key may come twice; in a single file of a batch it does not."""
    return len(group.changes) > 1 or group.changes[0].role is Role.CHANGE
