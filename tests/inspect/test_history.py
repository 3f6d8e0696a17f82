from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

from arcticlake import Lake, Table
from arcticlake.commit.history import SnapshotFact
from arcticlake.compact.result import NUMBERS, Numbers, encode_numbers
from arcticlake.inspect.history import explain_numbers, list_history, moment
from tests.inspect.lab import append_as_stranger, fact, keys, log_of, orders


def test_every_commit_is_one_entry_newest_first(table: Table) -> None:
    table.insert(orders(range(10)))
    table.upsert(orders(range(5, 15)))
    table.delete(keys(1, 2))

    entries = table.history()

    assert [(e.version, e.kind, e.rows) for e in entries] == [
        (3, "delete", 2),
        (2, "upsert", 10),
        (1, "insert", 10),
    ]
    assert all(entry.timestamp.tzinfo is UTC for entry in entries)
    assert entries[0].timestamp > entries[1].timestamp > entries[2].timestamp
    assert entries[2].files == 2
    assert entries[0].summary["arctic.kind"] == "delete"


def test_an_entry_becomes_json(table: Table) -> None:
    table.upsert(orders([1]))

    (entry,) = table.history()

    again = json.loads(json.dumps(entry.to_dict()))
    assert datetime.fromisoformat(again["timestamp"]) == entry.timestamp
    assert (again["version"], again["kind"], again["rows"], again["files"]) == (1, "upsert", 1, 1)
    assert again["compaction"] is None


def test_a_write_of_another_engine_enters_the_history_with_the_next_writer(
    lake: Lake, table: Table
) -> None:
    table.insert(orders([1]))
    append_as_stranger(lake, orders([2]))
    table.upsert(orders([3]))

    assert [(e.version, e.kind) for e in table.history()] == [
        (3, "upsert"),
        (2, "insert"),
        (1, "insert"),
    ]
    assert table.history()[1].summary["arctic.foreign"] == "true"


def test_a_table_without_a_key_has_the_history_of_its_base_table(lake: Lake) -> None:
    table = lake.create_table("shop.log", "line string")
    table.insert(orders([1]).select(["status"]).rename_columns(["line"]))

    assert [(e.version, e.kind, e.rows) for e in table.history()] == [(1, "insert", 1)]


def test_a_table_without_commits_has_no_entries() -> None:
    assert list_history(log_of([], [])) == []


def compaction(
    snapshot_id: int, kind: str, *, at: int, sequence: int = 0, contains: int | None = None
) -> SnapshotFact:
    """A snapshot of a compaction, landed `at` a second."""
    numbers = Numbers(files_removed=7, files_added=2, rows_written=30, events=("split 3/1",))
    found = fact(snapshot_id, kind, sequence=sequence, operation="replace")
    told = {} if contains is None else {"arctic.contains": str(contains)}
    summary = {**found.summary, **encode_numbers(numbers), **told}
    return replace(found, summary=summary, timestamp_ms=1_000 * at)


def timeline(base: list[SnapshotFact], change: list[SnapshotFact] | None) -> list[tuple[int, str]]:
    return [(entry.version, entry.kind) for entry in list_history(log_of(base, change))]


def test_compactions_stand_on_the_timeline_with_what_they_merged(table: Table) -> None:
    """CMP-22: a compaction is an entry, and no version."""
    table.insert(orders(range(10)))
    table.upsert(orders(range(5)))
    table.upsert(orders(range(5, 8)))
    minor = table.compact("minor")
    major = table.compact("major")
    table.delete(keys(1))

    entries = table.history()

    assert [(e.kind, e.compaction is None) for e in entries] == [
        ("delete", True),
        ("major", False),
        ("minor", False),
        ("upsert", True),
        ("upsert", True),
        ("insert", True),
    ]
    assert [entry.version for entry in entries[1:]] == [3, 3, 3, 2, 1]
    assert (entries[1].rows, entries[1].files) == (10, major.files_added)
    assert (entries[2].rows, entries[2].files) == (minor.numbers.rows_written, minor.files_added)
    assert entries[1].compaction is not None
    assert entries[1].compaction.files_removed == major.files_removed
    assert NUMBERS in entries[1].summary
    assert entries[0].timestamp >= entries[1].timestamp >= entries[2].timestamp


def test_dropping_merged_change_files_is_no_entry(table: Table) -> None:
    table.upsert(orders(range(10)))
    table.compact("major")

    kinds = [entry.kind for entry in table.history()]

    assert kinds == ["major", "upsert"]


def test_splits_and_merges_are_events_of_their_entry() -> None:
    """SPL-08, SPL-13: what became of the tree is told in sentences."""
    (entry, _) = list_history(
        log_of([compaction(9, "major", at=3, contains=2)], [fact(2, "upsert")])
    )

    assert entry.events == ("split 3/1",)
    assert entry.explain() == ("7 files → 2, 0 B written, 0.0 s", "split 3/1")
    assert entry.to_dict()["compaction"] == {
        "files_removed": 7,
        "files_added": 2,
        "rows_read": 0,
        "rows_written": 30,
        "bytes_read": 0,
        "bytes_written": 0,
        "change_bytes": 0,
        "seconds": 0.0,
        "events": ["split 3/1"],
        "write_amplification": None,
    }


def test_a_merge_up_to_an_old_version_stands_where_it_landed() -> None:
    change = [fact(number, "upsert") for number in (1, 2, 3, 4)]

    assert timeline([compaction(9, "major", at=3, contains=1)], change) == [
        (4, "upsert"),
        (1, "major"),
        (3, "upsert"),
        (2, "upsert"),
        (1, "upsert"),
    ]


def test_a_clock_that_is_behind_puts_no_compaction_before_what_it_merged() -> None:
    change = [fact(5, "upsert"), fact(6, "upsert")]

    assert timeline([compaction(9, "full", at=1, contains=5)], change) == [
        (6, "upsert"),
        (5, "full"),
        (5, "upsert"),
    ]


def test_a_minor_compaction_belongs_to_the_newest_version_before_it() -> None:
    change = [
        fact(4, "upsert"),
        compaction(90, "minor", at=99, sequence=5),
        compaction(91, "minor", at=99, sequence=6),
        fact(7, "upsert"),
    ]

    assert timeline([], change) == [(7, "upsert"), (4, "minor"), (4, "minor"), (4, "upsert")]
    assert timeline([], change[1:2]) == [(0, "minor")]  # what it rewrote has expired


def test_a_run_that_rewrites_changes_and_base_shows_base_as_the_later() -> None:
    change = [fact(1, "upsert"), compaction(90, "minor", at=2, sequence=2)]

    assert timeline([compaction(9, "major", at=2, contains=1)], change) == [
        (1, "major"),
        (1, "minor"),
        (1, "upsert"),
    ]


def test_versions_keep_their_order_whatever_the_clocks_say() -> None:
    change = [fact(1, "upsert"), fact(5, "upsert"), fact(6, "upsert")]
    change[2] = replace(change[2], timestamp_ms=10)

    assert timeline([compaction(9, "major", at=2, contains=1)], change) == [
        (6, "upsert"),
        (5, "upsert"),
        (1, "major"),
        (1, "upsert"),
    ]


def test_a_table_without_a_key_shows_its_compactions_by_its_own_sequence(lake: Lake) -> None:
    """NPK-03, CMP-22."""
    table = lake.create_table("shop.log", "id bigint")
    for number in range(4):
        table.insert(keys(number))
    table.compact("full")
    table.insert(keys(9))

    assert [(e.version, e.kind, e.rows, e.files) for e in table.history()][:3] == [
        (6, "insert", 1, 1),
        (4, "full", 4, 1),
        (4, "insert", 1, 1),
    ]


def test_numbers_are_told_in_one_line() -> None:
    numbers = Numbers(
        files_removed=1,
        files_added=2,
        bytes_written=3_000_000,
        change_bytes=1_000_000,
        seconds=0.84,
    )

    assert explain_numbers(numbers) == (
        "1 file → 2, 2.9 MB written, 0.8 s, 3.0 bytes written for a byte of changes"
    )


def test_moments_are_exact_to_the_millisecond() -> None:
    assert moment(1_767_355_200_123) == datetime(2026, 1, 2, 12, 0, 0, 123_000, tzinfo=UTC)
