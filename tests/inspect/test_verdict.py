from __future__ import annotations

from arcticlake.inspect.verdict import Findings, Problem, Rule


def test_every_rule_has_its_sentence() -> None:
    assert all(rule.sentence for rule in Rule)


def test_a_verdict_without_problems_is_ok_and_counts_what_it_saw() -> None:
    found, more = Findings(), Findings()
    found.count(Rule.KEYS, 3, "live rows")
    more.count(Rule.KEYS, 4, "live rows")
    more.count(Rule.FILES, 1, "files")
    found.take([more])

    verdict = found.verdict("shop.orders", 7)

    assert verdict.ok
    assert [(check.name, check.count, check.problems) for check in verdict.checks] == [
        ("files", 1, 0),
        ("keys", 7, 0),
    ]
    assert str(verdict).splitlines()[0] == "shop.orders version 7: ok"


def test_problems_are_told_with_rule_message_and_path() -> None:
    found = Findings()
    found.count(Rule.FILES, 2, "files")
    found.add(Rule.FILES, "the file is missing", "a.parquet")
    found.notes.append("look at b")

    verdict = found.verdict("shop.orders", 7)

    assert not verdict.ok
    assert verdict.problems == (Problem("files", "the file is missing", "a.parquet"),)
    assert "  problem  files: the file is missing (a.parquet)" in str(verdict).splitlines()
    assert "  note     look at b" in str(verdict).splitlines()
    told = verdict.to_dict()
    assert told["ok"] is False
    assert told["problems"] == [
        {"check": "files", "message": "the file is missing", "path": "a.parquet"}
    ]
