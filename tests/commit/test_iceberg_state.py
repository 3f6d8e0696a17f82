from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table as IcebergTable
from pyiceberg.typedef import Identifier

from arcticlake import Lake
from arcticlake.commit.iceberg_state import load_settled, load_state
from arcticlake.lake import Table
from tests.verbs.shop import NAME, keys, orders, rows, statuses


class PausingCatalog(SqlCatalog):
    """A catalog where something happens between the loads of base and change table."""

    after_base: Callable[[], None] | None = None

    def load_table(self, identifier: str | Identifier) -> IcebergTable:
        table = super().load_table(identifier)
        if identifier == NAME and self.after_base is not None:
            happening, self.after_base = self.after_base, None
            happening()
        return table


@pytest.fixture
def writer(warehouse: Path) -> Iterator[Table]:
    lake = Lake.open(str(warehouse))
    yield orders(lake)
    assert isinstance(lake.catalog, SqlCatalog)
    lake.catalog.close()


@pytest.fixture
def pausing(writer: Table) -> Iterator[PausingCatalog]:
    catalog = PausingCatalog("arctic", **writer._opened.catalog.properties)
    yield catalog
    catalog.close()


def test_a_batch_that_lands_between_the_two_loads_is_seen_with_what_follows_it(
    writer: Table, pausing: PausingCatalog
) -> None:
    """A reader never sees a half: here the upsert after a batch without the batch."""
    writer.insert(rows([1], "old"))
    reader = Lake(pausing).table(NAME)

    def two_commits() -> None:
        writer.insert(rows([2, 3], "batch"))
        writer.upsert(rows([3, 4], "upsert"))

    pausing.after_base = two_commits

    assert statuses(reader) == {1: "old", 2: "batch", 3: "upsert", 4: "upsert"}


def test_a_change_that_lands_between_the_two_loads_is_seen_whole(
    writer: Table, pausing: PausingCatalog
) -> None:
    writer.insert(rows([1, 2], "old"))
    reader = Lake(pausing).table(NAME)
    pausing.after_base = lambda: (writer.upsert(rows([1])), writer.delete(keys(2)), None)[2]

    assert statuses(reader) == {1: "new"}


def test_a_marker_of_an_expired_base_snapshot_does_not_load_for_ever(
    writer: Table, pausing: PausingCatalog
) -> None:
    first = writer.insert(rows([1]))
    pair = load_settled(pausing, NAME)
    old = pair.base.metadata.current_snapshot_id
    assert old is not None
    pair.base.append(rows([5]).cast(pair.base.schema().as_arrow()))
    pausing.load_table(NAME).maintenance.expire_snapshots().by_id(old).commit()

    settled = load_settled(pausing, NAME)

    assert settled.base.snapshot_by_id(old) is None
    assert load_state(settled).view.version == first.version


def test_the_state_of_a_version_holds_the_files_of_that_version(writer: Table) -> None:
    first = writer.insert(rows(range(8)))
    second = writer.upsert(rows([1]))
    pair = writer._opened.pair()

    then, now = load_state(pair, first.version), load_state(pair)

    assert (len(then.files.bases), len(then.files.changes)) == (first.files, 0)
    assert (len(now.files.bases), len(now.files.changes)) == (first.files, second.files)
    assert load_state(pair, 0).files.all == ()
    assert now.forest.tree(()).leaves == then.forest.tree(()).leaves
