"""Faults are put into a real SqlCatalog: it raises before or after it really commits."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    CommitStateUnknownException,
    ForbiddenError,
    NoSuchTableError,
)
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.update import TableRequirement, TableUpdate
from sqlalchemy.exc import OperationalError

from arcticlake.commit.iceberg import SnapshotChange, commit_snapshot, find_commit, live_entries
from arcticlake.commit.loop import Decide, Done, Limits, commit
from arcticlake.errors import Conflict, InvalidRequest, NotFound, OutcomeUnknown, Unavailable
from tests.commit.lab import (
    SCHEMA,
    FakeClock,
    append,
    commit_id,
    create,
    files_under,
    sqlite_catalog,
    stand_in,
)


class FaultyCatalog(SqlCatalog):
    """Takes one fault from a list for each commit: (when, error), or None for a good day."""

    faults: ClassVar[list[tuple[str, Exception] | None]] = []
    load_faults: ClassVar[list[Exception | None]] = []
    rival: ClassVar[Callable[[], object] | None] = None

    def load_table(self, identifier: str | tuple[str, ...]) -> Table:
        fault = self.load_faults.pop(0) if self.load_faults else None
        if fault is not None:
            raise fault
        return super().load_table(identifier)

    def commit_table(
        self,
        table: Table,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> CommitTableResponse:
        fault = self.faults.pop(0) if self.faults else None
        if fault is None:
            return super().commit_table(table, requirements, updates)
        when, error = fault
        if when == "after":
            super().commit_table(table, requirements, updates)
        if when == "rival" and FaultyCatalog.rival is not None:
            FaultyCatalog.rival()
        raise error


@pytest.fixture
def faulty(tmp_path: Path) -> Iterator[FaultyCatalog]:
    FaultyCatalog.faults.clear()
    FaultyCatalog.load_faults.clear()
    FaultyCatalog.rival = None
    with sqlite_catalog(tmp_path, FaultyCatalog) as catalog:
        assert isinstance(catalog, FaultyCatalog)
        create(catalog)
        yield catalog


def run(catalog: SqlCatalog, identity: str | None = None, decide: Decide | None = None) -> Table:
    def append_one(table: Table) -> SnapshotChange:
        return append(stand_in(table))

    return commit(
        lambda: catalog.load_table("db.t"),
        decide or append_one,
        identity or commit_id(),
        clock=FakeClock().clock,
    )


def landed(catalog: SqlCatalog) -> list[str]:
    FaultyCatalog.load_faults.clear()
    snapshots = catalog.load_table("db.t").metadata.snapshots
    return [str(s.summary["arctic.commit-id"]) for s in snapshots if s.summary]


REFUSED = CommitFailedException("409")
UNKNOWN = CommitStateUnknownException("500")
RESET = ConnectionResetError("connection reset")
LATE = TimeoutError("timed out")


@pytest.mark.parametrize("error", [REFUSED, UNKNOWN, RESET, LATE, ValueError("bad answer")])
def test_a_commit_that_landed_is_committed_whatever_the_answer_said(
    faulty: FaultyCatalog, tmp_path: Path, error: Exception
) -> None:
    """Finding: pyiceberg deletes the manifests of a landed commit on a refused last attempt."""
    FaultyCatalog.faults[:] = [("after", error)]
    identity = commit_id()
    before = files_under(tmp_path)

    table = run(faulty, identity)

    assert landed(faulty) == [identity]
    assert find_commit(table, identity) is not None
    assert before <= files_under(tmp_path)
    assert len(live_entries(table, table.current_snapshot())) == 1, "its manifests are all there"


def test_a_refusal_on_the_last_attempt_is_read_back_too(faulty: FaultyCatalog) -> None:
    FaultyCatalog.faults[:] = [("before", REFUSED), ("before", REFUSED), ("after", REFUSED)]
    identity = commit_id()

    commit(
        lambda: faulty.load_table("db.t"),
        lambda table: append(stand_in(table)),
        identity,
        limits=Limits(attempts_max=3),
        clock=FakeClock().clock,
    )

    assert landed(faulty) == [identity]


def test_a_refused_commit_is_tried_again_on_the_new_head(faulty: FaultyCatalog) -> None:
    FaultyCatalog.faults[:] = [("before", REFUSED)] * 5
    identity = commit_id()

    run(faulty, identity)

    assert landed(faulty) == [identity]


def test_a_writer_that_always_loses_gets_a_conflict_and_nothing_is_visible(
    faulty: FaultyCatalog, tmp_path: Path
) -> None:
    FaultyCatalog.faults[:] = [("before", REFUSED)] * 100
    before = files_under(tmp_path)

    with pytest.raises(Conflict, match="20 attempts lost"):
        run(faulty)

    assert landed(faulty) == []
    assert before <= files_under(tmp_path)
    assert len(FaultyCatalog.faults) == 80


def test_a_writer_that_loses_for_too_long_gets_a_conflict(faulty: FaultyCatalog) -> None:
    FaultyCatalog.faults[:] = [("before", REFUSED)] * 100
    fake = FakeClock()

    with pytest.raises(Conflict):
        commit(
            lambda: faulty.load_table("db.t"),
            lambda table: append(stand_in(table)),
            commit_id(),
            limits=Limits(attempts_max=50, seconds_max=1.0),
            clock=fake.clock,
        )

    assert 1.0 <= fake.time < 2.0


@pytest.mark.parametrize("error", [UNKNOWN, RESET, LATE])
def test_no_answer_and_nothing_to_see_is_an_unknown_outcome(
    faulty: FaultyCatalog, tmp_path: Path, error: Exception
) -> None:
    FaultyCatalog.faults[:] = [("before", error)]
    identity = commit_id()
    before = files_under(tmp_path)

    with pytest.raises(OutcomeUnknown, match=identity):
        run(faulty, identity)

    assert landed(faulty) == []
    assert len(files_under(tmp_path)) == len(before) + 2, (
        "manifest and list stay for a late landing"
    )


def test_no_answer_while_another_writer_moved_the_head_is_not_committed(
    faulty: FaultyCatalog,
) -> None:
    """Our assert-head can never succeed any more, so a second attempt is safe."""

    def rival() -> None:
        table = SqlCatalog.load_table(faulty, "db.t")
        commit_snapshot(table, append(stand_in(table)), "rival")

    FaultyCatalog.rival = rival
    FaultyCatalog.faults[:] = [("rival", UNKNOWN)]
    identity = commit_id()

    run(faulty, identity)

    assert landed(faulty) == ["rival", identity]


def test_no_answer_after_a_mere_property_change_stays_unknown(faulty: FaultyCatalog) -> None:
    """The head is still our parent: the request may yet arrive."""

    def rival() -> None:
        with SqlCatalog.load_table(faulty, "db.t").transaction() as transaction:
            transaction.set_properties(other="1")

    FaultyCatalog.rival = rival
    FaultyCatalog.faults[:] = [("rival", UNKNOWN)]

    with pytest.raises(OutcomeUnknown):
        run(faulty)


def test_a_commit_that_lands_late_is_found_by_a_later_look(faulty: FaultyCatalog) -> None:
    """The catalog applies the request while the client already waits and looks."""
    FaultyCatalog.faults[:] = [("after", UNKNOWN)]
    FaultyCatalog.load_faults[:] = [None, None, RESET, RESET, RESET]
    identity = commit_id()

    run(faulty, identity)

    assert landed(faulty) == [identity]


def test_a_catalog_that_stays_away_after_sending_is_an_unknown_outcome(
    faulty: FaultyCatalog,
) -> None:
    FaultyCatalog.faults[:] = [("after", RESET)]
    FaultyCatalog.load_faults[:] = [None, None, *[RESET] * 20]
    identity = commit_id()

    with pytest.raises(OutcomeUnknown):
        run(faulty, identity)

    assert landed(faulty) == [identity], "it did land, and the caller was told to look"


def test_repeating_a_commit_id_that_is_in_the_table_commits_nothing(faulty: FaultyCatalog) -> None:
    identity = commit_id()
    run(faulty, identity)

    run(faulty, identity)

    assert landed(faulty) == [identity]


@pytest.mark.parametrize("error", [RESET, LATE])
def test_a_catalog_that_cannot_be_reached_before_sending_is_unavailable(
    faulty: FaultyCatalog, error: Exception
) -> None:
    FaultyCatalog.load_faults[:] = [error]

    with pytest.raises(Unavailable, match="nothing was changed") as raised:
        run(faulty)

    assert not isinstance(raised.value, OutcomeUnknown)


def locked() -> OperationalError:
    cause = sqlite3.OperationalError("database is locked")
    cause.sqlite_errorcode = sqlite3.SQLITE_BUSY
    return OperationalError("UPDATE", {}, cause)


def test_a_locked_database_is_waited_for(faulty: FaultyCatalog) -> None:
    FaultyCatalog.load_faults[:] = [locked(), locked()]
    FaultyCatalog.faults[:] = [("before", locked())]
    identity = commit_id()

    run(faulty, identity)

    assert landed(faulty) == [identity]


def test_a_really_locked_sqlite_file_is_not_committed_and_tried_again(tmp_path: Path) -> None:
    """Another connection holds SQLite's write lock until the first nap of the loop."""
    catalog = SqlCatalog(
        "lab", uri=f"sqlite:///{tmp_path}/catalog.db?timeout=0.05", warehouse=str(tmp_path)
    )
    create(catalog)
    other = sqlite3.connect(tmp_path / "catalog.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    fake = FakeClock()
    identity = commit_id()

    def sleep(seconds: float) -> None:
        fake.sleep(seconds)
        if other.in_transaction:
            other.execute("ROLLBACK")

    clock = fake.clock.__class__(now=fake.clock.now, sleep=sleep, random=fake.clock.random)
    commit(
        lambda: catalog.load_table("db.t"),
        lambda table: append(stand_in(table)),
        identity,
        clock=clock,
    )
    other.close()

    assert landed(catalog) == [identity]
    assert len(fake.naps) == 1
    catalog.close()


def test_a_denied_commit_is_not_repeated(faulty: FaultyCatalog) -> None:
    FaultyCatalog.faults[:] = [("before", ForbiddenError("no"))] * 9

    with pytest.raises(InvalidRequest, match="denies"):
        run(faulty)

    assert len(FaultyCatalog.faults) == 8
    assert landed(faulty) == []


def test_a_table_that_is_gone_is_not_found(faulty: FaultyCatalog) -> None:
    FaultyCatalog.load_faults[:] = [NoSuchTableError("db.t")]

    with pytest.raises(NotFound):
        run(faulty)


def test_a_table_that_was_replaced_while_we_tried_is_a_conflict(faulty: FaultyCatalog) -> None:
    def rival() -> None:
        faulty.drop_table("db.t")
        faulty.create_table("db.t", SCHEMA)

    FaultyCatalog.rival = rival
    FaultyCatalog.faults[:] = [("rival", REFUSED)]

    with pytest.raises(Conflict, match="replaced"):
        run(faulty)


def test_decide_is_asked_again_for_every_head_and_may_end_it(faulty: FaultyCatalog) -> None:
    seen: list[int] = []

    def decide(table: Table) -> SnapshotChange | Done:
        seen.append(len(table.metadata.snapshots))
        return append(stand_in(table)) if len(seen) == 1 else Done("somebody did it")

    def rival() -> None:
        table = SqlCatalog.load_table(faulty, "db.t")
        commit_snapshot(table, append(stand_in(table)), "rival")

    FaultyCatalog.rival = rival
    FaultyCatalog.faults[:] = [("rival", REFUSED)]

    table = run(faulty, decide=decide)

    assert seen == [0, 1]
    assert landed(faulty) == ["rival"]
    assert len(table.metadata.snapshots) == 1


def test_a_conflict_that_decide_raises_ends_the_commit(faulty: FaultyCatalog) -> None:
    def decide(_: Table) -> SnapshotChange:
        raise Conflict("keys exist by now")

    with pytest.raises(Conflict, match="keys exist by now"):
        run(faulty, decide=decide)


def test_a_disk_that_fails_while_manifests_are_written_is_unavailable(
    faulty: FaultyCatalog, tmp_path: Path
) -> None:
    table = faulty.load_table("db.t")
    metadata = tmp_path / "db" / "t" / "metadata"
    metadata.rename(tmp_path / "aside")
    metadata.write_text("a file where the folder was")

    with pytest.raises(Unavailable, match="writing manifests"):
        commit(lambda: table, lambda t: append(stand_in(t)), commit_id(), clock=FakeClock().clock)


def test_pauses_grow_and_stay_below_their_limit(faulty: FaultyCatalog) -> None:
    FaultyCatalog.faults[:] = [("before", REFUSED)] * 12
    fake = FakeClock()

    commit(
        lambda: faulty.load_table("db.t"),
        lambda table: append(stand_in(table)),
        commit_id(),
        clock=fake.clock,
    )

    assert fake.naps == sorted(fake.naps)
    assert (fake.naps[0], fake.naps[-1]) == (0.015, 0.75)
