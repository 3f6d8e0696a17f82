from __future__ import annotations

from pathlib import Path

import pytest

from arcticlake import Lake, Table
from arcticlake.commit.history import plan_view
from arcticlake.commit.iceberg_state import load_log
from arcticlake.errors import Conflict, InvalidRequest, NotFound
from arcticlake.inspect.iceberg import check_metadata, commit_tag, drop_tag, load_tags
from arcticlake.inspect.tags import TagPlan, plan_tag
from arcticlake.table.iceberg import TablePair
from tests.inspect.lab import orders


def loaded(table: Table) -> TablePair:
    return table._opened.pair()


def planned(table: Table, name: str, version: int | None = None) -> TagPlan:
    return plan_tag(load_log(loaded(table)), name, version)


def refs(table: Table) -> tuple[set[str], set[str]]:
    pair = loaded(table)
    assert pair.change is not None
    return set(pair.base.refs()), set(pair.change.refs())


def test_a_tag_lies_on_both_tables(table: Table) -> None:
    table.insert(orders([1]))
    commit_tag(loaded(table), planned(table, "eod"))

    assert refs(table) == ({"main", "eod"}, {"main", "eod"})
    assert load_tags(loaded(table)) == {"eod": 1}


def test_a_tag_before_the_first_base_commit_lies_on_the_changes_alone(table: Table) -> None:
    table.upsert(orders([1]))
    commit_tag(loaded(table), planned(table, "eod"))

    assert refs(table) == (set(), {"main", "eod"})


def test_a_tag_that_died_half_way_does_not_exist_and_can_be_made_again(table: Table) -> None:
    table.insert(orders([1]))
    plan = planned(table, "eod")
    assert plan.base_snapshot_id is not None
    loaded(table).base.manage_snapshots().create_tag(plan.base_snapshot_id, "eod").commit()
    assert load_tags(loaded(table)) == {}

    commit_tag(loaded(table), plan)

    assert load_tags(loaded(table)) == {"eod": 1}


def test_a_tag_of_somebody_else_on_base_is_not_moved(table: Table) -> None:
    table.insert(orders([1]))
    first = planned(table, "eod")
    assert first.base_snapshot_id is not None
    loaded(table).base.manage_snapshots().create_tag(first.base_snapshot_id, "eod").commit()
    table.insert(orders([2]))

    with pytest.raises(InvalidRequest, match="base table alone has 'eod'"):
        commit_tag(loaded(table), planned(table, "eod"))

    drop_tag(loaded(table), "eod")
    commit_tag(loaded(table), planned(table, "eod"))
    assert load_tags(loaded(table)) == {"eod": 2}


def test_a_branch_is_no_tag(table: Table) -> None:
    table.upsert(orders([1]))
    pair = loaded(table)
    assert pair.change is not None
    head = pair.change.metadata.current_snapshot_id
    assert head is not None
    pair.change.manage_snapshots().create_branch(head, "side").commit()

    assert load_tags(loaded(table)) == {}
    with pytest.raises(InvalidRequest, match="'side' is a branch"):
        commit_tag(loaded(table), planned(table, "side"))
    with pytest.raises(NotFound, match="no tag 'side'"):
        drop_tag(loaded(table), "side")


def test_a_tag_lands_although_the_table_moved_on(table: Table) -> None:
    table.insert(orders([1]))
    stale, plan = loaded(table), planned(table, "eod")
    table.upsert(orders([2]))

    commit_tag(stale, plan)

    assert load_tags(loaded(table)) == {"eod": 1}


def test_two_makers_of_one_name_do_not_both_win(table: Table) -> None:
    table.insert(orders([1]))
    table.insert(orders([2]))
    stale, older = loaded(table), planned(table, "eod", 1)
    commit_tag(loaded(table), planned(table, "eod", 2))

    with pytest.raises(Conflict, match="somebody else just made tag 'eod'"):
        commit_tag(stale, older)

    assert load_tags(loaded(table)) == {"eod": 2}


def test_broken_manifests_are_told_with_their_path(lake: Lake, table: Table) -> None:
    table.insert(orders([1]))
    table.upsert(orders([2]))
    pair = loaded(table)
    view = plan_view(load_log(pair))
    assert not check_metadata(pair, view).problems

    snapshot = pair.base.current_snapshot()
    assert snapshot is not None
    manifest = snapshot.manifests(pair.base.io)[0].manifest_path
    raw = Path(manifest).read_bytes()
    Path(manifest).write_bytes(raw[:-10])
    found = check_metadata(pair, view)
    assert [problem.path for problem in found.problems] == [manifest]
    assert f"{len(raw) - 10} bytes, the manifest list says {len(raw)}" in found.problems[0].message

    Path(snapshot.manifest_list).unlink()
    assert [p.path for p in check_metadata(pair, view).problems] == [snapshot.manifest_list]
    assert lake.tables() == ["shop.orders"]
