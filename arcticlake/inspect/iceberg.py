"""What inspection asks of Iceberg itself: tags, and whether metadata files are whole.

A tag lies on two tables. Base is tagged first, the change table second: the change table's tag is
the truth, so a tag that died half way does not exist, and making it again completes it. Dropping
goes the other way round.

Touches the catalog and metadata files.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pyiceberg.manifest import ManifestFile, read_manifest_list
from pyiceberg.table import Table
from pyiceberg.table.refs import SnapshotRef, SnapshotRefType

from arcticlake.commit.history import View
from arcticlake.commit.iceberg import WALL_CLOCK, Clock
from arcticlake.commit.iceberg_repeat import repeat_until
from arcticlake.errors import Conflict, InvalidRequest, NotFound
from arcticlake.inspect.tags import TagPlan
from arcticlake.inspect.verdict import Findings, Rule
from arcticlake.table.iceberg import TablePair


def load_tags(pair: TablePair) -> dict[str, int]:
    """Return the version of every tag, by name."""
    holder = _holder(pair)
    found = {}
    for name, ref in sorted(holder.refs().items()):
        snapshot = holder.snapshot_by_id(ref.snapshot_id)
        if ref.snapshot_ref_type == SnapshotRefType.TAG and snapshot is not None:
            found[name] = snapshot.sequence_number or 0
    return found


def commit_tag(pair: TablePair, plan: TagPlan, clock: Clock = WALL_CLOCK) -> None:
    """Tag the planned snapshots, base first; a name that is in use is refused."""
    name = plan.tag.name
    _refuse_known(pair, plan)
    _refuse_foreign(pair, plan)
    if plan.base_snapshot_id is not None:
        _set_tag(pair.base, name, plan.base_snapshot_id, clock)
    if pair.change is not None and plan.change_snapshot_id is not None:
        _set_tag(pair.change, name, plan.change_snapshot_id, clock)


def drop_tag(pair: TablePair, name: str, clock: Clock = WALL_CLOCK) -> None:
    """Remove a tag from both tables; the snapshots it kept may expire from then on."""
    tables = [pair.base] if pair.change is None else [pair.change, pair.base]
    held = [table for table in tables if _tag(table, name) is not None]
    if not held:
        known = ", ".join(load_tags(pair)) or "none"
        message = f"table {pair.spec.name} has no tag {name!r}; tags: {known}"
        raise NotFound(message)
    for table in held:
        repeat_until(
            table,
            f"table {pair.spec.name}: dropping tag {name}",
            done=lambda newest: _tag(newest, name) is None,
            act=lambda newest: newest.manage_snapshots().remove_tag(name).commit(),
            clock=clock,
        )


def _holder(pair: TablePair) -> Table:
    return pair.base if pair.change is None else pair.change


def _tag(table: Table, name: str) -> SnapshotRef | None:
    ref = table.refs().get(name)
    return ref if ref is not None and ref.snapshot_ref_type == SnapshotRefType.TAG else None


def _refuse_known(pair: TablePair, plan: TagPlan) -> None:
    name, table = plan.tag.name, pair.spec.name
    if name in _holder(pair).refs():
        version = load_tags(pair).get(name)
        what = "is a branch" if version is None else f"exists already, on version {version}"
        advice = "choose another name" if version is None else "use drop_tag() first"
        message = f"table {table}: {name!r} {what}; {advice}"
        raise InvalidRequest(message)


def _refuse_foreign(pair: TablePair, plan: TagPlan) -> None:
    """Refuse to move a tag or branch of base that somebody else may have made."""
    ref = pair.base.refs().get(plan.tag.name)
    ours = _tag(pair.base, plan.tag.name)  # of a tag that died half way
    if ref is None or (ours is not None and ours.snapshot_id == plan.base_snapshot_id):
        return
    message = (
        f"table {pair.spec.name}: its base table alone has {plan.tag.name!r} on snapshot "
        f"{ref.snapshot_id}; choose another name, or drop_tag() it if it is not in use"
    )
    raise InvalidRequest(message)


def _set_tag(table: Table, name: str, snapshot_id: int, clock: Clock) -> None:
    def done(newest: Table) -> bool:
        ref = _tag(newest, name)
        if ref is not None and ref.snapshot_id != snapshot_id:
            message = f"table {'.'.join(newest.name())}: somebody else just made tag {name!r}"
            raise Conflict(message)
        return ref is not None

    repeat_until(
        table,
        f"table {'.'.join(table.name())}: tagging",
        done=done,
        act=lambda newest: newest.manage_snapshots().create_tag(snapshot_id, name).commit(),
        clock=clock,
    )


def check_metadata(pair: TablePair, view: View) -> Findings:
    """Read the manifests of both snapshots of a view from the store, past every cache."""
    found = Findings()
    for table, snapshot_id in (
        (pair.base, view.base_snapshot_id),
        (pair.change, view.change_snapshot_id),
    ):
        if table is None or snapshot_id is None:
            continue
        snapshot = table.snapshot_by_id(snapshot_id)
        assert snapshot is not None, f"snapshot {snapshot_id} is in the log but not in the table"
        path = snapshot.manifest_list
        for manifest in _attempt(found, path, partial(_read_list, table, path)):
            path = manifest.manifest_path
            _attempt(found, path, partial(_read_manifest, table, manifest))
    return found


def _attempt(
    found: Findings, path: str, read: Callable[[], list[ManifestFile]]
) -> list[ManifestFile]:
    found.count(Rule.METADATA, 1, "files")
    try:
        return read()
    except Exception as error:  # noqa: BLE001 - broken Avro fails in more ways than can be named
        found.add(Rule.METADATA, f"the metadata file cannot be read: {error!r}", path)
        return []


def _read_list(table: Table, path: str) -> list[ManifestFile]:
    return list(read_manifest_list(table.io.new_input(path)))


def _read_manifest(table: Table, manifest: ManifestFile) -> list[ManifestFile]:
    size = len(table.io.new_input(manifest.manifest_path))
    if size != manifest.manifest_length:
        message = f"{size} bytes, the manifest list says {manifest.manifest_length}"
        raise ValueError(message)
    manifest.fetch_manifest_entry(table.io)
    return []
