"""What a read opens, resolves and leaves out: a pure decision on file entries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.conversions import to_bytes
from pyiceberg.expressions import AlwaysFalse, AlwaysTrue, And, BooleanExpression, Or
from pyiceberg.expressions.parser import parse
from pyiceberg.manifest import DataFile
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.transforms import BucketTransform, MonthTransform
from pyiceberg.typedef import Record
from pyiceberg.types import LongType

from arcticlake import Lake
from arcticlake.commit.history import View
from arcticlake.errors import InvalidRequest
from arcticlake.read.plan import (
    Pruning,
    ReadMode,
    ScanPlan,
    only_on,
    parse_mode,
    plan_scan,
    ranges_meet,
)
from arcticlake.table.ddl import schema_from_ddl
from arcticlake.table.spec import TableSpec, plan_table
from arcticlake.table.watermark import Watermark
from arcticlake.tree.files import FileEntry, Role, TableFiles
from arcticlake.tree.node import Node
from tests.tree.strategies import file_in, parse_node
from tests.verbs.shop import base_of, orders, rows, statuses

SPEC = plan_table(
    "db.t",
    schema_from_ddl("id bigint, v bigint, day date"),
    primary_key=["id"],
    partition_by=[],
    sort_by=[],
    bucket_by=None,
    options={},
)
VIEW = View(9, 1, 2, Watermark(), {}, {}, None)


def file(
    name: str,
    node: str,
    keys: tuple[int, int],
    values: tuple[int, int] = (0, 100),
    *,
    sequence: int = 5,
    partition: tuple[object, ...] = (),
) -> FileEntry:
    """Describe a file; the first letter of its name tells its role."""
    role = Role.BASE if name.startswith("b") else Role.CHANGE
    place = parse_node(node)
    entry = file_in(place, partition, role=role, path=name, keys=keys, sequence=sequence)
    bounds = {1: keys, 2: values}
    data_file = DataFile.from_args(
        record_count=10,
        value_counts={1: 10, 2: 10},
        null_value_counts={1: 0, 2: 0},
        nan_value_counts={},
        lower_bounds={number: to_bytes(LongType(), low) for number, (low, _) in bounds.items()},
        upper_bounds={number: to_bytes(LongType(), high) for number, (_, high) in bounds.items()},
        partition=Record(place.index),
    )
    data_file.spec_id = place.depth
    return replace(entry, data_file=data_file)


BUCKETS: Mapping[tuple[Role, int], PartitionSpec] = {
    (role, depth): PartitionSpec(
        PartitionField(1, 1000 + depth, BucketTransform(2**depth), f"id_bucket_{2**depth}")
    )
    for role in Role
    for depth in range(4)
}


def plan(
    *files: FileEntry,
    mode: ReadMode = ReadMode.MERGED,
    where: BooleanExpression | None = None,
    view: View = VIEW,
    spec: TableSpec = SPEC,
) -> ScanPlan:
    pruning = None
    if where is not None:
        on_key = only_on(where, frozenset(spec.key))
        pruning = Pruning(spec.schema, whole=where, on_key=on_key, specs=BUCKETS)
    bases = tuple(f for f in files if f.role is Role.BASE)
    changes = tuple(f for f in files if f.role is Role.CHANGE)
    return plan_scan(spec, view, TableFiles(bases, changes), mode=mode, pruning=pruning)


def paths(files: tuple[FileEntry, ...]) -> str:
    return " ".join(sorted(file.path for file in files))


def test_files_of_leaves_without_changes_pass_through() -> None:
    found = plan(file("b0", "3/0", (1, 9)), file("b1", "3/1", (1, 9)), file("c1", "3/1", (5, 5)))

    assert [(paths(g.bases), paths(g.changes)) for g in found.groups] == [("b1", "c1")]
    assert (paths(found.bases), paths(found.changes)) == ("b0 b1", "c1")
    assert found.resolved_paths == {"b1", "c1"}


def test_a_base_file_whose_keys_no_change_meets_passes_through() -> None:
    """IDX-12: the ranges of level two prune the resolution."""
    found = plan(file("b0", "3/0", (1, 9)), file("b1", "3/0", (10, 19)), file("c", "3/0", (15, 30)))

    assert [(paths(g.bases), paths(g.changes)) for g in found.groups] == [("b1", "c")]


def test_lineal_files_are_resolved_together_and_partitions_apart() -> None:
    """IDX-08."""
    found = plan(
        file("b0", "3/1", (1, 9)),
        file("c0", "7/1", (1, 9)),
        file("c1", "7/5", (1, 9)),
        file("c2", "3/1", (1, 9), partition=("p",)),
    )

    assert sorted((paths(g.bases), paths(g.changes)) for g in found.groups) == [
        ("", "c2"),
        ("b0", "c0 c1"),
    ]


def test_merged_changes_are_left_out_by_the_watermark_of_their_subtree() -> None:
    view = replace(VIEW, watermark=Watermark(3, {((), 3, 1): 6}))

    found = plan(
        file("c0", "3/0", (1, 9), sequence=3),
        file("c1", "3/0", (1, 9), sequence=4),
        file("c2", "3/1", (1, 9), sequence=6),
        file("c3", "7/5", (1, 9), sequence=6),
        file("c4", "7/5", (1, 9), sequence=7),
        view=view,
    )

    assert paths(found.changes) == "c1 c4"


def test_each_mode_plans_what_it_shows() -> None:
    files = (file("b0", "3/0", (1, 9)), file("c0", "3/0", (1, 9)))

    base = plan(*files, mode=ReadMode.BASE)
    unmerged = plan(*files, mode=ReadMode.UNMERGED)

    assert (base.groups, paths(base.bases), base.changes) == ((), "b0", ())
    assert (unmerged.groups, paths(unmerged.changes)) == ((), "c0")
    assert base.files_total == unmerged.files_total == 2


def test_a_condition_on_the_key_drops_files_of_both_tables() -> None:
    found = plan(
        file("b0", "3/0", (1, 9)),
        file("b1", "3/0", (10, 19)),
        file("c0", "3/0", (1, 9)),
        file("c1", "3/0", (50, 60)),
        where=parse("id < 10"),
    )

    assert (paths(found.bases), paths(found.changes)) == ("b0", "c0")
    assert [(paths(g.bases), paths(g.changes)) for g in found.groups] == [("b0", "c0")]
    assert found.files_total == 4


def test_a_key_value_drops_all_other_nodes_at_every_depth() -> None:
    """IDX-11: by the bucket value of the partition, whatever the bounds say."""
    bucket = BucketTransform(8).transform(LongType())(44)
    assert bucket is not None
    home = [Node(mask, bucket & mask) for mask in (1, 3, 7)]
    files = [
        file(f"b{mask}-{index}", f"{mask}/{index}", (0, 999))
        for mask in (1, 3, 7)
        for index in range(mask + 1)
    ]

    found = plan(*files, where=parse("id = 44"))

    assert {f.node for f in found.bases} == set(home)


def test_a_condition_on_a_value_never_sinks_below_the_resolution() -> None:
    """A change file without matching values is not scanned, but still hides older rows."""
    found = plan(
        file("b0", "3/0", (1, 9), values=(0, 10)),
        file("b1", "3/0", (1, 9), values=(90, 99)),
        file("c0", "3/0", (1, 9), values=(90, 99)),
        file("c1", "3/0", (1, 9), values=(0, 10)),
        where=parse("v < 50"),
    )

    assert (paths(found.bases), paths(found.changes)) == ("b0", "c1")
    assert [(paths(g.bases), paths(g.changes)) for g in found.groups] == [("b0", "c0 c1")]


def test_a_batch_that_is_newer_than_a_change_takes_part_though_it_is_not_scanned() -> None:
    view = replace(VIEW, base_sequences={1: 6})

    found = plan(
        file("b0", "3/0", (1, 9), values=(90, 99)),
        file("c0", "3/0", (1, 9), values=(0, 10)),
        where=parse("v < 50"),
        view=view,
    )

    assert (paths(found.bases), paths(found.changes)) == ("", "c0")
    assert [(paths(g.bases), paths(g.changes)) for g in found.groups] == [("b0", "c0")]


def test_groups_that_decide_about_no_scanned_file_are_not_resolved() -> None:
    found = plan(
        file("b0", "3/0", (1, 9), values=(90, 99)),
        file("c0", "3/0", (1, 9), values=(90, 99)),
        where=parse("v < 50"),
    )

    assert (found.groups, found.bases, found.changes) == ((), (), ())


def test_the_last_day_of_the_calendar_prunes_nothing_and_breaks_nothing() -> None:
    month = PartitionSpec(PartitionField(3, 1000, MonthTransform(), "day_month"))
    where = parse("day > '9999-12-31'")
    pruning = Pruning(SPEC.schema, whole=where, on_key=AlwaysTrue(), specs={(Role.BASE, 2): month})

    found = plan_scan(
        SPEC,
        VIEW,
        TableFiles((file("b0", "3/0", (1, 9)),), ()),
        mode=ReadMode.MERGED,
        pruning=pruning,
    )

    assert paths(found.bases) == "b0"


def test_ranges_meet_unless_one_column_says_no() -> None:
    def entry(low: tuple[object, ...], high: tuple[object, ...]) -> FileEntry:
        return replace(file("b", "0/0", (0, 0)), key_lower=low, key_upper=high)

    two = entry((1, "b"), (5, "d"))
    assert ranges_meet(two, entry((5, "d"), (9, "z")))
    assert not ranges_meet(two, entry((6, "b"), (9, "z")))
    assert not ranges_meet(two, entry((1, "e"), (9, "z")))
    assert ranges_meet(two, entry((None, "d"), (None, "z")))


def test_what_a_condition_says_of_some_columns_is_never_stronger() -> None:
    key = frozenset({"id"})
    mine, other = parse("id = 1"), parse("v = 1")

    assert only_on(And(mine, other), key) == mine
    assert only_on(Or(mine, other), key) == AlwaysTrue()
    assert only_on(Or(mine, And(other, mine)), key) == Or(mine, mine)
    assert only_on(other, key) == AlwaysTrue()
    assert only_on(AlwaysFalse(), key) == AlwaysFalse()


def test_an_unknown_mode_is_refused_with_those_there_are() -> None:
    assert parse_mode("base", table="db.t") is ReadMode.BASE
    with pytest.raises(InvalidRequest, match=r"db\.t.*'fast'; use merged, base or unmerged"):
        parse_mode("fast", table="db.t")


def test_a_row_that_another_engine_appended_hides_an_older_change_in_every_filter(
    warehouse: Path,
) -> None:
    """A foreign append is the newest version of its key; a filter must not revive the older."""
    lake = Lake.open(str(warehouse))
    table = orders(lake)
    table.upsert(rows([1, 2], "open"))
    base = base_of(table)
    base.append(rows([1], "done").cast(base.schema().as_arrow()))

    assert statuses(table) == {1: "done", 2: "open"}
    assert statuses(table, where="status = 'open'") == {2: "open"}
    assert statuses(table, where="status = 'done'") == {1: "done"}
    table.upsert(rows([3], "open"))
    assert statuses(table, where="status = 'open'") == {2: "open", 3: "open"}
    table.upsert(rows([1], "again"))
    assert statuses(table) == {1: "again", 2: "open", 3: "open"}
    assert isinstance(lake.catalog, SqlCatalog)
    lake.catalog.close()
