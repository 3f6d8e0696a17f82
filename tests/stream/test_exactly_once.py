"""One batch, one commit: replays, zombies, lost answers, expired snapshots. No Spark here."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitStateUnknownException
from pyiceberg.table import CommitTableResponse
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.update import TableRequirement, TableUpdate

from arcticlake import Lake
from arcticlake.ingest.iceberg import Committed
from arcticlake.ingest.once import STREAM, STREAM_BATCH, STREAM_QUERY, Once
from arcticlake.lake import Table
from arcticlake.verbs import write
from arcticlake.verbs.write import Batch, UpsertRequest
from tests.verbs.shop import NAME, base_of, change_of, data_files, orders, rows, statuses

QUERY = "q-1"


@pytest.fixture(params=["keyed", "keyless"])
def table(lake: Lake, request: pytest.FixtureRequest) -> Table:
    """Batches of a keyed table become changes, those of a table without a key go into base."""
    return orders(lake, primary_key="order_id" if request.param == "keyed" else ())


def send(
    table: Table, batch: int, ids: list[int], status: str = "new", query: str = QUERY
) -> Committed:
    """Commit rows as a micro-batch."""
    named = Batch(Once(query, batch))
    return write.upsert(table._opened, rows(ids, status), UpsertRequest(), named)


def streamed(table: Table) -> IcebergTable:
    """The Iceberg table that batches are committed to."""
    pair = table._opened.pair()
    return pair.change or pair.base


def test_a_batch_is_committed_with_its_name(table: Table) -> None:
    done = send(table, 0, [1, 2])

    assert (done.rows, table.history()[0].version) == (2, done.version)
    assert streamed(table).properties[STREAM + QUERY] == f"0 {done.version}"
    summary = table.history()[0].summary
    assert (summary[STREAM_QUERY], summary[STREAM_BATCH]) == (QUERY, "0")


def test_a_batch_that_comes_again_changes_nothing(table: Table, lake: Lake) -> None:
    first = send(table, 0, [1, 2])
    files = data_files(lake)

    again = send(table, 0, [1, 2], "again")

    assert again == Committed(first.version, 0, 0)
    assert statuses(table) == {1: "new", 2: "new"}
    assert len(table.history()) == 1
    assert data_files(lake) == files


def test_an_old_batch_after_a_later_one_changes_nothing(table: Table) -> None:
    send(table, 0, [1])
    later = send(table, 1, [2])

    assert send(table, 0, [1], "zombie") == Committed(later.version, 0, 0)
    assert statuses(table) == {1: "new", 2: "new"}


def test_two_queries_count_their_batches_apart(table: Table) -> None:
    send(table, 5, [1])
    send(table, 0, [2], query="q-2")
    send(table, 6, [3])

    assert send(table, 0, [2], "again", query="q-2").files == 0
    assert statuses(table).keys() == {1, 2, 3}


def test_drivers_that_send_one_batch_at_once_commit_it_once(
    table: Table, lake: Lake, warehouse: Path
) -> None:
    """A zombie driver and its successor reach the commit together."""
    start = threading.Barrier(4)

    def drive(driver: int) -> list[Committed]:
        mine = Lake.open(str(warehouse)).table(NAME)
        done = []
        for batch in range(3):
            start.wait()
            done.append(send(mine, batch, [batch], f"driver {driver}"))
        return done

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(drive, range(4)))

    assert len(table.history()) == 3
    for batch in range(3):
        landed = [done[batch] for done in answers if done[batch].files]
        assert len(landed) == 1, "one driver commits, the others learn that it is done"
        assert all(done[batch].version >= landed[0].version for done in answers)
    assert statuses(table).keys() == {0, 1, 2}
    live = {Path(str(file["path"]).removeprefix("file://")) for file in table.files()}
    assert data_files(lake) == live, "files of the others are removed"


def test_a_batch_whose_rows_were_overtaken_in_a_race_leaves_no_files(
    table: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody commits the batch between our look at the table and our commit."""

    def late(*_: object) -> None:
        monkeypatch.undo()
        send(table, 0, [1], "faster")

    monkeypatch.setattr(write, "find_once", late)
    done = send(table, 0, [1], "slower")

    assert done.files == 0
    assert statuses(table) == {1: "faster"}
    assert len(data_files(lake)) == 1


def test_the_name_outlives_its_snapshot(table: Table) -> None:
    """Expiry takes snapshots and their summaries away; a table property stays."""
    send(table, 0, [1])
    send(table, 1, [2], query="other")
    old = streamed(table).metadata.snapshots[0].snapshot_id
    streamed(table).maintenance.expire_snapshots().by_id(old).commit()

    assert streamed(table).metadata.snapshot_by_id(old) is None
    assert send(table, 0, [1], "again").files == 0


def test_a_replay_after_a_lost_answer_is_recognised(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit landed, the driver died before it knew; the next one repeats the batch."""

    class Killed(BaseException):
        """Stands for the end of the process."""

    real = SqlCatalog.commit_table

    def land_and_die(
        self: SqlCatalog,
        table: IcebergTable,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> CommitTableResponse:
        answer = real(self, table, requirements, updates)
        if any(update.action == "add-snapshot" for update in updates):
            raise Killed
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(SqlCatalog, "commit_table", land_and_die)
        with pytest.raises(Killed):
            send(table, 0, [1])

    assert send(table, 0, [1], "replay").files == 0
    assert statuses(table) == {1: "new"}
    assert len(table.history()) == 1


def test_an_answer_that_says_nothing_is_read_back_and_counts_once(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = SqlCatalog.commit_table
    faults = [CommitStateUnknownException("500")]

    def land_and_fail(
        self: SqlCatalog,
        table: IcebergTable,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> CommitTableResponse:
        answer = real(self, table, requirements, updates)
        if faults and any(update.action == "add-snapshot" for update in updates):
            raise faults.pop()
        return answer

    monkeypatch.setattr(SqlCatalog, "commit_table", land_and_fail)

    assert send(table, 0, [1]).rows == 1
    assert send(table, 0, [1], "replay").files == 0
    assert len(table.history()) == 1


def test_compaction_between_two_batches_forgets_nothing(table: Table) -> None:
    """TRI-02: files are rewritten, the names of batches stay."""
    send(table, 0, [1, 2])
    send(table, 1, [2, 3])
    table.compact("full")

    assert send(table, 1, [2, 3], "again").files == 0
    assert send(table, 2, [4]).rows == 1
    assert table.verify().ok


def test_rows_that_look_up_their_old_partition_are_committed_once_too(lake: Lake) -> None:
    """KUP-03 in a stream: an overtaken look-up is repeated, a committed batch is not."""
    table = orders(lake, partition_by=["status"], options={"locate": True})
    send(table, 0, [1, 2], "new")
    send(table, 1, [2], "paid")

    assert send(table, 1, [2], "again").files == 0
    assert statuses(table) == {1: "new", 2: "paid"}
    assert STREAM + QUERY in change_of(table).properties
    assert STREAM + QUERY not in base_of(table).properties
