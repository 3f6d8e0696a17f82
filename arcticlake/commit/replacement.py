"""What a batch overwrite replaces, and which changes stay on top of it.

An overwrite replaces all rows of some partitions by rows that stand for one change version v: they
contain every change up to v, and changes above v apply on top of them.

                 …  v-1   v │ v+1  v+2 …  now
    base commit     replaced│ stay on top        both partitions and v are in its summary
    marker          removed │ are live           in the change table, one commit with the version

For v = now nothing stays. For an older v the marker brings change files back that were merged or
rewritten since: always the originals, found in the commits that first added them. Whoever writes
the marker needs nothing but the summary, so anybody can finish the overwrite of a dead writer.

Pure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from arcticlake.commit.change import Operation
from arcticlake.commit.history import (
    BASE_CONTENT_KINDS,
    CHANGE_VERSION,
    OVERWROTE,
    Log,
    Version,
    versions,
)
from arcticlake.errors import CorruptData, InvalidRequest
from arcticlake.table.watermark import Partition, decode_value, encode_value
from arcticlake.tree.files import FileEntry

EVERYTHING = "*"


@dataclass(frozen=True, slots=True)
class Replacement:
    """Which partitions an overwrite replaces, and the change version that its rows stand for."""

    version: int
    partitions: frozenset[Partition] | None
    """None for the whole table."""

    def touches(self, partition: Partition) -> bool:
        """Whether the rows of a partition are replaced."""
        return self.partitions is None or partition in self.partitions


def encode_replacement(replacement: Replacement) -> dict[str, str]:
    """Return a replacement as entries of a snapshot summary."""
    overwrote = EVERYTHING
    if replacement.partitions is not None:
        rows = [[encode_value(value) for value in part] for part in replacement.partitions]
        overwrote = json.dumps(sorted(rows, key=json.dumps), separators=(",", ":"))
    return {CHANGE_VERSION: str(replacement.version), OVERWROTE: overwrote}


def decode_replacement(summary: Mapping[str, str]) -> Replacement | None:
    """Return the replacement that a summary carries; None for a commit that is no overwrite."""
    if CHANGE_VERSION not in summary or OVERWROTE not in summary:
        return None
    try:
        version = int(summary[CHANGE_VERSION])
        if summary[OVERWROTE] == EVERYTHING:
            return Replacement(version, None)
        rows = json.loads(summary[OVERWROTE])
        return Replacement(version, frozenset(tuple(map(decode_value, row)) for row in rows))
    except (ValueError, TypeError) as error:
        message = f"what an overwrite replaced cannot be read: {error}; run verify()"
        raise CorruptData(message) from error


def replaced_paths(replacement: Replacement, bases: Iterable[FileEntry]) -> frozenset[str]:
    """Return the base files that go, and the row deletes that name no other file."""
    gone: set[str] = set()
    deletes: set[str] = set()
    needed: set[str] = set()
    for file in bases:
        touched = replacement.touches(file.partition)
        (deletes if touched else needed).update(delete.file_path for delete in file.row_deletes)
        if touched:
            gone.add(file.path)
    return frozenset(gone | (deletes - needed))


@dataclass(frozen=True, slots=True)
class Exchange:
    """What the marker of an overwrite does to the files of the change table."""

    added: tuple[FileEntry, ...] = ()
    """Originals that come back, each with the sequence number that it had."""
    removed: frozenset[str] = frozenset()

    @property
    def operation(self) -> Operation:
        """Iceberg's word for it."""
        if not self.removed:
            return Operation.APPEND
        return Operation.OVERWRITE if self.added else Operation.DELETE


def plan_exchange(
    replacement: Replacement, live: Sequence[FileEntry], originals: Sequence[FileEntry] | None
) -> Exchange:
    """Return which change files come and go, so that exactly the changes above stay.

    `originals` are the files of every commit of changes above the version; None if some of these
    commits have expired. Then live files that reach above it stay, whatever else they hold:
    readers leave out rows that the watermark covers.
    """
    mine = [file for file in live if replacement.touches(file.partition)]
    if originals is None:
        gone = (file.path for file in mine if file.sequence <= replacement.version)
        return Exchange(removed=frozenset(gone))
    wanted = {file.path: file for file in originals if replacement.touches(file.partition)}
    here = {file.path for file in mine}
    return Exchange(
        added=tuple(file for path, file in wanted.items() if path not in here),
        removed=frozenset(here - wanted.keys()),
    )


def is_complete(log: Log, version: int) -> bool:
    """Whether the log still holds every snapshot of the change table above a version."""
    return not log.change or log.change[0].sequence <= version + 1


def newest_version(log: Log) -> int:
    """Return the version that stands for now; 0 before the first commit."""
    known = versions(log)
    if known:
        return known[-1].version
    # Every version has expired and only snapshots without one are left: all changes are older.
    return log.change[-1].sequence if log.change else 0


def check_version(
    log: Log,
    replacement: Replacement,
    touched_by: Callable[[Version], frozenset[Partition] | None],
) -> None:
    """Refuse a change version that the table cannot be set to.

    `touched_by` tells the partitions of a batch; None for all, or if that is not known any more.
    """
    version, newest = replacement.version, newest_version(log)
    if not 0 <= version <= newest:
        message = (
            f"table {log.table}: change_version {version} is not between 0 and the newest version "
            f"{newest}; see history(), or leave it away for now"
        )
        raise InvalidRequest(message)
    if version < newest and log.change and not is_complete(log, version):
        message = (
            f"table {log.table}: the changes after change_version {version} have expired in part; "
            f"the oldest change_version that is possible is {log.change[0].sequence - 1}"
        )
        raise InvalidRequest(message)
    for batch in versions(log):
        if batch.version <= version or not _is_batch(batch):
            continue
        touched = touched_by(batch)
        if touched is None or any(map(replacement.touches, touched)):
            message = (
                f"table {log.table}: the {batch.kind} of version {batch.version} wrote rows that "
                f"are no changes, and an overwrite for change_version {version} would lose them; "
                f"use a change_version of {batch.version} or above, or insert these rows again "
                "afterwards"
            )
            raise InvalidRequest(message)


def _is_batch(version: Version) -> bool:
    return version.kind in BASE_CONTENT_KINDS and version.base_snapshot_id is not None
