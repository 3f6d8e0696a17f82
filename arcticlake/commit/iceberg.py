"""The snapshot producer: one attempt to put a set of files into an Iceberg table.

    stage_snapshot   writes manifests and a manifest list; nobody can see them yet
    send_snapshot    asks the catalog to make them the table, if its head is still the one seen
    commit_snapshot  both

The catalog swaps one pointer, so a commit is visible whole or not at all. Nothing here retries a
snapshot, and nothing here ever deletes a file: an attempt that lost leaves manifests behind that
orphan removal finds later, because at the moment of an error nobody knows who still needs them.
`loop` decides what an error means.

Manifests never change, so their decoded entries are kept for the whole process (`live_entries`).

Touches the catalog, metadata files, the clock and random numbers.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from typing import Literal, cast

from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.manifest import (
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    read_manifest_list,
    write_manifest_list,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table, update
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Snapshot

from arcticlake.commit.answer import as_arctic, worth_repeating
from arcticlake.commit.change import Operation, SnapshotChange, check_change
from arcticlake.commit.history import COMMIT_ID
from arcticlake.commit.manifests import (
    DeleteManifestWriter,
    Key,
    ManifestPlan,
    WeightedCache,
    WideManifestWriter,
    in_parts,
    new_entries,
    plan_manifests,
)
from arcticlake.commit.specs import SpecField, match_spec, plan_spec, schema_of
from arcticlake.commit.summary import count_files, count_switch, count_totals
from arcticlake.errors import Conflict, NotFound

__all__ = [
    "WALL_CLOCK",
    "Clock",
    "Operation",
    "Snapshot",
    "SnapshotChange",
    "StagedSnapshot",
    "Table",
    "commit_snapshot",
    "ensure_spec",
    "find_commit",
    "live_deletes",
    "live_entries",
    "reload",
    "send_snapshot",
    "stage_snapshot",
]

_SPEC_ATTEMPTS_MAX = 20
_CODEC = "write.avro.compression-codec"
_READERS = 8  # manifests fetched at once; helps object stores, costs nothing on a local disk
_ENTRIES = WeightedCache[ManifestEntry](200_000)  # 2 to 3 KB each: 0.6 GB at most
_LISTS = WeightedCache[ManifestFile](20_000)


@dataclass(frozen=True, slots=True)
class Clock:
    """Time and chance as values, so that the test of a retry need not wait."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    random: Callable[[], float] = random.random


WALL_CLOCK = Clock()


@dataclass(frozen=True, slots=True)
class StagedSnapshot:
    """A snapshot whose manifests are written and that the catalog does not know yet."""

    snapshot: Snapshot
    requirements: tuple[update.TableRequirement, ...]
    updates: tuple[update.TableUpdate, ...]


class _SpecsAsExpected(update.ValidatableTableRequirement):
    """The spec ids mean what they meant when the commit was planned; None: the id is free.

    Iceberg has no such requirement, and pyiceberg adds one spec twice if asked twice. A REST server
    has its own check and does not know this one: only catalogs that check in this process get it.
    """

    type: Literal["assert-specs"] = "assert-specs"
    specs: dict[int, PartitionSpec | None]

    def validate(self, base_metadata: TableMetadata | None) -> None:  # type: ignore[override]
        known = base_metadata.specs() if base_metadata is not None else {}
        for spec_id, spec in self.specs.items():
            if known.get(spec_id) != spec:
                raise CommitFailedException(f"partition spec {spec_id} changed since the plan")


def commit_snapshot(table: Table, change: SnapshotChange, commit_id: str) -> Table:
    """Commit once on the head that `table` shows; errors of the catalog pass through."""
    return send_snapshot(table, stage_snapshot(table, change, commit_id))


def send_snapshot(table: Table, staged: StagedSnapshot) -> Table:
    """Ask the catalog to make the staged snapshot the head; return the table as it then is."""
    return _send(table, staged.requirements, staged.updates)


def find_commit(table: Table, commit_id: str) -> Snapshot | None:
    """Return the snapshot that this commit made, on the main line or off it after a rollback."""
    snapshots = reversed(table.metadata.snapshots)
    return next((s for s in snapshots if s.summary and s.summary.get(COMMIT_ID) == commit_id), None)


def live_entries(table: Table, snapshot: Snapshot | None) -> list[ManifestEntry]:
    """Return the data files of a snapshot, sequence numbers filled in. Do not change them."""
    return _live(table, snapshot, ManifestContent.DATA)


def live_deletes(table: Table, snapshot: Snapshot | None) -> list[ManifestEntry]:
    """Return the row-delete files of a snapshot that other engines wrote. Do not change them."""
    return _live(table, snapshot, ManifestContent.DELETES)


def stage_snapshot(table: Table, change: SnapshotChange, commit_id: str) -> StagedSnapshot:
    """Write the manifests of a change on the head that `table` shows."""
    metadata = table.metadata
    specs = metadata.specs()
    check_change(change, specs, table=_name(table), format_version=metadata.format_version)
    head = metadata.snapshot_by_name(MAIN_BRANCH)
    source = _source(table, change, head)
    parents = _manifests(table, source)
    if change.removed:
        _read_all(table, parents)
    plan = plan_manifests(
        parents,
        change.removed,
        sequence=metadata.next_sequence_number(),
        read=lambda manifest: _read(table, manifest),
    )
    if plan.missing:
        raise Conflict(
            f"table {_name(table)}: {len(plan.missing)} of {len(change.removed)} files to remove "
            f"are gone, {min(plan.missing)} for one; plan again on the new state"
        )
    schema_id, schema_updates, schema_requirements = _plan_schema(metadata, change.schema)
    snapshot = Snapshot.model_validate(
        {
            "snapshot-id": (snapshot_id := metadata.new_snapshot_id()),
            "parent-snapshot-id": head.snapshot_id if head else None,
            "sequence-number": metadata.next_sequence_number(),
            # Strictly later than the head, so that a moment names one state even if clocks differ.
            "timestamp-ms": max(int(time.time() * 1000), head.timestamp_ms + 1 if head else 0),
            "manifest-list": _write(table, change, plan, snapshot_id, commit_id),
            "summary": {
                **_summarise(table, change, plan, source),
                COMMIT_ID: commit_id,
                "operation": change.operation.value,
            },
            "schema-id": schema_id,
        }
    )
    used: dict[int, PartitionSpec | None] = {f.spec_id: specs[f.spec_id] for f in change.added}
    on_head = {"ref": MAIN_BRANCH, "snapshot-id": snapshot.parent_snapshot_id}
    same_head = update.AssertRefSnapshotId.model_validate(on_head)
    properties = [update.SetPropertiesUpdate(updates=dict(p))] if (p := change.properties) else []
    added = update.AddSnapshotUpdate(snapshot=snapshot)
    return StagedSnapshot(
        snapshot,
        (same_head, *schema_requirements, *_specs_as(table, used)),
        (*schema_updates, *properties, added, _move_main(metadata, snapshot_id)),
    )


def _move_main(metadata: TableMetadata, snapshot_id: int) -> update.SetSnapshotRefUpdate:
    """Point main at the snapshot and leave its retention settings as they are."""
    main = metadata.refs.get(MAIN_BRANCH)
    settings = main.model_dump(by_alias=True) if main else {"type": "branch"}
    return update.SetSnapshotRefUpdate.model_validate(
        {**settings, "ref-name": MAIN_BRANCH, "snapshot-id": snapshot_id}
    )


def _source(table: Table, change: SnapshotChange, head: Snapshot | None) -> Snapshot | None:
    """Return the snapshot whose files the new one starts from."""
    if change.manifests_of is None:
        return head
    source = table.metadata.snapshot_by_id(change.manifests_of)
    if source is None:
        raise NotFound(
            f"table {_name(table)} has no snapshot {change.manifests_of} any more; name a newer one"
        )
    return source


def _write(
    table: Table, change: SnapshotChange, plan: ManifestPlan, snapshot_id: int, commit_id: str
) -> str:
    """Write new manifests and the manifest list; return the path of the list."""
    metadata = table.metadata
    specs, codec = metadata.specs(), metadata.properties.get(_CODEC, "gzip")
    numbers, place = count(), table.location_provider().new_metadata_location

    def write(key: Key, entries: Iterable[ManifestEntry]) -> ManifestFile:
        path = place(f"{commit_id}-{snapshot_id}-m{next(numbers)}.avro")
        kind = WideManifestWriter if key[1] == ManifestContent.DATA else DeleteManifestWriter
        spec, output = specs[key[0]], table.io.new_output(path)
        schema = schema_of(spec, (metadata.schema(), *reversed(metadata.schemas)))
        with kind(spec, schema, output, snapshot_id, codec) as writer:  # type: ignore[arg-type]
            for entry in entries:
                writer.add_entry(entry)
        return writer.to_manifest_file()

    manifests = [
        write(key, part)
        for (key, _), entries in new_entries(change, plan, snapshot_id).items()
        for part in in_parts(entries)
    ]
    path = place(f"snap-{snapshot_id}-0-{commit_id}.avro")
    with write_manifest_list(
        format_version=2,
        output_file=table.io.new_output(path),
        snapshot_id=snapshot_id,
        parent_snapshot_id=metadata.current_snapshot_id,
        sequence_number=metadata.next_sequence_number(),
        avro_compression=codec,  # type: ignore[arg-type]
    ) as writer:
        if everything := [*manifests, *plan.kept]:
            writer.add_manifests(everything)
    return path


def _summarise(
    table: Table, change: SnapshotChange, plan: ManifestPlan, source: Snapshot | None
) -> dict[str, str]:
    """Return the given keys, what comes and goes against the head, and the totals."""
    head = table.metadata.snapshot_by_name(MAIN_BRANCH)
    added, removed = list(change.added), plan.removed
    if source is not head:
        here, there = ([*live_entries(table, s), *live_deletes(table, s)] for s in (head, source))
        came, went = count_switch((e.data_file for e in here), (e.data_file for e in there))
        added, removed = added + came, removed + went
    counters = count_files(added, removed)
    before = head.summary.additional_properties if head and head.summary else None
    return {**change.summary, **counters, **count_totals(before, counters)}


def _plan_schema(
    metadata: TableMetadata, schema: Schema | None
) -> tuple[int, tuple[update.TableUpdate, ...], tuple[update.TableRequirement, ...]]:
    """Return the schema id of the snapshot, and what makes that schema the current one."""
    if schema is None or schema == metadata.schema():
        return metadata.current_schema_id, (), ()
    known = next((old for old in metadata.schemas if old == schema), None)
    fresh = max(old.schema_id for old in metadata.schemas) + 1
    schema_id = known.schema_id if known else fresh
    add = update.AddSchemaUpdate(schema=schema.model_copy(update={"schema_id": schema_id}))
    choose = update.SetCurrentSchemaUpdate.model_validate({"schema-id": schema_id})
    current = {"current-schema-id": metadata.current_schema_id}
    last = {"last-assigned-field-id": metadata.last_column_id}
    requirements = (
        update.AssertCurrentSchemaId.model_validate(current),
        update.AssertLastAssignedFieldId.model_validate(last),
    )
    return schema_id, (choose,) if known else (add, choose), requirements


def _live(table: Table, snapshot: Snapshot | None, content: ManifestContent) -> list[ManifestEntry]:
    manifests = [m for m in _manifests(table, snapshot) if m.content == content]
    _read_all(table, manifests)
    return [entry for manifest in manifests for entry in _read(table, manifest)]


def _manifests(table: Table, snapshot: Snapshot | None) -> Sequence[ManifestFile]:
    if snapshot is None:
        return ()
    path = snapshot.manifest_list
    known = _LISTS.find(path)
    return known or _LISTS.keep(path, tuple(read_manifest_list(table.io.new_input(path))))


def _read(table: Table, manifest: ManifestFile) -> Sequence[ManifestEntry]:
    path = manifest.manifest_path
    known = _ENTRIES.find(path)
    return known or _ENTRIES.keep(path, tuple(manifest.fetch_manifest_entry(table.io)))


def _read_all(table: Table, manifests: Sequence[ManifestFile]) -> None:
    """Fetch what is not decoded yet, several files at a time."""
    missing = [m for m in manifests if _ENTRIES.find(m.manifest_path) is None]
    if len(missing) > 1:
        with ThreadPoolExecutor(_READERS) as readers:
            list(readers.map(lambda manifest: _read(table, manifest), missing))


def ensure_spec(
    table: Table,
    fields: Sequence[SpecField],
    *,
    make_default: bool = False,
    clock: Clock = WALL_CLOCK,
) -> tuple[Table, int]:
    """Return the table and the id of its spec with these fields; add it, in its own commit, if new.

    The table that comes back may be newer than the one given: whoever else adds a spec at the same
    moment is waited for, and the same spec is never added twice.
    """
    doing = f"table {_name(table)}: adding a partition spec"
    for attempt in range(_SPEC_ATTEMPTS_MAX):
        spec = match_spec(table.metadata.partition_specs, fields)
        if spec and (not make_default or table.metadata.default_spec_id == spec.spec_id):
            return table, spec.spec_id
        try:
            table = _add_spec(table, spec, fields, make_default=make_default)
        except Exception as error:
            # Adding a spec again does no harm, so an unknown outcome is simply looked at.
            if not worth_repeating(error):
                raise (as_arctic(error, doing) or error) from error
            clock.sleep(clock.random() * 0.05 * 2 ** min(attempt, 5))
            table = reload(table)
    raise Conflict(f"{doing}: others keep changing its specs; try again")


def _add_spec(
    table: Table, known: PartitionSpec | None, fields: Sequence[SpecField], *, make_default: bool
) -> Table:
    metadata = table.metadata
    spec = known or plan_spec(
        metadata.partition_specs, fields, last_field_id=metadata.last_partition_id
    )
    add = () if known else (update.AddPartitionSpecUpdate(spec=spec),)
    # -1 is "the one just added": a REST server may have given it another id.
    choose = update.SetDefaultSpecUpdate.model_validate({"spec-id": known.spec_id if known else -1})
    last = {"last-assigned-partition-id": metadata.last_partition_id}
    default = {"default-spec-id": metadata.default_spec_id}
    requirements = (
        update.AssertLastAssignedPartitionId.model_validate(last),
        update.AssertDefaultSpecId.model_validate(default),
        *_specs_as(table, {spec.spec_id: known}),
    )
    return _send(table, requirements, (*add, choose) if make_default else add)


def _specs_as(
    table: Table, specs: Mapping[int, PartitionSpec | None]
) -> tuple[update.TableRequirement, ...]:
    if not isinstance(table.catalog, MetastoreCatalog):
        return ()
    return (cast("update.TableRequirement", _SpecsAsExpected(specs=dict(specs))),)


def _send(
    table: Table,
    requirements: tuple[update.TableRequirement, ...],
    updates: tuple[update.TableUpdate, ...],
) -> Table:
    same = update.AssertTableUUID(uuid=table.metadata.table_uuid)
    answer = table.catalog.commit_table(table, (same, *requirements), updates)
    place = answer.metadata_location
    return Table(table.name(), answer.metadata, place, table.io, table.catalog, table.config)


def reload(table: Table) -> Table:
    """Return the table as the catalog has it now; refuse another one that took its name."""
    doing = f"table {_name(table)}: loading it"
    try:
        newer = table.catalog.load_table(table.name())
    except Exception as error:
        raise (as_arctic(error, doing) or error) from error
    if newer.metadata.table_uuid != table.metadata.table_uuid:
        raise Conflict(f"table {_name(table)} was replaced by another one; open it again")
    return newer


def _name(table: Table) -> str:
    return ".".join(table.name())
