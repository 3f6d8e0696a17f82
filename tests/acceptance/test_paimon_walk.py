"""The walk of seed 002 through a table by day: PAC-01 to PAC-09.

    create ─▶ insert one row ─▶ insert nine ─▶ delete eight ─▶ compact all

The seed looks into snapshots and manifests of another layout. Where ours differs, the tests assert
what a user sees and say why. One walk serves all tests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from arcticlake import Lake, Table
from arcticlake.compact.result import CompactionResult
from arcticlake.inspect.detail import Detail
from arcticlake.inspect.history import HistoryEntry


@dataclass(frozen=True)
class Moment:
    """What a user sees after one step."""

    rows: list[dict[str, object]]
    history: list[HistoryEntry]
    files: list[dict[str, object]]
    detail: Detail
    folders: frozenset[str]
    """Names of partition folders in the change table."""
    manifests: tuple[int, int]
    """Manifests of the newest base and change snapshot."""


@dataclass(frozen=True)
class Walk:
    """The table, and what was seen after each step."""

    table: Table
    created: Moment
    first: Moment
    second: Moment
    third: Moment
    compacted: Moment
    result: CompactionResult


def rows(*numbers: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "a": pa.array([10000 + n for n in numbers], pa.int32()),
            "b": [f"varchar{n:05}" for n in numbers],
            "dt": [f"202305{n:02}" for n in numbers],
        }
    )


def look(table: Table) -> Moment:
    pair = table._opened.pair()
    assert pair.change is not None
    snapshots = (pair.base.current_snapshot(), pair.change.current_snapshot())
    counts = [len(s.manifests(pair.base.io)) if s is not None else 0 for s in snapshots]
    place = Path(pair.change.location().removeprefix("file://"))
    return Moment(
        rows=table.to_arrow().sort_by("id").to_pylist(),
        history=table.history(),
        files=table.files(),
        detail=table.detail(),
        folders=frozenset(path.name for path in place.rglob("dt=*")),
        manifests=(counts[0], counts[1]),
    )


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    lake = Lake.open(str(tmp_path_factory.mktemp("paimon") / "warehouse"))
    table = lake.create_table(
        "seed.t",
        "id bigint, a int, b string, dt string",
        primary_key=["id", "dt"],
        partition_by="dt",
    )
    created = look(table)
    table.upsert(rows(1))
    first = look(table)
    table.upsert(rows(*range(2, 11)))
    second = look(table)
    table.delete("dt >= '20230503'")
    third = look(table)
    result = table.compact("full")
    yield Walk(table, created, first, second, third, look(table), result)
    assert isinstance(lake.catalog, SqlCatalog)
    lake.catalog.close()


def test_a_new_table_has_a_schema_and_no_version(walk: Walk) -> None:
    """PAC-01."""
    created = walk.created

    assert (created.history, created.rows, created.files) == ([], [], [])
    assert [column.name for column in created.detail.schema] == ["id", "a", "b", "dt"]
    assert (created.detail.primary_key, created.detail.partition_by) == (("id", "dt"), ("dt",))
    assert created.detail.version == 0


def test_the_first_row_is_version_one_of_schema_zero(walk: Walk) -> None:
    """PAC-02. The seed's INSERT replaces by key, so ours is an upsert; Iceberg calls it append."""
    (entry,) = walk.first.history

    assert walk.first.rows == [{"id": 1, "a": 10001, "b": "varchar00001", "dt": "20230501"}]
    assert (entry.version, entry.kind, entry.rows) == (1, "upsert", 1)
    assert entry.summary["arctic.schema-id"] == "0"
    assert entry.summary["total-records"] == entry.summary["added-records"] == "1"
    change = walk.table._opened.pair().change
    assert change is not None
    snapshot = change.metadata.snapshots[0]
    assert snapshot.summary is not None
    assert snapshot.summary.operation.value == "append"


def test_the_first_commit_has_one_manifest(walk: Walk) -> None:
    """PAC-03. The seed's two lists, base and delta, are our two tables: base has nothing yet."""
    assert walk.first.manifests == (0, 1)
    assert len(walk.first.files) == 1


def test_nine_more_rows_are_version_two_in_ten_partitions(walk: Walk) -> None:
    """PAC-04."""
    second = walk.second

    assert (second.history[0].version, second.history[0].rows) == (2, 9)
    assert [row["id"] for row in second.rows] == list(range(1, 11))
    assert len({str(file["partition"]) for file in second.files}) == 10
    assert len(second.folders) == 10


def test_a_delete_writes_eight_files_and_removes_no_folder(walk: Walk) -> None:
    """PAC-05: version 3 holds a delete for each row, and two rows stay visible."""
    third = walk.third

    assert (third.history[0].version, third.history[0].kind) == (3, "delete")
    assert (third.history[0].files, third.history[0].rows) == (8, 8)
    assert third.folders == walk.second.folders
    assert len(third.files) == 18
    assert [row["id"] for row in third.rows] == [1, 2]
    deleted = walk.table.changes_to_arrow(2, 3)
    assert deleted["_change_type"].to_pylist() == ["delete"] * 8
    assert sorted(deleted["id"].to_pylist()) == list(range(3, 11))


def test_a_full_compaction_takes_eighteen_files_and_adds_two(walk: Walk) -> None:
    """PAC-06: the seed's 18 DELETE and 2 ADD.

    The seed's compaction is snapshot 4. Ours makes no version, since no row changes for a reader;
    it is in the history under its kind, at the version up to which it merged.
    """
    entry = walk.compacted.history[0]

    assert (walk.result.files_removed, walk.result.files_added) == (18, 2)
    assert (entry.kind, entry.version) == ("full", 3)
    assert walk.compacted.detail.version == 3
    assert walk.compacted.rows == walk.third.rows


def test_partitions_without_rows_have_no_files_and_two_have_one(walk: Walk) -> None:
    """PAC-07. The seed moves a file to another level by name. Ours writes it anew, into base,
    because base rows carry no hidden columns and change rows do.
    """
    found = Counter((file["role"], str(file["partition"])) for file in walk.compacted.files)

    assert {role for role, _ in found} == {"base"}
    assert sorted(found.values()) == [1, 1]
    assert {day for _, day in found} == {str({"dt": f"202305{n:02}"}) for n in (1, 2)}


def test_live_rows_are_counted_as_live_rows(walk: Walk) -> None:
    """PAC-08: 38 there counts entries of changes. Ours says which number counts what."""
    sizes = walk.compacted.detail.sizes

    assert (sizes.live_rows, sizes.base_rows, sizes.change_rows) == (2, 2, 0)
    assert walk.third.detail.sizes.change_rows == 18
    assert walk.third.detail.sizes.live_rows is None  # only a read can tell what changes hide


def test_kinds_of_rows_are_told_by_their_action(walk: Walk) -> None:
    """PAC-09: a delete is -D. A blind upsert cannot know whether the key was there, so its rows
    are after images, +U; +I is what a batch insert brings, in a pull as `insert`.
    """
    pulled = walk.table.changes_to_arrow()["_change_type"].to_pylist()

    assert Counter(pulled) == {"update_postimage": 10, "delete": 8}
    assert pulled[:10] == ["update_postimage"] * 10


def test_a_batch_insert_is_an_insert_in_a_pull(tmp_path: Path) -> None:
    """PAC-09, in a table of its own: the walk must stay what it is."""
    lake = Lake.open(str(tmp_path / "warehouse"))
    table = lake.create_table("seed.t", "id bigint, a int, b string, dt string", primary_key="id")
    table.insert(rows(1))
    table.delete("id = 1")

    assert table.changes_to_arrow()["_change_type"].to_pylist() == ["insert", "delete"]
    assert set(table.to_arrow(mode="unmerged")["_action"].to_pylist()) == {None, "-D"}
    assert isinstance(lake.catalog, SqlCatalog)
    lake.catalog.close()
