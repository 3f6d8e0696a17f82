from __future__ import annotations

import pytest

from arcticlake.errors import InvalidRequest, NotFound
from arcticlake.inspect.tags import Tag, TagPlan, check_tag_name, plan_tag
from tests.inspect.lab import fact, log_of

BASE = [fact(10, "insert", sequence=1), fact(11, "major", sequence=2, arctic__contains="2")]
CHANGE = [
    fact(20, "insert", sequence=1, arctic__base_snapshot="10"),
    fact(21, "upsert", sequence=2),
    fact(22, "drop-merged", sequence=3),
]


@pytest.mark.parametrize("name", ["eod", "2026-11-15", "v1.2_final", "A"])
def test_plain_names_are_fine(name: str) -> None:
    check_tag_name(name, table="shop.orders")


@pytest.mark.parametrize("name", ["", "main", "end of day", "a/b", "ä", None, 7])
def test_other_names_are_refused(name: object) -> None:
    with pytest.raises(InvalidRequest, match=r"shop\.orders: "):
        check_tag_name(name, table="shop.orders")


def test_a_tag_names_the_snapshots_of_its_version() -> None:
    log = log_of(BASE, CHANGE)

    assert plan_tag(log, "eod", None) == TagPlan(Tag("eod", 2), 11, 21)
    assert plan_tag(log, "eod", 1) == TagPlan(Tag("eod", 1), 10, 20)


def test_a_table_without_a_key_is_tagged_on_base_alone() -> None:
    assert plan_tag(log_of([fact(10, "insert", sequence=1)], None), "eod", None) == TagPlan(
        Tag("eod", 1), 10, None
    )


@pytest.mark.parametrize("version", [0, -1, True, "1"])
def test_what_is_no_version_is_refused(version: object) -> None:
    with pytest.raises(InvalidRequest, match=r"a version from history\(\)"):
        plan_tag(log_of(BASE, CHANGE), "eod", version)


def test_a_version_that_does_not_exist_is_not_found() -> None:
    with pytest.raises(NotFound, match="no version 4"):
        plan_tag(log_of(BASE, CHANGE), "eod", 4)


def test_the_number_of_a_compaction_tags_the_version_before_it() -> None:
    assert plan_tag(log_of(BASE, CHANGE), "eod", 3) == TagPlan(Tag("eod", 2), 11, 21)


def test_an_empty_table_has_nothing_to_tag() -> None:
    with pytest.raises(InvalidRequest, match="no commits yet"):
        plan_tag(log_of(), "eod", None)
