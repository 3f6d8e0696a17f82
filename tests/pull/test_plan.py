"""What a pull scans and resolves of the files of its range."""

from __future__ import annotations

import pytest

from arcticlake.pull.plan import plan_pull
from arcticlake.pull.range import PullMode
from arcticlake.pull.steps import Step, Steps, Told
from arcticlake.resolve.kernel import Keep
from arcticlake.table.ddl import schema_from_ddl
from arcticlake.table.spec import TableSpec, plan_table
from arcticlake.tree.files import Role
from arcticlake.tree.node import Node
from tests.pull.lab import file

RAW, NET, BASE = PullMode.RAW, PullMode.NET, PullMode.BASE


def table(key: tuple[str, ...] = ("id",), partition: tuple[str, ...] = ()) -> TableSpec:
    return plan_table(
        "a.b",
        schema_from_ddl("id bigint, day string, text string"),
        primary_key=key,
        partition_by=partition,
        sort_by=(),
        bucket_by=None,
        options={},
    )


def step(version: int, role: Role = Role.CHANGE, told: Told = Told.ROWS) -> Step:
    return Step(version, version * 1000, role, version, (0, version), told)


ADDED = {
    1: [file("b.parquet", 1, role=Role.BASE, node=Node(1, 0))],
    2: [file("c.parquet", 2, node=Node(1, 0)), file("d.parquet", 2, node=Node(1, 1))],
}
STEPS = Steps((step(1, Role.BASE), step(2)))


def test_raw_scans_every_file_and_resolves_nothing() -> None:
    plan = plan_pull(table(), RAW, STEPS, ADDED, None)

    assert [(p.file.path, p.version, p.timestamp_ms) for p in plan.files] == [
        ("b.parquet", 1, 1000),
        ("c.parquet", 2, 2000),
        ("d.parquet", 2, 2000),
    ]
    assert plan.groups == ()
    assert (plan.bytes, plan.rows_to_resolve) == (30, 0)
    assert not plan.one_of_key


def test_net_resolves_lineal_files_together_and_batches_are_changes() -> None:
    plan = plan_pull(table(), NET, STEPS, ADDED, None)

    groups = [sorted(f.path for f in group.changes) for group in plan.groups]
    assert sorted(groups) == [["b.parquet", "c.parquet"], ["d.parquet"]]
    assert {group.keep for group in plan.groups} == {Keep.NEWEST}
    assert plan.ranks == {"b.parquet": 1, "c.parquet": 2, "d.parquet": 2}
    assert plan.one_of_key
    assert not plan.chosen_again


def test_a_single_file_of_a_batch_needs_no_resolution() -> None:
    plan = plan_pull(table(), NET, Steps((step(1, Role.BASE),)), ADDED, None)

    assert plan.groups == ()
    assert len(plan.files) == 1


def test_a_table_without_a_key_shows_all_rows_in_every_mode() -> None:
    for mode in PullMode:
        plan = plan_pull(table(key=()), mode, Steps((step(1, Role.BASE),)), ADDED, None)
        assert (plan.one_of_key, plan.groups, len(plan.files)) == (False, (), 1)


def test_an_overwrite_is_told_and_its_files_are_scanned() -> None:
    told = step(1, Role.BASE, Told.OVERWRITE)

    plan = plan_pull(table(), RAW, Steps((told,)), ADDED, None)

    assert plan.overwrites == (told,)
    assert [p.file.path for p in plan.files] == ["b.parquet"]


def test_a_difference_has_no_files_and_its_rows_have_a_rank() -> None:
    compared = step(1, Role.BASE, Told.DIFFERENCE)

    plan = plan_pull(table(), NET, Steps((compared, step(2))), ADDED, None)

    assert plan.differences == ((compared, 1),)
    assert [p.file.path for p in plan.files] == ["c.parquet", "d.parquet"]
    assert plan.chosen_again


@pytest.mark.parametrize(("key", "again"), [(("id",), True), (("id", "day"), False)])
def test_the_newest_is_chosen_again_where_a_key_may_move(key: tuple[str, ...], again: bool) -> None:
    steps = Steps((step(2),))
    files = {2: [file("c.parquet", 2, partition=("mon",))]}

    assert plan_pull(table(key, ("day",)), NET, steps, files, None).chosen_again is again
    assert not plan_pull(table(key, ("day",)), RAW, steps, files, None).chosen_again
