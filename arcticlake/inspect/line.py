"""Checks on the history and on manifests alone: no data file is opened.

Pure.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise

from arcticlake.commit.history import BASE_SNAPSHOT, Log, SnapshotFact, View, unmarked
from arcticlake.inspect.measure import is_pending
from arcticlake.inspect.verdict import Findings, Rule
from arcticlake.table.spec import TableSpec
from arcticlake.tree.files import FileEntry
from arcticlake.tree.forest import Partition
from arcticlake.tree.node import Node

_ORDERED_KINDS = frozenset({"major", "full"})
"""Commits that promise disjoint ranges in a leaf; files of an insert or an overwrite are closed
when they are full, in whatever order the rows come."""


def check_log(log: Log, view: View) -> Findings:
    """Check watermark and markers of a keyed table."""
    found = Findings()
    found.count(Rule.HISTORY, len(log.base) + len(log.change or ()), "snapshots")
    if log.change is None:
        return found
    _check_watermark(log, view, found)
    _check_markers(log, found)
    return found


def _check_watermark(log: Log, view: View, found: Findings) -> None:
    newest = max((fact.sequence for fact in log.change or ()), default=0)
    marks = (view.watermark.through, *view.watermark.ahead.values())
    found.count(Rule.WATERMARK, len(marks), "marks")
    for mark in marks:
        if mark > newest:
            message = f"base claims to contain changes up to {mark}, the newest is {newest}"
            found.add(Rule.WATERMARK, message)


def _check_markers(log: Log, found: Findings) -> None:
    content = [fact for fact in log.base if fact.content]
    found.count(Rule.MARKERS, len(content), "base commits")
    named = Counter(
        fact.summary[BASE_SNAPSHOT] for fact in log.change or () if BASE_SNAPSHOT in fact.summary
    )
    for snapshot_id, count in named.items():
        if count > 1:
            found.add(Rule.MARKERS, f"base snapshot {snapshot_id} has {count} versions, not one")
    for fact in unmarked(log):
        by = "this program" if fact.ours else "another engine"
        what = f"base snapshot {fact.snapshot_id} ({fact.kind}, by {by}) has no version"
        later = [other for other in log.base if other.sequence > fact.sequence and other.ours]
        if later:
            message = f"{what}, and snapshot {later[0].snapshot_id} was built on it"
            found.add(Rule.MARKERS, message)
        else:
            found.notes.append(f"{what} yet; the next writer gives it one")


def check_merged(view: View, changes: Sequence[FileEntry]) -> Findings:
    """Tell of change files that base holds already; readers skip them, so it breaks no rule.

    A compaction that stops between its two commits leaves them.
    """
    found = Findings()
    merged = sum(1 for file in changes if not is_pending(file, view))
    if merged:
        files = "file waits" if merged == 1 else "files wait"
        note = f"{merged} merged change {files} to be dropped; the next compaction does it"
        found.notes.append(note)
    return found


def check_ranges(
    spec: TableSpec, facts: Mapping[int, SnapshotFact], bases: Sequence[FileEntry]
) -> Findings:
    """Check that base files of one leaf that one compaction wrote do not overlap.

    With a sort key the files are disjoint by its first column, else by the first key column; only
    a key of one column cannot repeat a value at the border of two files.
    """
    found = Findings()
    if not spec.keyed and not spec.sort_ids:
        return found
    groups: dict[tuple[int, Partition, Node], list[FileEntry]] = defaultdict(list)
    for file in bases:
        fact = facts.get(file.snapshot_id)
        if fact is not None and fact.ours and fact.kind in _ORDERED_KINDS:
            groups[file.snapshot_id, file.partition, file.node].append(file)
    strict = not spec.sort_ids and len(spec.key_ids) == 1
    for (snapshot_id, _, node), members in groups.items():
        found.count(Rule.RANGES, len(members), "base files")
        for file, following in pairwise(_by_range(spec, members)):
            upper, lower = _range(spec, file)[1], _range(spec, following)[0]
            if _overlap(upper, lower, strict=strict):
                message = (
                    f"files of snapshot {snapshot_id} overlap in node {node}: {lower!r} is not "
                    f"above {upper!r} of {file.path}"
                )
                found.add(Rule.RANGES, message, following.path)
    return found


def _by_range(spec: TableSpec, members: Sequence[FileEntry]) -> list[FileEntry]:
    known = [file for file in members if None not in _range(spec, file)]
    return sorted(known, key=lambda file: _range(spec, file))


def _range(spec: TableSpec, file: FileEntry) -> tuple[object, object]:
    if spec.sort_ids:
        return file.sort_lower[0], file.sort_upper[0]
    return file.key_lower[0], file.key_upper[0]


def _overlap(upper: object, lower: object, *, strict: bool) -> bool:
    return bool(lower <= upper if strict else lower < upper)  # type: ignore[operator]
