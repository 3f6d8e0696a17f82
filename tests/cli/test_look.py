"""Looking at a table in the terminal: every verb as text and as JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from arcticlake.cli.look import PROBLEMS_FOUND
from tests.cli.conftest import Arctic


@pytest.mark.parametrize("verb", ["describe", "tree", "files", "history", "verify"])
def test_every_look_has_a_text_and_a_json_form(orders: Arctic, verb: str) -> None:
    text, data = orders(verb, "shop.orders"), orders(verb, "shop.orders", "--output", "json")

    assert (text.code, data.code) == (0, 0)
    assert text.out.strip()
    assert data.json


def test_history_shows_the_newest_versions_first(orders: Arctic) -> None:
    orders("delete", "shop.orders", "--where", "order_id = 1")

    entries = orders("history", "shop.orders", "--output", "json", "--limit", "1").json
    assert isinstance(entries, list)
    assert [(entry["version"], entry["kind"]) for entry in entries] == [(2, "delete")]


def test_a_broken_file_is_exit_code_three(orders: Arctic, tmp_path: Path) -> None:
    victim = next((tmp_path / "lake").rglob("*.parquet"))
    victim.write_bytes(victim.read_bytes()[:-50])

    answer = orders("verify", "shop.orders")

    assert answer.code == PROBLEMS_FOUND
    assert "problem" in answer.out


def test_a_tag_names_a_version_for_reads(orders: Arctic) -> None:
    tagged = orders("tag", "shop.orders", "eod")
    orders("delete", "shop.orders", "--where", "true")

    assert tagged.out == "tag eod names version 1\n"
    assert orders("tag", "shop.orders", "--output", "json").json == {"eod": 1}
    assert orders("read", "shop.orders").out == ""
    assert len(orders("read", "shop.orders", "--tag", "eod").out.splitlines()) == 3
    assert orders("tag", "shop.orders", "eod", "--drop").code == 0
    assert orders("read", "shop.orders", "--tag", "eod").code == 1
