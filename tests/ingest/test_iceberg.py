"""Files become versions: crashes between the two tables, and many writers at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from arcticlake import Lake
from arcticlake.commit.history import BASE_SNAPSHOT, unmarked, versions
from arcticlake.commit.iceberg_state import load_log
from arcticlake.errors import InvalidRequest
from arcticlake.ingest import iceberg
from arcticlake.lake import Table
from arcticlake.table.iceberg import load_pair
from tests.verbs.shop import NAME, base_of, change_of, keys, orders, rows, statuses


class Killed(BaseException):
    """Stands for the end of the process."""


def insert_and_die(table: Table, ids: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Commit rows into base, then end before the marker."""

    def die(*_: object, **__: object) -> int:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(iceberg, "mark", die)
        with pytest.raises(Killed):
            table.insert(rows(ids, "dead writer"))


def markers(table: Table) -> list[str]:
    """Which base snapshots have a marker, once for each marker."""
    found = [
        snapshot.summary.additional_properties.get(BASE_SNAPSHOT)
        for snapshot in change_of(table).metadata.snapshots
        if snapshot.summary is not None
    ]
    return [named for named in found if named is not None]


def test_a_batch_without_its_marker_is_invisible(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = orders(lake)
    first = table.insert(rows([1]))
    insert_and_die(table, [2, 3], monkeypatch)

    assert len(base_of(table).metadata.snapshots) == 2
    assert statuses(table) == {1: "new"}
    assert statuses(table, mode="base") == {1: "new"}
    assert statuses(table, mode="unmerged") == {1: "new"}
    assert statuses(table, version=first.version) == {1: "new"}


@pytest.mark.parametrize(
    ("write", "after"),
    [
        (lambda t: t.upsert(rows([9], "next")), {1: "new", 2: "dead writer", 9: "next"}),
        (lambda t: t.insert(rows([9], "next")), {1: "new", 2: "dead writer", 9: "next"}),
        (lambda t: t.delete(keys(2)), {1: "new"}),
        (lambda t: t.upsert(rows([2], "next")), {1: "new", 2: "next"}),
    ],
    ids=["upsert", "insert", "delete", "upsert of its key"],
)
def test_the_next_writer_gives_a_dead_writers_batch_its_version_once(
    lake: Lake,
    monkeypatch: pytest.MonkeyPatch,
    write: Callable[[Table], object],
    after: dict[int, str],
) -> None:
    table = orders(lake)
    table.insert(rows([1]))
    insert_and_die(table, [2], monkeypatch)

    write(table)
    table.upsert(rows([1]))

    assert statuses(table) == after
    assert len(markers(table)) == len(set(markers(table)))
    log = load_log(table._opened.pair())
    assert unmarked(log) == ()
    kinds = [version.kind for version in versions(log)]
    assert kinds[:2] == ["insert", "insert"]
    assert statuses(table, version=versions(log)[1].version) == {1: "new", 2: "dead writer"}


def test_a_key_of_a_dead_writers_batch_counts_as_existing(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = orders(lake)
    insert_and_die(table, [2], monkeypatch)

    with pytest.raises(InvalidRequest, match="order_id=2 exists already"):
        table.insert(rows([2]))

    assert statuses(table) == {2: "dead writer"}


def test_two_repairs_at_once_make_one_marker(
    lake: Lake, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = orders(lake)
    insert_and_die(table, [1], monkeypatch)
    start = threading.Barrier(4)

    def repair(_: int) -> None:
        other = Lake.open(str(warehouse))
        pair = load_pair(other.catalog, NAME)
        start.wait()
        iceberg.mark_all(pair)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(repair, range(4)))

    assert len(markers(table)) == 1
    assert statuses(table) == {1: "dead writer"}


def test_writers_at_once_lose_nothing_and_versions_increase(lake: Lake, warehouse: Path) -> None:
    table = orders(lake)
    rounds, writers = 4, 4

    def write(writer: int) -> list[int]:
        mine = Lake.open(str(warehouse)).table(NAME)
        done = []
        for number in range(rounds):
            own = 100 * writer + number
            done.append(mine.upsert(rows([own, 7], f"w{writer}-{number}")).version)
        return done

    with ThreadPoolExecutor(writers) as pool:
        found = list(pool.map(write, range(writers)))

    assert all(done == sorted(set(done)) for done in found)
    everything = sorted(version for done in found for version in done)
    assert len(set(everything)) == rounds * writers
    seen = statuses(table)
    assert seen.keys() == {7, *(100 * w + n for w in range(writers) for n in range(rounds))}
    newest = max((done[-1], writer) for writer, done in enumerate(found))[1]
    assert seen[7] == f"w{newest}-{rounds - 1}"


def test_inserts_of_one_key_at_once_leave_one_row(lake: Lake, warehouse: Path) -> None:
    """KEY-06: of four batches with the same key one lands, three are refused."""
    table = orders(lake)
    start = threading.Barrier(4)

    def write(writer: int) -> bool:
        mine = Lake.open(str(warehouse)).table(NAME)
        start.wait()
        try:
            mine.insert(rows([1, 100 + writer], f"w{writer}"))
        except InvalidRequest:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        landed = list(pool.map(write, range(4)))

    assert landed.count(True) == 1
    winner = landed.index(True)
    assert statuses(table) == {1: f"w{winner}", 100 + winner: f"w{winner}"}


def test_an_insert_and_an_upsert_of_one_key_at_once_leave_one_row(
    lake: Lake, warehouse: Path
) -> None:
    table = orders(lake)

    for number in range(4):
        start = threading.Barrier(2)

        def upsert(key: int = number, start: threading.Barrier = start) -> None:
            mine = Lake.open(str(warehouse)).table(NAME)
            start.wait()
            mine.upsert(rows([key], "upsert"))

        def insert(key: int = number, start: threading.Barrier = start) -> None:
            mine = Lake.open(str(warehouse)).table(NAME)
            start.wait()
            try:
                mine.insert(rows([key], "insert"))
            except InvalidRequest as error:
                assert "exists already" in error.message  # noqa: PT017 - either outcome is right

        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(upsert), pool.submit(insert)]:
                done.result()

    assert statuses(table).keys() == set(range(4))


def test_a_reader_beside_writers_sees_a_state_that_was(lake: Lake, warehouse: Path) -> None:
    """Every commit writes one number to all keys, so a torn read would show two numbers."""
    table = orders(lake)
    table.insert(rows([-1], "start"))
    stop = threading.Event()

    def write() -> None:
        mine = Lake.open(str(warehouse)).table(NAME)
        for number in range(8):
            if number % 3 == 0:
                mine.delete("order_id >= 0")
                mine.insert(rows(range(10), f"n{number}"))
            else:
                mine.upsert(rows(range(10), f"n{number}"))
        stop.set()

    def read() -> int:
        mine = Lake.open(str(warehouse)).table(NAME)
        count = 0
        while not stop.is_set():
            seen = statuses(mine)
            assert seen.pop(-1) == "start"
            assert seen.keys() in (set(), set(range(10)))
            assert len(set(seen.values())) <= 1
            count += 1
        return count

    with ThreadPoolExecutor(2) as pool:
        reading = pool.submit(read)
        pool.submit(write).result()
        assert reading.result() > 0


def test_repairs_of_one_overwrite_at_once_make_one_marker(
    lake: Lake, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BAT-08, BAT-10: the marker puts the same change files right, whoever writes it."""
    table = orders(lake)
    first = table.upsert(rows([1], "first"))
    table.upsert(rows([2], "second"))

    def die(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(iceberg, "mark", die)
        with pytest.raises(Killed):
            table.overwrite(rows([1, 2, 3], "batch"), change_version=first.version)
    start = threading.Barrier(4)

    def repair(_: int) -> None:
        other = Lake.open(str(warehouse))
        pair = load_pair(other.catalog, NAME)
        start.wait()
        iceberg.mark_all(pair)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(repair, range(4)))

    assert len(markers(table)) == 1
    assert statuses(table) == {1: "batch", 2: "second", 3: "batch"}
    assert table.verify().ok


def test_a_reader_beside_overwrites_sees_a_state_that_was(lake: Lake, warehouse: Path) -> None:
    """Every commit writes one number to all keys, so a torn read would show two numbers."""
    table = orders(lake)
    table.insert(rows(range(10), "start"))
    stop = threading.Event()

    def write() -> None:
        mine = Lake.open(str(warehouse)).table(NAME)
        for number in range(6):
            mine.upsert(rows(range(10), f"u{number}"))
            mine.overwrite(rows(range(10), f"o{number}"))
        stop.set()

    def read() -> int:
        mine = Lake.open(str(warehouse)).table(NAME)
        count = 0
        while not stop.is_set():
            seen = statuses(mine)
            assert seen.keys() == set(range(10))
            assert len(set(seen.values())) == 1
            count += 1
        return count

    with ThreadPoolExecutor(2) as pool:
        reading = pool.submit(read)
        pool.submit(write).result()
        assert reading.result() > 0
