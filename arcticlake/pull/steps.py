"""The steps of a pull: which snapshots to open, and how each version is told.

    upsert, delete        ROWS         the files that the commit added to the change table
    insert                ROWS         the files that the batch added to base
    overwrite             OVERWRITE    one row that says so, then the files that it added
    overwrite, compared   DIFFERENCE   the rows that differ before and after

An overwrite is always compared where one row could not tell what it did: a rollback, one by another
engine, and one with older changes on top. A table without a key has nothing to compare by.

What base mode shows is found on the line of base snapshots instead. Between two of them rows
changed by batches and by merges; a merge took, node by node, the changes between two watermarks:

    since's base ──C1──▶ ──O──▶ ──C2──▶ until's base      C merges, O overwrites
    └──── segment 0 ───┘ └─── segment 1 ─┘                 an overwrite begins a segment

A change that C1 merged and O replaced is older than the rows of O, whatever its sequence; so rows
are ranked by segment first.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from arcticlake.commit.history import (
    FOREIGN,
    Log,
    SnapshotFact,
    Version,
    View,
    check_foreign,
    plan_view,
    versions,
)
from arcticlake.commit.replacement import decode_replacement
from arcticlake.errors import NotFound
from arcticlake.pull.range import PullMode, Range, expired_range, lost_batches
from arcticlake.read.plan import ReadMode
from arcticlake.table.watermark import Watermark, decode_watermark
from arcticlake.tree.files import FileEntry, Role

Rank = tuple[int, int]
"""(segment, place in it): the order of two versions of a row."""

_OVERWRITE_PLACE = -1
"""The rows of an overwrite come first in the segment that it begins."""


class Told(StrEnum):
    """How a version is told."""

    ROWS = "rows"
    OVERWRITE = "overwrite"
    DIFFERENCE = "difference"


@dataclass(frozen=True, slots=True)
class Step:
    """One version of a pull."""

    version: int
    timestamp_ms: int
    role: Role
    """The table that its files are in."""
    snapshot_id: int
    """The snapshot of that table which added them."""
    rank: Rank
    told: Told = Told.ROWS
    before: View | None = None
    """For a difference: what is compared."""
    after: View | None = None
    reading: ReadMode = ReadMode.MERGED
    batch: Version | None = None
    """The batch whose partitions bound a difference."""


@dataclass(frozen=True, slots=True)
class Window:
    """What the merges of one segment took: changes between two watermarks."""

    segment: int
    after: Watermark
    until: Watermark

    def holds(self, file: FileEntry) -> bool:
        """Whether the rows of a change file were merged."""
        place = (file.partition, file.node.mask, file.node.index)
        return self.after.merged(*place) < file.sequence <= self.until.merged(*place)


@dataclass(frozen=True, slots=True)
class Steps:
    """All steps of a pull, oldest first."""

    steps: tuple[Step, ...]
    windows: tuple[Window, ...] | None = None
    """Which change files count; None for all."""

    def rank(self, step: Step, file: FileEntry) -> Rank | None:
        """Return where the rows of a file stand; None if they do not belong here."""
        if self.windows is None or step.role is Role.BASE:
            return step.rank
        for window in reversed(self.windows):
            if window.holds(file):
                return (window.segment, file.sequence)
        return None


def plan_steps(log: Log, asked: Range, mode: PullMode, *, difference: bool) -> Steps:
    """Return the steps of a range."""
    check_foreign(log)
    if asked.empty:
        return Steps(())
    known = versions(log)
    if mode is PullMode.BASE and log.change is not None:
        return _base_steps(log, known, asked, difference=difference)
    inside = [version for version in known if asked.holds(version.version)]
    if log.change is None:
        return Steps(tuple(map(_keyless_step, inside)))
    return Steps(tuple(_step(log, known, version, difference) for version in inside))


def _keyless_step(version: Version) -> Step:
    adds = version.kind in {"insert", "foreign append"}
    return Step(
        version=version.version,
        timestamp_ms=version.timestamp_ms,
        role=Role.BASE,
        snapshot_id=version.snapshot_id,
        rank=(0, version.version),
        told=Told.ROWS if adds else Told.OVERWRITE,
    )


def _step(log: Log, known: Sequence[Version], version: Version, difference: bool) -> Step:
    step = _plain_step(version)
    told = _told(known, version, difference)
    if told is not Told.DIFFERENCE:
        return replace(step, told=told)
    before = max((v.version for v in known if v.version < version.version), default=0)
    assert log.change, "the log holds the version itself"
    complete = before > 0 or log.change[0].sequence == 1
    try:
        if not complete:
            raise _no_state_before(log, version)
        views = (plan_view(log, before), plan_view(log, version.version))
    except NotFound as error:
        raise _no_state_before(log, version) from error
    return replace(step, told=told, before=views[0], after=views[1], batch=version)


def _plain_step(version: Version) -> Step:
    named = version.base_snapshot_id
    return Step(
        version=version.version,
        timestamp_ms=version.timestamp_ms,
        role=Role.CHANGE if named is None else Role.BASE,
        snapshot_id=version.snapshot_id if named is None else named,
        rank=(0, version.version),
    )


def _told(known: Sequence[Version], version: Version, difference: bool) -> Told:
    if version.kind == "rollback":
        return Told.DIFFERENCE
    if version.base_snapshot_id is None or version.kind == "insert":
        return Told.ROWS
    replacement = decode_replacement(version.summary)
    unclear = version.summary.get(FOREIGN) == "true" or replacement is None
    if replacement is not None:
        unclear = unclear or any(replacement.version < v.version < version.version for v in known)
    return Told.DIFFERENCE if difference or unclear else Told.OVERWRITE


def _no_state_before(log: Log, version: Version) -> NotFound:
    return NotFound(
        f"table {log.table}: what the {version.kind} of version {version.version} changed can only "
        "be told by comparing, and the state before it has expired; the oldest version to pull "
        f"from is {version.version}: use since={version.version}"
    )


def _base_steps(log: Log, known: Sequence[Version], asked: Range, *, difference: bool) -> Steps:
    first, last = _state_at(log, known, asked.since), _state_at(log, known, asked.until)
    if first is None or last is None:
        raise expired_range(log, asked, _oldest_base(log, known, asked))
    batches, windows = _walk(log, known, (first, last), difference)
    merged = _merged_between(log, known, windows)
    if merged is None:
        raise expired_range(log, asked, _oldest_base(log, known, asked))
    steps = [*batches, *map(_plain_step, merged)]
    return Steps(tuple(sorted(steps, key=lambda step: step.version)), windows)


def _state_at(log: Log, known: Sequence[Version], version: int) -> View | None:
    """Return the state at a version, or at the one before it; None if it has expired."""
    newest = max((v.version for v in known if v.version <= version), default=0)
    forgotten = any(line and line[0].sequence > 1 for line in (log.base, log.change))
    if newest == 0 and forgotten:
        return None
    try:
        return plan_view(log, newest)
    except NotFound:
        return None


def _walk(
    log: Log, known: Sequence[Version], views: tuple[View, View], difference: bool
) -> tuple[list[Step], tuple[Window, ...]]:
    """Walk the base snapshots from one view to the other."""
    marked = {v.base_snapshot_id: v for v in known if v.base_snapshot_id is not None}
    since, until = views
    steps, windows = [], []
    segment, begun, merged = 0, since.watermark, since.watermark
    head = since.base_snapshot_id
    for fact in _between(log, head, until.base_snapshot_id):
        now = decode_watermark(fact.summary) if fact.ours else merged
        version = marked.get(fact.snapshot_id)
        if fact.content and version is not None:
            told = _told(known, version, difference)
            step = replace(_plain_step(version), rank=(segment, version.version), told=told)
            if told is not Told.ROWS:
                windows.append(Window(segment, begun, merged))
                segment, begun = segment + 1, now
                before = replace(until, base_snapshot_id=head, change_snapshot_id=None)
                step = replace(
                    step,
                    rank=(segment, _OVERWRITE_PLACE),
                    before=before,
                    after=replace(before, base_snapshot_id=fact.snapshot_id),
                    reading=ReadMode.BASE,
                    batch=version,
                )
            steps.append(step)
        merged, head = now, fact.snapshot_id
    return steps, (*windows, Window(segment, begun, merged))


def _between(log: Log, first: int | None, last: int | None) -> Iterable[SnapshotFact]:
    places: Mapping[int | None, int] = {f.snapshot_id: n for n, f in enumerate(log.base)}
    return log.base[places.get(first, -1) + 1 : places.get(last, -1) + 1]


def _merged_between(
    log: Log, known: Sequence[Version], windows: Sequence[Window]
) -> list[Version] | None:
    """Return the commits of changes that merges may have taken; None if some have expired."""
    reached = [max((w.until.through, *w.until.ahead.values())) for w in windows]
    taken = [
        (window.after.through, until)
        for window, until in zip(windows, reached, strict=True)
        if until > window.after.through and window.after != window.until
    ]
    if not taken:
        return []
    assert log.change is not None, "only changes are merged"
    if log.change and log.change[0].sequence > min(after for after, _ in taken) + 1:
        return None
    return [
        version
        for version in known
        if version.base_snapshot_id is None
        and version.kind != "rollback"
        and any(after < version.version <= until for after, until in taken)
    ]


def _oldest_base(log: Log, known: Sequence[Version], asked: Range) -> int:
    """Return the oldest version from which rows of base can be told."""
    oldest = max([asked.since, *lost_batches(log)])
    newest = _state_at(log, known, asked.until)
    for version in known:
        view = _state_at(log, known, version.version) if version.version >= oldest else None
        if view is None or newest is None or version.version > asked.until:
            continue
        window = Window(0, view.watermark, newest.watermark)
        if _merged_between(log, known, [window]) is not None:
            return version.version
    return known[-1].version if known else asked.until
