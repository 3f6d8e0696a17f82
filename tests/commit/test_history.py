"""The single history over both tables, as a pure decision on their logs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from arcticlake.commit.history import (
    BASE_SNAPSHOT,
    CHANGE_VERSION,
    COMMIT_ID,
    CONTAINS,
    KIND,
    ROWS,
    SCHEMA_ID,
    Log,
    SnapshotFact,
    base_places,
    check_one_of,
    plan_view,
    unmarked,
    version_at,
    versions,
)
from arcticlake.commit.marks import Mark
from arcticlake.errors import CorruptData, InvalidRequest, NotFound
from arcticlake.table.order import MERGED_SEQUENCE, UNMARKED_SEQUENCE
from arcticlake.table.watermark import Watermark, encode_watermark


def ours(snapshot_id: int, sequence: int, kind: str, **summary: str) -> SnapshotFact:
    named = {key.replace("_", "-"): value for key, value in summary.items()}
    return SnapshotFact(
        snapshot_id=snapshot_id,
        sequence=sequence,
        timestamp_ms=1000 * sequence,
        operation="append",
        schema_id=0,
        summary={COMMIT_ID: "x", KIND: kind, **named},
    )


def marker(snapshot_id: int, sequence: int, base: int, kind: str = "insert") -> SnapshotFact:
    fact = ours(snapshot_id, sequence, kind)
    return replace(fact, summary={**fact.summary, BASE_SNAPSHOT: str(base)})


def overwrite(snapshot_id: int, sequence: int, version: int, through: int = 0) -> SnapshotFact:
    fact = ours(snapshot_id, sequence, "overwrite")
    told = {CHANGE_VERSION: str(version), **encode_watermark(Watermark(through))}
    return replace(fact, summary={**fact.summary, **told}, operation="overwrite")


def foreign(snapshot_id: int, sequence: int, operation: str = "append") -> SnapshotFact:
    return SnapshotFact(snapshot_id, sequence, 1000 * sequence, operation, 0, {})


def compacted(snapshot_id: int, sequence: int, contains: int, through: int) -> SnapshotFact:
    fact = ours(snapshot_id, sequence, "compact")
    marks = {CONTAINS: str(contains), **encode_watermark(Watermark(through))}
    return replace(fact, summary={**fact.summary, **marks}, operation="replace")


def log(base: list[SnapshotFact], change: list[SnapshotFact] | None) -> Log:
    return Log("db.t", tuple(base), None if change is None else tuple(change))


def test_every_content_commit_has_one_version_and_compaction_none() -> None:
    history = log(
        [ours(10, 1, "insert"), compacted(11, 2, contains=3, through=3)],
        [marker(20, 1, 10), ours(21, 2, "upsert"), ours(22, 3, "delete"), ours(23, 4, "tidy")],
    )

    assert [(v.version, v.kind) for v in versions(history)] == [
        (1, "insert"),
        (2, "upsert"),
        (3, "delete"),
    ]


def test_the_newest_view_reads_the_newest_of_both() -> None:
    history = log([ours(10, 1, "insert")], [marker(20, 1, 10), ours(21, 2, "upsert")])

    view = plan_view(history)

    assert (view.version, view.base_snapshot_id, view.change_snapshot_id) == (2, 10, 21)
    assert view.schema_id is None
    assert view.base_sequence(10) == 1
    assert view.base_sequence(999) == MERGED_SEQUENCE
    assert view.base_versions == {10: 1}


def test_our_batch_without_a_marker_is_invisible_and_waits_for_one() -> None:
    history = log(
        [ours(10, 1, "insert"), ours(11, 2, "insert")], [marker(20, 1, 10), ours(21, 2, "upsert")]
    )

    assert plan_view(history).base_snapshot_id == 10
    assert [fact.snapshot_id for fact in unmarked(history)] == [11]
    assert unmarked(log([ours(10, 1, "insert")], None)) == ()


def test_a_foreign_append_is_seen_at_once_as_the_newest() -> None:
    history = log([ours(10, 1, "insert"), foreign(11, 2)], [marker(20, 1, 10)])

    view = plan_view(history)

    assert view.base_snapshot_id == 11
    assert view.base_sequence(11) == UNMARKED_SEQUENCE
    assert [fact.snapshot_id for fact in unmarked(history)] == [11]
    assert plan_view(history, 1).base_snapshot_id == 10


def test_a_foreign_overwrite_stands_below_pending_changes() -> None:
    history = log(
        [ours(10, 1, "insert"), foreign(11, 2, "overwrite")],
        [marker(20, 1, 10), ours(21, 2, "upsert")],
    )

    assert plan_view(history).base_sequence(11) == MERGED_SEQUENCE


def test_rows_of_an_overwrite_stand_at_the_change_version_they_stand_for() -> None:
    """BAT-09: changes above it apply on top, also those that came before the marker."""
    change = [ours(20, 1, "upsert"), ours(21, 2, "upsert")]
    hidden = log([overwrite(10, 1, version=1)], change)
    marked = log([overwrite(10, 1, version=1)], [*change, marker(22, 3, 10, "overwrite")])
    kept = replace(marked, base=(), marks={10: Mark(1, 3, 1)})

    assert base_places(hidden) == base_places(marked) == base_places(kept) == {10: 1}
    assert plan_view(hidden).base_snapshot_id is None
    assert plan_view(marked).base_versions == {10: 3}
    assert plan_view(marked, 2).base_snapshot_id is None
    assert [(v.version, v.kind) for v in versions(marked)][-1] == (3, "overwrite")


def test_a_mark_that_goes_back_leaves_older_foreign_rewrites_alone() -> None:
    """BAT-10: what was merged when another engine rewrote rows is still merged in them."""
    rewrite = replace(foreign(12, 3, "replace"), replaced=frozenset({1, 2}))
    base = [
        compacted(10, 1, contains=2, through=2),
        ours(11, 2, "insert", **encode_watermark(Watermark(2))),
        rewrite,
    ]
    change = [ours(20, 1, "upsert"), ours(21, 2, "upsert"), marker(22, 3, 11)]
    back = [*base, overwrite(13, 4, version=1, through=1)]

    plan_view(log(base, change))
    view = plan_view(log(back, [*change, marker(23, 4, 13, "overwrite")]))

    assert view.watermark == Watermark(1)
    with pytest.raises(CorruptData, match="rewrote rows from before and after"):
        plan_view(
            log(
                [ours(10, 1, "insert"), ours(11, 2, "insert"), rewrite],
                [marker(20, 1, 10), ours(21, 2, "upsert"), marker(22, 3, 11)],
            )
        )


def test_a_foreign_replace_changes_no_content() -> None:
    """A rewrite of files by another engine needs no version."""
    history = log([ours(10, 1, "insert"), foreign(11, 2, "replace")], [marker(20, 1, 10)])

    assert unmarked(history) == ()
    assert plan_view(history).base_snapshot_id == 11


def test_an_old_version_reads_base_that_contains_nothing_above_it() -> None:
    history = log(
        [ours(10, 1, "insert"), compacted(11, 2, contains=3, through=3), ours(12, 3, "insert")],
        [marker(20, 1, 10), ours(21, 2, "upsert"), ours(22, 3, "upsert"), marker(23, 4, 12)],
    )

    views = {at: plan_view(history, at) for at in (0, 1, 2, 3, 4)}

    assert {at: view.base_snapshot_id for at, view in views.items()} == {
        0: None,
        1: 10,
        2: 10,
        3: 11,
        4: 12,
    }
    assert {at: view.change_snapshot_id for at, view in views.items()} == {
        0: None,
        1: 20,
        2: 21,
        3: 22,
        4: 23,
    }
    assert views[2].watermark == Watermark()
    assert views[3].watermark == Watermark(3)


def test_a_foreign_write_keeps_the_watermark_of_ours_before_it() -> None:
    history = log(
        [compacted(10, 1, contains=2, through=2), foreign(11, 2)],
        [ours(20, 1, "upsert"), ours(21, 2, "upsert")],
    )

    assert plan_view(history).watermark == Watermark(2)


def test_a_version_brings_its_own_schema() -> None:
    upsert = ours(21, 2, "upsert")
    history = log([], [replace(upsert, summary={**upsert.summary, SCHEMA_ID: "7", ROWS: "3"})])

    assert plan_view(history, 2).schema_id == 7
    assert plan_view(history).schema_id is None
    assert versions(history)[0].rows == 3


def test_an_unknown_version_is_not_found() -> None:
    history = log([], [ours(20, 2, "upsert"), ours(21, 5, "upsert")])

    for at in (1, 3, 6, -1):
        with pytest.raises(NotFound, match=rf"db\.t has no version {at}; it goes from 2 to 5"):
            plan_view(history, at)
    with pytest.raises(NotFound, match="no commits yet"):
        plan_view(log([], []), 3)


def test_the_number_of_a_compaction_stands_for_the_version_before_it() -> None:
    """Found by a job that read the version before the one that it was told of."""
    line = [ours(20, 2, "upsert"), ours(21, 3, "minor"), ours(22, 4, "trim"), ours(23, 6, "upsert")]
    history = log([], line)

    assert [plan_view(history, at).version for at in (2, 3, 4, 6)] == [2, 2, 2, 6]
    assert plan_view(history, 4).change_snapshot_id == 20
    with pytest.raises(NotFound, match="has no version 5"):
        plan_view(history, 5)
    with pytest.raises(NotFound, match="has no version 3"):
        plan_view(log([], line[1:]), 3)


def test_a_table_without_a_key_counts_its_base_snapshots() -> None:
    history = log([ours(10, 1, "insert"), foreign(11, 2), compacted(12, 3, 2, 0)], None)

    assert [(v.version, v.kind) for v in versions(history)] == [
        (1, "insert"),
        (2, "foreign append"),
    ]
    assert plan_view(history).base_snapshot_id == 12
    assert plan_view(history).version == 2
    assert plan_view(history, 1).base_snapshot_id == 10
    assert plan_view(history, 3).base_snapshot_id == 11
    assert plan_view(history).base_versions[11] == 2


def test_a_foreign_write_into_the_change_table_stops_everything() -> None:
    history = log([], [ours(20, 1, "upsert"), foreign(21, 2)])

    with pytest.raises(CorruptData, match=r"db\.t: snapshot 21 of its change table.*verify"):
        plan_view(history)


def test_a_foreign_dynamic_overwrite_of_a_mixed_tree_stops_everything() -> None:
    """It replaces files of one depth only, so old rows stand beside new ones."""
    bad = replace(foreign(11, 2, "overwrite"), mixed_before=True)

    with pytest.raises(
        CorruptData, match=r"db\.t: base snapshot 11 is a dynamic INSERT OVERWRITE.*overwrite\(\)"
    ):
        plan_view(log([ours(10, 1, "insert"), bad], [marker(20, 1, 10)]))


def test_a_moment_finds_the_newest_version_at_or_before_it() -> None:
    """INC-08, INC-09."""
    known = versions(log([], [ours(20, 1, "upsert"), ours(21, 3, "upsert")]))

    def at(moment: int) -> int:
        return version_at(known, moment, table="db.t", asked=str(moment))

    assert (at(1000), at(2999), at(3000), at(9999)) == (1, 1, 3, 3)
    with pytest.raises(NotFound, match=r"db\.t.*before 999"):
        at(999)


def test_only_one_point_in_time_may_be_named() -> None:
    check_one_of("db.t", version=None, tag="x")
    with pytest.raises(InvalidRequest, match="only one of version and tag"):
        check_one_of("db.t", version=1, tag="x")
