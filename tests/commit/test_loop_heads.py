"""Decisions that were made on another head than the one that was loaded."""

from __future__ import annotations

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from arcticlake.commit.change import SnapshotChange
from arcticlake.commit.iceberg import find_commit
from arcticlake.commit.loop import Decide, commit
from arcticlake.errors import Conflict
from tests.commit.lab import FakeClock, append, commit_id, put, stand_in, swap


def run(catalog: SqlCatalog, decide: Decide, identity: str) -> Table:
    return commit(lambda: catalog.load_table("db.t"), decide, identity, clock=FakeClock().clock)


@pytest.mark.usefixtures("table")
def test_a_decision_on_a_newer_head_than_the_loaded_one_is_made_again(catalog: SqlCatalog) -> None:
    """Found by three overwrites at once: the files to remove came with a commit in between."""
    file = stand_in(catalog.load_table("db.t"))
    asked: list[Table] = []

    def decide(table: Table) -> SnapshotChange:
        if not asked:
            put(catalog.load_table("db.t"), append(file))
        asked.append(table)
        return swap([file.file_path], stand_in(table))

    identity = commit_id()
    table = run(catalog, decide, identity)

    assert len(asked) == 2
    assert find_commit(table, identity) is not None


@pytest.mark.usefixtures("table")
def test_files_that_are_gone_from_the_newest_head_are_a_conflict(catalog: SqlCatalog) -> None:
    def decide(table: Table) -> SnapshotChange:
        return swap(["nowhere.parquet"], stand_in(table))

    with pytest.raises(Conflict, match="files to remove are gone"):
        run(catalog, decide, commit_id())
