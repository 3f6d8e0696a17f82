"""What single snapshots did: the files that commits of changes added, the partitions of a batch.

A manifest says which snapshot wrote it, so only the manifests of that one snapshot are opened.

Touches manifests.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyiceberg.manifest import ManifestContent, ManifestEntry, ManifestEntryStatus
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from arcticlake.commit.history import BASE_SNAPSHOT, CONTENT_KINDS, Log, Version
from arcticlake.commit.iceberg import live_entries
from arcticlake.commit.replacement import (
    Exchange,
    Replacement,
    decode_replacement,
    is_complete,
    plan_exchange,
)
from arcticlake.table.iceberg import TablePair
from arcticlake.table.spec import TableSpec
from arcticlake.table.watermark import Partition
from arcticlake.tree.files import FileEntry, Role
from arcticlake.tree.manifest import file_entries


def load_exchange(spec: TableSpec, change: Table, log: Log, replacement: Replacement) -> Exchange:
    """Return what the marker of an overwrite does to the files of the change table's head.

    `log` must be that of the same head.
    """
    specs = change.specs()
    live = file_entries(
        live_entries(change, change.current_snapshot()), Role.CHANGE, spec, specs, {}
    )
    originals: list[FileEntry] | None = None
    if is_complete(log, replacement.version):
        originals = list(_changes_above(spec, change, log, replacement.version))
    return plan_exchange(replacement, live, originals)


def _changes_above(spec: TableSpec, change: Table, log: Log, version: int) -> Iterator[FileEntry]:
    """Yield the files of every commit of changes above a version; a marker is none."""
    for fact in log.change or ():
        is_marker = BASE_SNAPSHOT in fact.summary
        if fact.sequence <= version or fact.kind not in CONTENT_KINDS or is_marker:
            continue
        yield from added_files(spec, change, Role.CHANGE, fact.snapshot_id)


def added_files(spec: TableSpec, table: Table, role: Role, snapshot_id: int) -> list[FileEntry]:
    """Return the data files that one snapshot added; only its own manifests are opened."""
    snapshot = table.snapshot_by_id(snapshot_id)
    assert snapshot is not None, f"snapshot {snapshot_id} is in the log but not there"
    added = [e for e in _own_entries(table, snapshot) if e.status == ManifestEntryStatus.ADDED]
    return file_entries(added, role, spec, table.specs(), {})


def load_touched(pair: TablePair, batch: Version) -> frozenset[Partition] | None:
    """Return the partitions whose base rows a batch wrote or removed; None if not known."""
    if (replacement := decode_replacement(batch.summary)) is not None:
        return replacement.partitions
    snapshot = pair.base.snapshot_by_id(batch.base_snapshot_id or 0)
    if snapshot is None:
        return None
    changed = [
        entry
        for entry in _own_entries(pair.base, snapshot)
        if entry.status != ManifestEntryStatus.EXISTING
    ]
    deletes = any(
        manifest.content == ManifestContent.DELETES
        and manifest.added_snapshot_id == snapshot.snapshot_id
        for manifest in snapshot.manifests(pair.base.io)
    )
    if deletes:
        return None  # rows of another engine's choice, in partitions that their files need not name
    files = file_entries(changed, Role.BASE, pair.spec, pair.base.specs(), {})
    return frozenset(file.partition for file in files)


def _own_entries(table: Table, snapshot: Snapshot) -> Iterator[ManifestEntry]:
    """Yield the entries of the data manifests that one snapshot wrote itself."""
    for manifest in snapshot.manifests(table.io):
        own = manifest.added_snapshot_id == snapshot.snapshot_id
        if own and manifest.content == ManifestContent.DATA:
            yield from manifest.fetch_manifest_entry(table.io, discard_deleted=False)
