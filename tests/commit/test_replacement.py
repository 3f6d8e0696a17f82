"""What an overwrite replaces, and which changes stay on top of it, as pure decisions."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from arcticlake.commit.change import Operation
from arcticlake.commit.history import BASE_SNAPSHOT, COMMIT_ID, KIND, Log, SnapshotFact, Version
from arcticlake.commit.replacement import (
    Replacement,
    check_version,
    decode_replacement,
    encode_replacement,
    is_complete,
    newest_version,
    plan_exchange,
    replaced_paths,
)
from arcticlake.errors import CorruptData, InvalidRequest
from arcticlake.tree.files import FileEntry, Role
from arcticlake.tree.node import ROOT
from tests.commit.lab import create, sqlite_catalog, stand_in

A, B = ("a",), ("b",)


def file(path: str, partition: tuple[object, ...] = A, sequence: int = 1) -> FileEntry:
    return FileEntry(
        path=path,
        role=Role.CHANGE,
        partition=partition,
        node=ROOT,
        rows=1,
        bytes=1,
        key_lower=(),
        key_upper=(),
        sort_lower=(),
        sort_upper=(),
        snapshot_id=sequence,
        sequence=sequence,
        data_file=None,  # type: ignore[arg-type]
    )


def fact(sequence: int, kind: str, base: int | None = None) -> SnapshotFact:
    named = {} if base is None else {BASE_SNAPSHOT: str(base)}
    summary = {COMMIT_ID: "x", KIND: kind, **named}
    return SnapshotFact(sequence, sequence, sequence, "append", 0, summary)


def log(*facts: SnapshotFact) -> Log:
    return Log("db.t", (), facts)


def nothing(_: Version) -> frozenset[tuple[object, ...]]:
    return frozenset()


@pytest.mark.parametrize(
    "replacement",
    [
        Replacement(0, None),
        Replacement(7, frozenset()),
        Replacement(7, frozenset({(None, 1), ("x", 2), (b"x", 3)})),
        Replacement(7, frozenset({(date(2026, 1, 1), Decimal("1.50"))})),
    ],
)
def test_a_replacement_survives_the_summary(replacement: Replacement) -> None:
    """BAT-09: the marker of a dead writer's overwrite needs nothing but this."""
    summary = encode_replacement(replacement)

    assert decode_replacement({**summary, KIND: "overwrite"}) == replacement


def test_other_commits_replace_nothing_and_a_broken_summary_stops() -> None:
    assert decode_replacement({KIND: "insert"}) is None
    for broken in ({"arctic.change-version": "x"}, {"arctic.overwrote": "[1"}):
        summary = {**encode_replacement(Replacement(1, frozenset({A}))), **broken}
        with pytest.raises(CorruptData, match=r"verify\(\)"):
            decode_replacement(summary)


def test_row_deletes_go_only_when_no_file_that_stays_needs_them(tmp_path: Path) -> None:
    with sqlite_catalog(tmp_path) as catalog:
        table = create(catalog)
        shared, own = stand_in(table), stand_in(table)

    def base(path: str, partition: tuple[object, ...], *deletes: object) -> FileEntry:
        entry = file(path, partition)
        object.__setattr__(entry, "row_deletes", deletes)
        return entry

    bases = [base("1", A, shared, own), base("2", B, shared), base("3", A)]

    gone = replaced_paths(Replacement(1, frozenset({A})), bases)

    assert gone == {"1", "3", own.file_path}
    assert replaced_paths(Replacement(1, None), bases) >= {"1", "2", "3", shared.file_path}


def test_all_pending_files_of_replaced_partitions_go() -> None:
    live = [file("1"), file("2", B), file("3", sequence=4)]

    exchange = plan_exchange(Replacement(4, frozenset({A})), live, [])

    assert not exchange.added
    assert exchange.removed == {"1", "3"}
    assert exchange.operation is Operation.DELETE


def test_originals_above_the_version_come_back_and_rewrites_of_them_go() -> None:
    """BAT-10: merged and rewritten changes are there again, each with its own sequence."""
    live = [file("minor", sequence=5), file("kept", sequence=6), file("other", B, 5)]
    originals = [file("four", sequence=4), file("kept", sequence=6), file("gone", B, 4)]

    exchange = plan_exchange(Replacement(3, frozenset({A})), live, originals)

    assert [(f.path, f.sequence) for f in exchange.added] == [("four", 4)]
    assert exchange.removed == {"minor"}
    assert exchange.operation is Operation.OVERWRITE


def test_nothing_to_exchange_makes_a_plain_marker() -> None:
    exchange = plan_exchange(Replacement(3, None), [], [])

    assert (exchange.added, exchange.removed) == ((), frozenset())
    assert exchange.operation is Operation.APPEND


def test_where_commits_above_have_expired_files_that_reach_above_stay() -> None:
    live = [file("below", sequence=3), file("above", sequence=5)]

    assert plan_exchange(Replacement(3, None), live, None).removed == {"below"}


def test_a_version_outside_the_line_is_refused() -> None:
    known = log(fact(1, "upsert"), fact(2, "upsert"))

    for version in (0, 1, 2):
        check_version(known, Replacement(version, None), nothing)
    for version in (-1, 3):
        with pytest.raises(InvalidRequest, match=rf"db\.t: change_version {version} .*version 2"):
            check_version(known, Replacement(version, None), nothing)


def test_a_version_before_the_kept_history_is_refused_by_the_oldest_possible() -> None:
    """BAT-10: backwards as far as the history is kept."""
    known = log(fact(4, "upsert"), fact(5, "upsert"))

    assert [is_complete(known, version) for version in (2, 3, 5)] == [False, True, True]
    check_version(known, Replacement(3, None), nothing)
    with pytest.raises(InvalidRequest, match=r"change_version 2 .*possible is 3"):
        check_version(known, Replacement(2, None), nothing)


def test_a_batch_above_the_version_in_the_same_partitions_is_refused() -> None:
    known = log(fact(1, "upsert"), fact(2, "insert", base=20), fact(3, "insert"))

    with pytest.raises(InvalidRequest, match=r"insert of version 2 .*of 2 or above"):
        check_version(known, Replacement(1, frozenset({A})), lambda _: frozenset({A}))
    with pytest.raises(InvalidRequest, match=r"insert of version 2 .*of 2 or above"):
        check_version(known, Replacement(1, frozenset({A})), lambda _: None)
    check_version(known, Replacement(1, frozenset({A})), lambda _: frozenset({B}))
    check_version(known, Replacement(2, None), lambda _: None)


def test_now_is_the_newest_version_or_the_head_where_all_have_expired() -> None:
    assert newest_version(log()) == 0
    assert newest_version(log(fact(1, "upsert"), fact(2, "trim"))) == 1
    assert newest_version(log(fact(9, "trim"))) == 9
