"""Compaction in the terminal: the plan, the work, and what it says when others were faster."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import CommitTableResponse
from pyiceberg.table import Table as IcebergTable

from arcticlake import Lake
from arcticlake.cli.compact import compact
from arcticlake.cli.main import VERBS
from arcticlake.errors import Conflict
from tests.cli.conftest import Arctic


@pytest.fixture
def changed(orders: Arctic) -> Arctic:
    """The command, with changes in two commits."""
    assert orders("delete", "shop.orders", "--where", "order_id = 1").code == 0
    return orders


def test_compact_is_a_verb_of_the_command() -> None:
    assert VERBS["compact"] is compact


def test_a_compaction_prints_its_numbers_and_the_table_reads_the_same(changed: Arctic) -> None:
    """CMP-02, CMP-03."""
    before = changed("read", "shop.orders").out

    answer = changed("compact", "shop.orders", "--kind", "major")

    assert answer.code == 0
    assert answer.out.startswith("table shop.orders: major compaction up to version 2, ")
    assert changed("read", "shop.orders").out == before
    assert changed("read", "shop.orders", "--mode", "base").out == before
    assert changed("verify", "shop.orders").code == 0
    again = changed("compact", "shop.orders", "--kind", "major")
    assert (again.code, again.out) == (0, "table shop.orders: nothing to do\n")


def test_the_numbers_are_there_as_json(changed: Arctic) -> None:
    done = changed("compact", "shop.orders", "--kind", "full", "--output", "json").json

    assert isinstance(done, dict)
    assert (done["kind"], done["version"], done["rows_written"]) == ("full", 2, 1)
    assert (done["events"], done["skipped"]) == ([], [])


def test_a_dry_run_shows_the_plan_and_does_nothing(changed: Arctic) -> None:
    files = changed("files", "shop.orders").out

    text = changed("compact", "shop.orders", "--kind", "major", "--dry-run")

    assert text.code == 0
    assert text.out.startswith("shop.orders: major compaction up to version 2, ")
    assert changed("files", "shop.orders").out == files
    assert '"compaction": {' not in changed("history", "shop.orders", "--output", "json").out


def test_a_dry_run_as_json_has_every_group_with_its_reason(changed: Arctic) -> None:
    asked = ("compact", "shop.orders", "--kind", "major", "--dry-run", "--output", "json")

    plan = changed(*asked).json

    assert isinstance(plan, dict)
    assert (plan["kind"], plan["version"], plan["empty"]) == ("major", 2, False)
    assert plan["tasks"] >= 1
    assert plan["seconds"] > 0
    groups = plan["groups"]
    assert {group["work"] for group in groups} == {"major"}
    assert all(group["reason"] for group in groups)
    assert sum(group["reads"]["change_files"] for group in groups) == 2
    assert changed(*asked).json == plan  # the same state, the same plan


def test_changes_are_merged_up_to_a_version(changed: Arctic) -> None:
    """CMP-07."""
    answer = changed("compact", "shop.orders", "--kind", "major", "--to-version", "1")

    assert answer.code == 0
    assert len(changed("read", "shop.orders", "--mode", "base").out.splitlines()) == 3
    assert len(changed("read", "shop.orders").out.splitlines()) == 2


def test_only_the_partitions_that_were_asked_for_are_rewritten(
    arctic: Arctic, tmp_path: Path
) -> None:
    rows = '{"day": "mon", "id": 1}\n{"day": "tue", "id": 1}\n'
    (tmp_path / "days.jsonl").write_text(rows, encoding="utf-8")
    arctic(
        *("create", "shop.days", "--schema", "day string, id bigint"),
        *("--key", "day,id", "--partition", "day"),
    )
    arctic("upsert", "shop.days", "days.jsonl")

    plan = arctic(
        *("compact", "shop.days", "--kind", "major", "--where", "day = 'mon'"),
        *("--dry-run", "--output", "json"),
    ).json

    assert isinstance(plan, dict)
    assert [group["partition"] for group in plan["groups"]] == [{"day": "mon"}]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (("--kind", "huge"), "'huge'; use auto, minor, major or full"),
        (("--kind", "huge", "--dry-run"), "unknown kind of compaction"),
        (("--kind", "minor", "--to-version", "1"), "to_version goes with kind major or full"),
        (("--kind", "major", "--to-version", "77"), "has no version 77"),
        (("--kind", "major", "--where", "nothing = 1"), "nothing"),
    ],
)
def test_wrong_use_is_exit_code_two(changed: Arctic, wrong: tuple[str, ...], told: str) -> None:
    answer = changed("compact", "shop.orders", *wrong)

    assert (answer.code, answer.out) == (2, "")
    assert told in answer.err


def test_the_history_shows_a_compaction_with_its_numbers_below(changed: Arctic) -> None:
    """CMP-22."""
    changed("compact", "shop.orders", "--kind", "major")

    lines = changed("history", "shop.orders").out.splitlines()
    entries = changed("history", "shop.orders", "--output", "json").json

    assert lines[1].split()[:2] == ["2", "major"]
    assert lines[2].startswith("    ")
    assert " written, " in lines[2]
    assert [line.split()[:2] for line in lines[3:]] == [["2", "delete"], ["1", "upsert"]]
    assert isinstance(entries, list)
    assert [entry["compaction"] is None for entry in entries] == [False, True, True]
    assert entries[0]["compaction"]["files_removed"] == 2


def test_splits_stand_below_their_compaction_in_the_history(arctic: Arctic, tmp_path: Path) -> None:
    """SPL-07, SPL-10: a leaf that holds too much is split, and the history says so."""
    created = arctic(
        *("create", "shop.big", "--schema", "id bigint, v string", "--key", "id"),
        *("--option", "initial-nodes=1", "--option", "target-file-size=1MB"),
        *("--option", "leaf-size=1MB"),
    )
    assert created.code == 0, created.err
    noise = Random(0)
    rows = pa.table({"id": range(4000), "v": [noise.randbytes(500).hex() for _ in range(4000)]})
    Lake.open(str(tmp_path / "lake")).table("shop.big").upsert(rows)

    done = arctic("compact", "shop.big", "--kind", "major", "--output", "json").json
    lines = arctic("history", "shop.big").out.splitlines()

    assert isinstance(done, dict)
    assert done["events"]
    assert lines[3 : 3 + len(done["events"])] == [f"    {event}" for event in done["events"]]


def test_describe_tells_of_the_last_compaction(changed: Arctic) -> None:
    """CMP-03."""
    changed("compact", "shop.orders", "--kind", "major")

    told = changed("describe", "shop.orders").out

    assert "last compaction" in told
    assert "major, 2 files → " in told


def test_work_that_others_overtook_entirely_is_exit_code_four(
    changed: Arctic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BAT-06, BAT-08: an overwrite beats a compaction, which says so and leaves nothing behind."""
    commit = SqlCatalog.commit_table
    rival = Lake.open(str(tmp_path / "lake")).table("shop.orders")
    beaten: list[str] = []

    def overtake(catalog: SqlCatalog, target: IcebergTable, *rest: object) -> CommitTableResponse:
        if not beaten:
            beaten.append("once")
            rival.overwrite(rival.to_arrow())
        return commit(catalog, target, *rest)  # type: ignore[arg-type]

    changed("compact", "shop.orders", "--kind", "major")
    changed("upsert", "shop.orders", "orders.jsonl")
    monkeypatch.setattr(SqlCatalog, "commit_table", overtake)
    answer = changed("compact", "shop.orders", "--kind", "major", "--output", "json")

    assert answer.code == Conflict.exit_code
    assert isinstance(answer.json, dict)
    assert answer.json["kind"] == "none"
    assert answer.json["skipped"]
    assert changed("verify", "shop.orders").code == 0
