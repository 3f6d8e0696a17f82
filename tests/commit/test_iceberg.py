from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.manifest import DataFileContent, ManifestContent
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import NestedField, StringType

from arcticlake.commit.iceberg import (
    Operation,
    SnapshotChange,
    commit_snapshot,
    ensure_spec,
    find_commit,
    live_deletes,
)
from arcticlake.errors import Conflict, InvalidRequest, NotFound
from tests.commit.lab import (
    SCHEMA,
    Term,
    append,
    bucket,
    commit_id,
    files_under,
    head,
    live,
    paths,
    put,
    real_files,
    stand_in,
    summary,
    swap,
)


def test_files_of_several_specs_in_one_commit_are_read_by_pyiceberg_and_polars(
    table: Table,
) -> None:
    ids = list(range(200))
    table, deep = ensure_spec(table, bucket(8))
    shallow, deeper = (
        real_files(table, ids[:120], spec_id=0),
        real_files(table, ids[120:], spec_id=deep),
    )

    table = put(table, append(*shallow, *deeper))

    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == ids
    assert pl.scan_iceberg(table).select(pl.len()).collect().item() == 200
    assert {m.partition_spec_id for m in head(table).manifests(table.io)} == {0, deep}
    planned = list(table.scan(row_filter="id = 150").plan_files())
    assert len(planned) < 4, "a key must still prune to the nodes that can hold it"
    assert table.scan(row_filter="id = 150").to_arrow()["name"].to_pylist() == ["n150"]


def test_split_moves_files_from_one_spec_to_another_in_one_snapshot(table: Table) -> None:
    ids = list(range(100))
    table = put(table, append(*real_files(table, ids, spec_id=0)))
    old = paths(table)
    table, deep = ensure_spec(table, bucket(8))

    table = put(table, swap(sorted(old), *real_files(table, ids, spec_id=deep)))

    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == ids
    assert {entry.data_file.spec_id for entry in live(table)} == {deep}
    assert summary(table)["deleted-data-files"] == str(len(old))
    assert summary(table)["total-records"] == "100"


def test_counters_follow_every_operation(table: Table) -> None:
    table, deep = ensure_spec(table, bucket(8))
    first, second = stand_in(table, 1, rows=10, size=100), stand_in(table, 2, rows=20, size=200)
    third = stand_in(table, 7, spec_id=deep, rows=25, size=150)

    table = put(table, append(first, second))
    before = summary(table)
    replace = SnapshotChange(
        Operation.REPLACE, added=(third,), removed=frozenset({first.file_path})
    )
    table = put(table, replace)
    after = summary(table)
    told = head(table).summary

    assert told is not None
    assert told.operation.value == "replace"
    assert (before["added-data-files"], before["added-records"]) == ("2", "30")
    assert (before["added-files-size"], before["changed-partition-count"]) == ("300", "2")
    assert (after["added-data-files"], after["deleted-data-files"]) == ("1", "1")
    assert (after["added-records"], after["deleted-records"]) == ("25", "10")
    assert (after["added-files-size"], after["removed-files-size"]) == ("150", "100")
    assert (after["total-data-files"], after["total-records"]) == ("2", "45")
    assert (after["total-files-size"], after["total-delete-files"]) == ("350", "0")


def test_snapshot_carries_commit_id_schema_sequence_and_summary(table: Table) -> None:
    identity = commit_id()
    change = append(stand_in(table), **{"arctic.kind": "upsert"})

    table = commit_snapshot(table, change, identity)
    snapshot = head(table)

    assert find_commit(table, identity) == snapshot
    assert find_commit(table, commit_id()) is None
    assert snapshot.sequence_number == 1
    assert snapshot.schema_id == table.schema().schema_id
    assert summary(table)["arctic.kind"] == "upsert"
    assert snapshot.parent_snapshot_id is None


def test_marker_without_files_is_a_snapshot_on_an_empty_and_on_a_full_table(
    table: Table, catalog: SqlCatalog
) -> None:
    marker = SnapshotChange(Operation.APPEND, summary={"arctic.base-snapshot": "42"})

    table = put(table, marker)
    assert live(table) == []
    assert table.scan().to_arrow().num_rows == 0
    table = put(table, append(*real_files(table, [1, 2, 3], spec_id=0)))
    before = paths(table)
    table = put(catalog.load_table("db.t"), marker)

    assert paths(table) == before
    assert head(table).sequence_number == 3
    assert summary(table)["arctic.base-snapshot"] == "42"
    assert summary(table)["total-records"] == "3"
    assert table.scan().to_arrow().num_rows == 3
    assert pl.scan_iceberg(table).collect().height == 3


def test_properties_are_set_in_the_same_commit(table: Table, catalog: SqlCatalog) -> None:
    change = SnapshotChange(Operation.APPEND, (stand_in(table),), properties={"arctic.batch": "7"})

    version = Path(table.metadata_location).name[:5]
    put(table, change)
    loaded = catalog.load_table("db.t")

    assert loaded.properties["arctic.batch"] == "7"
    assert int(Path(loaded.metadata_location).name[:5]) == int(version) + 1


def test_schema_is_changed_in_the_same_commit_and_named_by_its_snapshot(
    table: Table, catalog: SqlCatalog
) -> None:
    wider = Schema(*SCHEMA.fields, NestedField(3, "note", StringType()))

    put(table, SnapshotChange(Operation.APPEND, schema=wider))
    table = catalog.load_table("db.t")
    assert [column.name for column in table.schema().fields] == ["id", "name", "note"]
    assert head(table).schema_id == table.schema().schema_id == 1
    assert table.metadata.last_column_id == 3

    table = put(table, SnapshotChange(Operation.APPEND, schema=SCHEMA))
    assert head(table).schema_id == table.schema().schema_id == 0
    assert len(table.metadata.schemas) == 2


def test_retention_settings_of_main_survive_a_commit(table: Table) -> None:
    table = put(table, append(stand_in(table)))
    table.manage_snapshots().create_branch(
        head(table).snapshot_id, "main", min_snapshots_to_keep=5
    ).commit()

    table = put(table, append(stand_in(table)))

    assert table.metadata.refs["main"].min_snapshots_to_keep == 5


def test_removed_files_are_recorded_as_deleted_by_the_snapshot_that_removed_them(
    table: Table,
) -> None:
    gone, stays = stand_in(table, 0), stand_in(table, 1)
    table = put(table, append(gone, stays))

    table = put(table, SnapshotChange(Operation.DELETE, removed=frozenset({gone.file_path})))
    entries = [
        entry
        for manifest in head(table).manifests(table.io)
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False)
    ]

    status = {entry.data_file.file_path: entry for entry in entries}
    assert status[gone.file_path].status.name == "DELETED"
    assert status[gone.file_path].snapshot_id == head(table).snapshot_id
    assert status[stays.file_path].status.name == "EXISTING"
    assert (status[stays.file_path].sequence_number, status[gone.file_path].sequence_number) == (
        1,
        1,
    )


def test_a_removed_path_that_is_not_live_is_a_conflict_and_changes_nothing(
    table: Table, catalog: SqlCatalog, tmp_path: Path
) -> None:
    file = stand_in(table)
    table = put(table, append(file))
    before = files_under(tmp_path)

    with pytest.raises(Conflict, match=r"1 of 2 files to remove are gone"):
        put(table, swap([file.file_path, "never/there.parquet"], stand_in(table)))

    assert catalog.load_table("db.t").metadata == table.metadata
    assert files_under(tmp_path) == before


def test_a_stale_head_is_refused_by_the_catalog(table: Table, catalog: SqlCatalog) -> None:
    stale = catalog.load_table("db.t")
    put(table, append(stand_in(table)))

    with pytest.raises(CommitFailedException):
        put(stale, append(stand_in(stale)))


def test_a_spec_that_another_engine_removed_is_a_conflict(
    table: Table, catalog: SqlCatalog
) -> None:
    """Finding: Spark's expire_snapshots(clean_expired_metadata) drops specs without files."""
    table, deep = ensure_spec(table, bucket(8))
    file = stand_in(table, 5, spec_id=deep)
    stale = catalog.load_table("db.t")
    table.metadata.partition_specs.pop()

    with pytest.raises(Conflict, match=r"partition spec 1 .* is gone"):
        put(table, append(file))
    assert catalog.load_table("db.t").specs().keys() == stale.specs().keys()


def test_rollback_takes_the_files_of_an_older_snapshot_and_goes_on_from_there(
    table: Table,
) -> None:
    first = stand_in(table, 1, rows=10)
    table = put(table, append(first))
    target = head(table).snapshot_id
    second = stand_in(table, 2, rows=5)
    table = put(table, swap([first.file_path], second))

    table = put(table, SnapshotChange(Operation.OVERWRITE, manifests_of=target))

    assert paths(table) == {first.file_path}
    assert head(table).sequence_number == 3
    assert live(table)[0].sequence_number == 1
    told = summary(table)
    assert (told["added-records"], told["deleted-records"], told["total-records"]) == (
        "10",
        "5",
        "10",
    )
    table = put(table, append(second))
    assert paths(table) == {first.file_path, second.file_path}
    with pytest.raises(NotFound, match="no snapshot 12345"):
        put(table, SnapshotChange(Operation.OVERWRITE, manifests_of=12345))


def test_a_format_version_3_table_is_refused(table: Table) -> None:
    table.metadata = table.metadata.model_copy(update={"format_version": 3})

    with pytest.raises(InvalidRequest, match="format version 3"):
        put(table, append(stand_in(table)))


def test_row_deletes_are_carried_over_until_they_can_name_no_live_file(table: Table) -> None:
    data = [stand_in(table, 0), stand_in(table, 1)]
    table = put(table, append(*data))
    delete = stand_in(table, 0, rows=3)
    delete[0] = DataFileContent.POSITION_DELETES
    table = put(table, append(delete))
    assert summary(table)["added-position-deletes"] == "3"
    assert summary(table)["total-delete-files"] == "1"
    assert [entry.sequence_number for entry in live_deletes(table, head(table))] == [2]

    table = put(table, swap([data[0].file_path], stand_in(table, 0)))
    assert len(live_deletes(table, head(table))) == 1, "data[1] is older than the row delete"
    assert len(live(table)) == 2

    table = put(table, swap([data[1].file_path], stand_in(table, 1)))
    assert live_deletes(table, head(table)) == []
    assert summary(table)["removed-position-deletes"] == "3"
    assert summary(table)["total-delete-files"] == "0"
    kinds = [manifest.content for manifest in head(table).manifests(table.io)]
    assert kinds.count(ManifestContent.DELETES) == 1, "the removal itself is on record"


def test_snapshots_are_strictly_later_than_their_parent(table: Table) -> None:
    ahead = table.metadata.last_updated_ms + 60_000
    table = put(table, append(stand_in(table)))
    snapshot = head(table)
    table.metadata = table.metadata.model_copy(
        update={"snapshots": [snapshot.model_copy(update={"timestamp_ms": ahead})]}
    )

    table = put(table, append(stand_in(table)))

    assert head(table).timestamp_ms == ahead + 1


def test_a_column_that_a_spec_stands_on_may_be_dropped_and_its_manifests_still_be_rewritten(
    table: Table,
) -> None:
    table, by_name = ensure_spec(table, (Term(2, IdentityTransform(), "name"),))
    files = [stand_in(table, "a", spec_id=by_name), stand_in(table, "b", spec_id=by_name)]
    table = put(table, append(*files))
    table = put(table, SnapshotChange(Operation.APPEND, schema=Schema(SCHEMA.fields[0])))

    table = put(table, swap([files[0].file_path]))

    assert [entry.data_file.partition[0] for entry in live(table)] == ["b"]
