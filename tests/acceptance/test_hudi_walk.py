"""The walk of seed 000 through a table that is updated, pulled and compacted: TST-01 to TST-27.

Six writes, and after each the questions that the seed asks. In our words:

    snapshot            read, merged
    read-optimized      read, mode base
    skip-merge          read, mode unmerged
    incremental         changes, mode net; raw and base where the test says so
    commit time         _version in reads, _commit_version in changes

One walk serves all tests; what a later write would hide is kept as it was then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import polars as pl
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from arcticlake import Lake, Table

PARTS = ("2015/03/16", "2015/03/17", "2016/03/15")
NEW_PART = "2020/01/10"
KEY = "record_key"


@dataclass
class Walk:
    """The table, the version of each write, and reads that were done on the way."""

    table: Table
    commits: dict[int, int] = field(default_factory=dict)
    snapshots: dict[int, pl.DataFrame] = field(default_factory=dict)
    """By write: the merged read right after it, with `_version`."""
    seen: dict[str, pl.DataFrame] = field(default_factory=dict)

    def read(self, **request: object) -> pl.DataFrame:
        return frame(self.table.to_arrow(**request))  # type: ignore[arg-type]

    def pull(self, since: int, until: int | None = None, mode: str = "net") -> pl.DataFrame:
        return frame(self.table.changes_to_arrow(since, until, mode))

    def wrote(self, number: int, version: int) -> None:
        self.commits[number] = version
        self.snapshots[number] = self.read(metadata=True)


def frame(rows: pa.Table) -> pl.DataFrame:
    found = pl.from_arrow(rows)
    assert isinstance(found, pl.DataFrame)
    return found


def records(numbers: range, parts: tuple[str, ...], fare: int) -> pa.Table:
    return pa.table(
        {
            KEY: [f"key {number:03}" for number in numbers],
            "part": [parts[number % len(parts)] for number in numbers],
            "fare": pa.array([fare] * len(numbers), pa.int32()),
        }
    )


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    lake = Lake.open(str(tmp_path_factory.mktemp("hudi") / "warehouse"))
    table = lake.create_table(
        "seed.trips",
        f"{KEY} string, part string, fare int",
        primary_key=[KEY, "part"],
        partition_by="part",
    )
    walk = Walk(table)
    walk.wrote(1, table.insert(records(range(100), PARTS, 1)).version)
    walk.wrote(2, table.upsert(records(range(100), PARTS, 2)).version)
    walk.seen["unmerged 2"] = walk.read(mode="unmerged")
    walk.seen["base 2"] = walk.read(mode="base")
    walk.wrote(3, table.upsert(records(range(50), PARTS, 3)).version)
    walk.seen["unmerged 3"] = walk.read(mode="unmerged")
    walk.seen["pull 3"] = walk.pull(walk.commits[2])
    walk.seen["net 3"] = walk.pull(walk.commits[1])
    walk.seen["raw 3"] = walk.pull(0, mode="raw")
    walk.seen["base pull 3"] = walk.pull(0, mode="base")
    walk.wrote(4, table.insert(records(range(100, 200), (NEW_PART,), 4)).version)
    walk.seen["pull 4"] = walk.pull(walk.commits[2])
    walk.wrote(5, table.upsert(records(range(100, 150), (NEW_PART,), 5)).version)
    version = table.insert(records(range(200, 202), (NEW_PART,), 6)).version
    table.compact("major")
    walk.wrote(6, version)
    yield walk
    assert isinstance(lake.catalog, SqlCatalog)
    lake.catalog.close()


def test_the_first_write_is_a_new_commit_with_all_rows(walk: Walk) -> None:
    """TST-01, TST-02. The seed's mode overwrite makes the table anew: create_table did."""
    first = walk.commits[1]

    assert any(entry.version > 0 for entry in walk.table.history())  # TST-01: commits since 000
    assert first > 0
    assert walk.snapshots[1].height == 100  # TST-02
    assert walk.snapshots[1]["part"].n_unique() == 3


def test_an_update_of_all_keys_shows_one_commit(walk: Walk) -> None:
    """TST-03, TST-04, TST-05."""
    second = walk.snapshots[2]

    assert second.height == 100  # TST-03
    assert second["_version"].unique().to_list() == [walk.commits[2]]  # TST-04
    assert walk.commits[2] > walk.commits[1]
    assert second.join(walk.snapshots[1], on=KEY, how="left").height == 100  # TST-05


def test_pulls_of_single_commits_show_them_and_a_longer_one_the_newest(walk: Walk) -> None:
    """TST-06 to TST-09, INC-32. Asked at the end: the compaction has hidden nothing."""
    c1, c2 = walk.commits[1], walk.commits[2]
    base, log, both = walk.pull(0, c1), walk.pull(c1, c2), walk.pull(0, c2)

    assert base.height == 100  # TST-06
    assert base["_commit_version"].unique().to_list() == [c1]
    assert log.height == 100  # TST-07
    assert log["_commit_version"].unique().to_list() == [c2]  # TST-08
    assert both.height == 100  # TST-09
    assert both["_commit_version"].unique().to_list() == [c2]
    assert both["fare"].unique().to_list() == [2]


def test_an_unmerged_read_shows_base_and_changes_side_by_side(walk: Walk) -> None:
    """TST-10, TST-11."""
    unmerged = walk.seen["unmerged 2"]

    assert (unmerged.height, unmerged[KEY].n_unique()) == (200, 100)  # TST-10
    assert unmerged.join(walk.snapshots[2], on=KEY, how="left").height == 200  # TST-11


def test_a_read_of_base_shows_the_old_values(walk: Walk) -> None:
    """TST-12."""
    assert walk.seen["base 2"].height == 100
    assert walk.seen["base 2"]["fare"].unique().to_list() == [1]


def test_an_update_of_half_the_keys_shows_two_commits(walk: Walk) -> None:
    """TST-13 to TST-16."""
    third = walk.snapshots[3]

    assert third.height == 100  # TST-13
    assert third["_version"].n_unique() == 2  # TST-14
    assert third.filter(pl.col("_version") > walk.commits[2]).height == 50  # TST-15
    same = third.join(walk.snapshots[2], on=[KEY, "_version"], how="inner")
    assert same.height == 50  # TST-16


def test_a_pull_without_an_end_goes_to_now(walk: Walk) -> None:
    """TST-17."""
    assert walk.seen["pull 3"].height == 50


def test_base_and_the_newest_change_of_each_key_are_two_hundred(walk: Walk) -> None:
    """TST-18: the seed's 200 are 100 rows of base and 100 of a log that shows a key once.

    Our unmerged answers hide nothing: both the read and the raw pull show all 250 versions. The 200
    are two pulls that say what they are: what changed in base, and the newest change on top of it.
    """
    in_base, on_top = walk.seen["base pull 3"], walk.seen["net 3"]

    assert (in_base.height, on_top.height) == (100, 100)
    assert in_base.height + on_top.height == 200
    assert set(on_top["_commit_version"]) == {walk.commits[2], walk.commits[3]}
    assert walk.seen["unmerged 3"].height == 250
    assert walk.seen["raw 3"].height == 250


def test_a_batch_into_base_is_seen_by_reads_and_pulls(walk: Walk) -> None:
    """TST-19 to TST-21."""
    assert walk.snapshots[4].height == 200  # TST-19
    met = walk.snapshots[1].join(walk.snapshots[4], on=KEY, how="inner")
    assert met.height == 100  # TST-20
    pulled = walk.seen["pull 4"]
    assert pulled.height == 150  # TST-21
    by_type = dict(pulled["_change_type"].value_counts().iter_rows())
    assert by_type == {"update_postimage": 50, "insert": 100}


def test_an_update_of_the_new_partition_changes_no_count(walk: Walk) -> None:
    """TST-22."""
    assert walk.snapshots[5].height == 200
    assert walk.commits[5] == walk.snapshots[5]["_version"].max()


def test_a_read_of_one_partition_after_the_compaction(walk: Walk) -> None:
    """TST-23."""
    assert walk.read(where=f"part = '{NEW_PART}'").height == 102


def test_a_compaction_shows_in_base_alone(walk: Walk) -> None:
    """TST-24: the seed's 152 are 150 rows that the compaction changed in base, and two inserts."""
    c5, c6 = walk.commits[5], walk.commits[6]
    in_base = walk.pull(c5, c6, "base")

    assert walk.pull(c5, c6, "raw").height == 2
    assert walk.pull(c5, c6, "net").height == 2
    assert in_base.height == 152
    by_part = dict(in_base.group_by(pl.col("part") == NEW_PART).len().iter_rows())
    assert by_part == {False: 100, True: 52}


def test_no_two_commits_share_a_version(walk: Walk) -> None:
    """TST-25: a compaction has none, and versions only grow."""
    versions = [walk.commits[number] for number in sorted(walk.commits)]

    assert versions == sorted(set(versions))
    assert walk.table.history()[0].kind == "major"


def test_commit_and_key_can_be_chosen_filtered_and_joined(walk: Walk) -> None:
    """TST-26: in every kind of read and pull."""
    c5 = walk.commits[5]
    for mode in ("merged", "base"):
        found = walk.read(mode=mode, columns=[KEY], where=f"{KEY} = 'key 150'", metadata=True)
        assert found.columns == [KEY, "_version"]
        assert found.height == 1
    unmerged = walk.read(mode="unmerged", columns=[KEY])
    assert {KEY, "_version", "_action"} <= set(unmerged.columns)
    for mode in ("raw", "net", "base"):
        where = f"_commit_version = {c5} and {KEY} < 'key 110'"
        found = frame(walk.table.changes_to_arrow(mode=mode, columns=[KEY], where=where))
        assert found.height == 10
        assert found.join(walk.snapshots[6], on=KEY, how="inner").height == 10


def test_each_step_is_one_write_and_one_read(walk: Walk) -> None:
    """TST-27: the walk itself is the proof; and the table keeps every rule afterwards."""
    assert len(walk.commits) == 6
    assert walk.snapshots[6].height == 202
    assert walk.table.verify().ok
