"""Tables without a key: small files become fewer, and that is all (NPK-03).

There are no changes and no tree: a partition is one group, and its files keep their order of
arrival. A file is small below half the target size. All pieces but the last then come out large, so
that a second run finds at most one small file and leaves it alone.

Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from arcticlake.compact.explain import count, readable_bytes
from arcticlake.compact.group import find_clusters
from arcticlake.compact.nodes import Limits
from arcticlake.compact.piece import Piece, in_order, pack, size_of
from arcticlake.compact.score import Verdict, Work, row_delete_reason
from arcticlake.tree.files import FileEntry
from arcticlake.tree.node import ROOT

SMALL_FILES_MIN = 4
"""So many small files are worth a rewrite, however small they are."""


def plan_keyless_pieces(
    files: Sequence[FileEntry], kind: str, *, target: int, memory: int, by_sort: bool
) -> list[Piece]:
    """Return the small files of a partition without a key, put together (NPK-03).

    They keep their order of arrival; with a sort key, files that overlap stay together, so that
    what one compaction writes is in order.
    """
    full = kind == "full"
    small = [f for f in files if full or 2 * f.bytes < target or f.row_deletes]
    if by_sort:
        clusters = [cluster.bases for cluster in find_clusters(small, (), (ROOT,), by_sort=True)]
    else:
        arrived = sorted(small, key=lambda file: (file.sequence, file.path))
        clusters = [(file,) for file in arrived]
    pieces = []
    for run in pack([size_of(bases) for bases in clusters], memory if full else target):
        members = in_order(file for number in run for file in clusters[number])
        deleted = any(file.row_deletes for file in members)
        few = len(members) < SMALL_FILES_MIN and 2 * size_of(members) < target
        if full or deleted or (len(members) > 1 and not (kind == "auto" and few)):
            pieces.append(Piece(members, (), (ROOT,)))
    return pieces


def score_keyless(
    files: Sequence[FileEntry], pieces: Sequence[Piece], kind: str, limits: Limits
) -> Verdict:
    """Return why the small files of a partition are put together, or not."""
    if kind == "full":
        return Verdict(Work.FULL, "asked for in full", 1.0)
    small = [file for file in files if 2 * file.bytes < limits.target]
    if not pieces:
        reason = f"{count(len(small), 'small file')}, {readable_bytes(size_of(small))}; waits for "
        enough = f"{SMALL_FILES_MIN} of them or {readable_bytes(limits.target // 2)}"
        reason += enough if kind == "auto" else "2 of them"
        return Verdict(Work.KEEP, reason if small else "no small file", 0.0)
    score = max(
        max(len(piece.bases) / SMALL_FILES_MIN, 2 * piece.bytes / limits.target) for piece in pieces
    )
    deleted = sum(1 for file in files if file.row_deletes)
    if deleted:
        return Verdict(Work.MAJOR, row_delete_reason(deleted), max(score, 1.0))
    read = sum(len(piece.bases) for piece in pieces)
    written = sum(piece.output_files(limits.target) for piece in pieces)
    return Verdict(Work.MAJOR, f"{count(read, 'small file')} become {written}", score)
