"""The state of a table as planners need it: its log, and the live files of a view.

Touches the catalog's metadata and the manifests; both are read through caches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyiceberg.catalog import Catalog
from pyiceberg.manifest import DataFile, ManifestContent, ManifestEntryStatus
from pyiceberg.table import Table
from pyiceberg.table.delete_file_index import DeleteFileIndex
from pyiceberg.table.snapshots import Snapshot

from arcticlake.commit.history import BASE_SNAPSHOT, COMMIT_ID, Log, SnapshotFact, View, plan_view
from arcticlake.commit.iceberg import live_deletes, live_entries
from arcticlake.commit.marks import decode_marks
from arcticlake.errors import InvalidRequest
from arcticlake.table.iceberg import TablePair, load_pair
from arcticlake.tree.files import FileEntry, Role, TableFiles
from arcticlake.tree.forest import Forest, plant
from arcticlake.tree.manifest import file_entries

MERGED_INTO = "arctic.merged-into"
"""In a snapshot of the change table that drops merged files: the base snapshot that holds them."""

_REPLACE_PARTITIONS = "replace-partitions"


@dataclass(frozen=True, slots=True)
class TableState:
    """Both tables at one moment, with the newest view and its files."""

    pair: TablePair
    log: Log
    view: View
    files: TableFiles

    @property
    def forest(self) -> Forest:
        """The trees that new rows are routed by."""
        return plant(self.files.all, self.pair.spec.options.initial_nodes)


def load_state(pair: TablePair, at: int | None = None) -> TableState:
    """Return the state of a loaded pair, now or at a version."""
    log = load_log(pair)
    view = plan_view(log, at)
    return TableState(pair, log, view, load_files(pair, view))


def load_settled(catalog: Catalog, name: str) -> TablePair:
    """Load both tables so that base has everything that the change table says of it.

    Between the two loads a batch and its marker may land, and changes after them. Such a pair
    would show the changes without the batch, a state that never was. Or a compaction lands, and
    the change table no longer holds what this base does not hold yet. It is loaded again.
    """
    pair = load_pair(catalog, name)
    while pair.change is not None and _names_unseen(pair.base, pair.change):
        again = load_pair(catalog, name)
        if again.base.metadata.current_snapshot_id == pair.base.metadata.current_snapshot_id:
            return again  # the snapshot is not new, it has expired
        pair = again
    return pair


def _names_unseen(base: Table, change: Table) -> bool:
    """Whether the newest marker, or the newest trim, names a base snapshot not there yet."""
    waited_for = {BASE_SNAPSHOT, MERGED_INTO}
    for snapshot in reversed(change.metadata.snapshots):
        told = snapshot.summary.additional_properties if snapshot.summary else {}
        for key in waited_for & told.keys():
            if base.snapshot_by_id(int(told[key])) is None:
                return True
            waited_for.remove(key)
        if not waited_for:
            return False
    return False


def load_log(pair: TablePair) -> Log:
    """Return the main lines of both tables."""
    if pair.change is None:
        return Log(pair.spec.name, _line(pair.base), None)
    marks = decode_marks(pair.change.properties)
    return Log(pair.spec.name, _line(pair.base), _line(pair.change), marks)


def _line(table: Table) -> tuple[SnapshotFact, ...]:
    by_id = {snapshot.snapshot_id: snapshot for snapshot in table.metadata.snapshots}
    line: list[Snapshot] = []
    following = table.metadata.current_snapshot_id
    while following is not None and following in by_id:
        line.append(by_id[following])
        following = by_id[following].parent_snapshot_id
    return tuple(_fact(snapshot, by_id, table) for snapshot in reversed(line))


def _fact(snapshot: Snapshot, by_id: Mapping[int, Snapshot], table: Table) -> SnapshotFact:
    summary = snapshot.summary
    properties = dict(summary.additional_properties) if summary is not None else {}
    parent = by_id.get(snapshot.parent_snapshot_id or -1)
    dynamic = properties.get(_REPLACE_PARTITIONS) == "true"
    return SnapshotFact(
        snapshot_id=snapshot.snapshot_id,
        sequence=snapshot.sequence_number or 0,
        timestamp_ms=snapshot.timestamp_ms,
        operation=summary.operation.value if summary is not None else "append",
        schema_id=snapshot.schema_id,
        summary=properties,
        mixed_before=dynamic and parent is not None and _specs_in_use(parent, table) > 1,
        replaced=_replaced(snapshot, table) if _is_foreign_rewrite(snapshot, properties) else None,
    )


def _is_foreign_rewrite(snapshot: Snapshot, properties: Mapping[str, str]) -> bool:
    operation = snapshot.summary.operation.value if snapshot.summary is not None else "append"
    adds = int(properties.get("added-data-files", "0")) > 0
    return COMMIT_ID not in properties and operation != "append" and adds


def _replaced(snapshot: Snapshot, table: Table) -> frozenset[int]:
    """Return the sequences of the files that a snapshot removed."""
    return frozenset(
        entry.sequence_number or 0
        for manifest in snapshot.manifests(table.io)
        if manifest.content == ManifestContent.DATA
        and manifest.added_snapshot_id == snapshot.snapshot_id
        and manifest.deleted_files_count
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False)
        if entry.status == ManifestEntryStatus.DELETED
    )


def _specs_in_use(snapshot: Snapshot, table: Table) -> int:
    return len(
        {
            manifest.partition_spec_id
            for manifest in snapshot.manifests(table.io)
            if manifest.content == ManifestContent.DATA
            and (manifest.has_added_files() or manifest.has_existing_files())
        }
    )


def load_files(pair: TablePair, view: View) -> TableFiles:
    """Return the live files of both tables at a view."""
    bases = _files(pair, pair.base, Role.BASE, view.base_snapshot_id)
    changes: list[FileEntry] = []
    if pair.change is not None:
        changes = _files(pair, pair.change, Role.CHANGE, view.change_snapshot_id)
    return TableFiles(tuple(bases), tuple(changes))


def _files(pair: TablePair, table: Table, role: Role, snapshot_id: int | None) -> list[FileEntry]:
    if snapshot_id is None:
        return []
    snapshot = table.snapshot_by_id(snapshot_id)
    assert snapshot is not None, f"snapshot {snapshot_id} is in the log but not in the table"
    entries = live_entries(table, snapshot)
    deletes = _row_deletes(table, snapshot, pair.spec.name) if role is Role.BASE else {}
    return file_entries(entries, role, pair.spec, table.specs(), deletes)


def _row_deletes(table: Table, snapshot: Snapshot, name: str) -> Mapping[str, tuple[DataFile, ...]]:
    """Return the position deletes of other engines by the data file they may name."""
    entries = live_deletes(table, snapshot)
    if not entries:
        return {}
    index = DeleteFileIndex()
    for entry in entries:
        if entry.data_file.equality_ids:
            message = (
                f"table {name}: another engine wrote equality deletes into base "
                f"({entry.data_file.file_path}); Arctic cannot honour them. Rewrite the data files "
                "with that engine, then try again"
            )
            raise InvalidRequest(message)
        index.add_delete_file(entry, partition_key=entry.data_file.partition)
    found: dict[str, tuple[DataFile, ...]] = {}
    for entry in live_entries(table, snapshot):
        file = entry.data_file
        applying = index.for_data_file(
            entry.sequence_number or 0, file, partition_key=file.partition
        )
        if applying:
            found[file.file_path] = tuple(applying)
    return found
