"""What a rewrite means for the table when it lands: how far base is merged, and who was faster.

The watermark moves with the files. A group that merged its changes up to a version says so for
its subtree (`ahead`); once no change below some version waits anywhere, all those subtrees
become one number (`through`).

What landed between plan and commit is told in the words of `commit/rules.py`, which decides.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from arcticlake.commit.history import Log, SnapshotFact
from arcticlake.commit.replacement import decode_replacement
from arcticlake.commit.rules import Kind, Landed
from arcticlake.table.watermark import Partition, Subtree, Watermark
from arcticlake.tree.files import FileEntry
from arcticlake.tree.node import Node


def advance(
    watermark: Watermark,
    merged: Sequence[tuple[Partition, Node]],
    version: int,
    *,
    live: Sequence[FileEntry],
    newest: int,
) -> Watermark:
    """Return the watermark after some subtrees were merged up to a version.

    `live` are all change files there are, `newest` the sequence of the last commit among them:
    what is neither waiting nor above it, is merged.
    """
    ahead = dict(watermark.ahead)
    for partition, node in merged:
        subtree = (partition, node.mask, node.index)
        ahead[subtree] = max(version, ahead.get(subtree, 0))
    moved = Watermark(watermark.through, ahead)
    through = newest
    for file in live:
        reached = moved.merged(file.partition, file.node.mask, file.node.index)
        if file.sequence > reached:  # its oldest row that waits stands in the way
            through = min(through, max(file.sequence_min, reached + 1) - 1)
    through = max(through, watermark.through)
    return Watermark(through, _needed(ahead, through))


def _needed(ahead: Mapping[Subtree, int], through: int) -> dict[Subtree, int]:
    """Return the entries that say more than `through` and than the subtrees above them."""
    kept: dict[Subtree, int] = {}
    for (partition, mask, index), merged in sorted(
        ahead.items(), key=lambda entry: (entry[0][1], entry[0][2], repr(entry[0][0]))
    ):
        if merged > Watermark(through, kept).merged(partition, mask, index):
            kept[partition, mask, index] = merged
    return kept


def landed_since(
    planned: Log,
    newest: Log,
    planned_bases: Sequence[FileEntry],
    newest_bases: Sequence[FileEntry],
) -> list[Landed] | None:
    """Return what changed base after the plan was made; None if that is no longer known."""
    facts: Sequence[SnapshotFact] = newest.base
    if planned.base:
        head = planned.base[-1].snapshot_id
        places = [n for n, fact in enumerate(facts) if fact.snapshot_id == head]
        if not places:
            return None
        facts = facts[places[0] + 1 :]
    named = _newly_deleted(planned_bases, newest_bases) if facts else frozenset()
    return [_landed(fact, named) for fact in facts]


def _landed(fact: SnapshotFact, named: frozenset[str]) -> Landed:
    if not fact.ours:
        return _foreign(fact, named)
    match fact.kind:
        case "insert":
            return Landed(Kind.INSERT)
        case "overwrite":
            replacement = decode_replacement(fact.summary)
            return Landed(Kind.OVERWRITE, replacement.partitions if replacement else None)
        case "rollback":
            return Landed(Kind.ROLLBACK)
    return Landed(Kind.COMPACTION)


def _foreign(fact: SnapshotFact, named: frozenset[str]) -> Landed:
    if fact.operation == "append":
        return Landed(Kind.INSERT)
    if fact.operation == "replace":
        return Landed(Kind.COMPACTION)
    if int(fact.summary.get("deleted-data-files", "0")) == 0:
        return Landed(Kind.ROW_DELETES, named=named)
    return Landed(Kind.OVERWRITE)


def _newly_deleted(before: Sequence[FileEntry], after: Sequence[FileEntry]) -> frozenset[str]:
    """Return the files with row deletes that the plan did not see."""
    known = {file.path: {d.file_path for d in file.row_deletes} for file in before}
    return frozenset(
        file.path
        for file in after
        if file.row_deletes
        and {d.file_path for d in file.row_deletes} - known.get(file.path, set())
    )
