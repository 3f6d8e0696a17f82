"""A compaction plan as JSON, with real tables and no Spark."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pyarrow as pa

from arcticlake import Lake, Table
from arcticlake.cli.plan import plan_to_dict


def days(*values: date | None) -> pa.Table:
    ids = pa.array(range(len(values)), pa.int64())
    return pa.table({"day": pa.array(values, pa.date32()), "id": ids})


def log_table(folder: Path) -> Table:
    lake = Lake.open(str(folder))
    return lake.create_table("shop.log", "day date, id bigint", partition_by="month(day)")


def test_partitions_read_as_people_write_them_and_null_stays_null(tmp_path: Path) -> None:
    table = log_table(tmp_path)
    table.insert(days(date(2026, 11, 15), None))

    told = plan_to_dict(table.plan_compaction("full"))

    groups = told["groups"]
    assert isinstance(groups, list)
    assert [group["partition"] for group in groups] == [
        {"day_month": None},
        {"day_month": "2026-11"},
    ]
    assert json.loads(json.dumps(told)) == told


def test_a_group_tells_what_is_read_what_is_written_and_what_stays(tmp_path: Path) -> None:
    """CMP-10, PAC-08: base and change files are counted apart."""
    lake = Lake.open(str(tmp_path))
    table = lake.create_table(
        "shop.orders", "id bigint, v string", primary_key="id", options={"initial-nodes": 1}
    )
    rows = pa.table({"id": pa.array(range(10), pa.int64()), "v": ["x"] * 10})
    table.insert(rows)
    table.upsert(rows.slice(0, 3))

    plan = table.plan_compaction("major")
    told = plan_to_dict(plan)

    assert (told["table"], told["kind"], told["version"]) == ("shop.orders", "major", 2)
    assert (told["empty"], told["tasks"]) == (False, 1)
    groups = told["groups"]
    assert isinstance(groups, list)
    (group,) = groups
    assert (group["node"], group["mask"], group["index"]) == ("0/0", 0, 0)
    assert (group["work"], group["pieces"], group["partition"]) == ("major", 1, {})
    assert group["reason"] == plan.groups[0].reason
    assert {name: group["reads"][name] for name in ("base_files", "change_files", "rows")} == {
        "base_files": 1,
        "change_files": 1,
        "rows": 13,
    }
    assert group["writes"]["files"] == 1
    assert group["stays"]["files"] == 0
    assert group["events"] == []


def test_a_plan_without_work_says_why(tmp_path: Path) -> None:
    table = log_table(tmp_path)
    table.insert(days(date(2026, 11, 15)))

    told = plan_to_dict(table.plan_compaction("auto"))

    assert (told["empty"], told["tasks"], told["seconds"]) == (True, 0, 0)
    groups = told["groups"]
    assert isinstance(groups, list)
    assert (groups[0]["work"], groups[0]["reads"]["files"], groups[0]["stays"]["files"]) == (
        "keep",
        0,
        1,
    )
    assert groups[0]["reason"]
