"""Which versions a pull takes, and what it says of ends that cannot be."""

from __future__ import annotations

import re

import pytest

from arcticlake.errors import ArcticError, InvalidRequest, NotFound
from arcticlake.pull.range import Moment, PullMode, Range, oldest_since, parse_pull_mode, plan_range
from tests.pull.lab import batch, change, log, marker

LOG = log([batch(1)], [change(1), marker(2, 1), change(3, "minor"), change(4, "delete")])


def at(milliseconds: int) -> Moment:
    return Moment(milliseconds, "that moment")


@pytest.mark.parametrize(
    ("since", "until", "found"),
    [
        (None, None, Range(0, 4)),
        (0, 4, Range(0, 4)),
        (1, 2, Range(1, 2)),
        (4, None, Range(4, 4)),
        (at(1000), at(2500), Range(1, 2)),
        (at(3999), None, Range(2, 4)),
        (None, at(9999), Range(0, 4)),
    ],
)
def test_ends_are_versions_or_moments(since: object, until: object, found: Range) -> None:
    """INC-08, INC-10, INC-11."""
    assert plan_range(LOG, since, until) == found


def test_the_start_is_out_and_the_end_is_in() -> None:
    """INC-12."""
    asked = Range(2, 4)

    assert [version for version in range(6) if asked.holds(version)] == [3, 4]
    assert Range(2, 2).empty
    assert not asked.empty


@pytest.mark.parametrize(
    ("since", "until", "kind", "words"),
    [
        (3, 2, InvalidRequest, "since 3 comes after until 2"),
        (at(4000), 1, InvalidRequest, "since that moment (version 4) comes after until 1"),
        (-1, None, InvalidRequest, "since -1 is below 0"),
        (None, -7, InvalidRequest, "until -7 is below 0"),
        (True, None, InvalidRequest, "since must be a version"),
        (1.0, None, InvalidRequest, "not 1.0; versions go from 0 to 4"),
        (None, 5, NotFound, "no version 5 yet, which until names; the newest is 4"),
        (7, None, NotFound, "no version 7 yet, which since names"),
        (at(999), None, NotFound, "no version at or before that moment, which since names"),
        (None, at(0), NotFound, "the first that is kept is 1, of 1970-01-01T00:00:01+00:00"),
    ],
)
def test_an_end_that_cannot_be_is_told_with_the_known_range(
    since: object, until: object, kind: type[ArcticError], words: str
) -> None:
    """INC-09: a moment before the first version is an error."""
    with pytest.raises(kind, match=re.escape(words)) as caught:
        plan_range(LOG, since, until)
    assert "a.b" in caught.value.message


def test_a_range_that_has_expired_names_the_oldest_version() -> None:
    """INC-36: never an empty answer."""
    kept = log([], [change(4), change(5)])

    assert plan_range(kept, 3, None) == Range(3, 5)
    assert plan_range(kept, 2, 2) == Range(2, 2)
    for since in (None, 0, 2):
        with pytest.raises(NotFound, match="the oldest version to pull from is 3: use since=3"):
            plan_range(kept, since, None)


def test_a_batch_whose_base_snapshot_has_expired_is_out_of_reach() -> None:
    kept = log([batch(2)], [change(1), marker(2, 1), marker(3, 2), change(4)])

    assert oldest_since(kept) == 2
    assert plan_range(kept, 2, None) == Range(2, 4)
    assert plan_range(kept, 0, 1) == Range(0, 1)
    with pytest.raises(NotFound, match="use since=2"):
        plan_range(kept, 1, None)


def test_a_table_without_a_key_counts_its_base_commits() -> None:
    kept = log([batch(3), batch(4)], None)

    assert plan_range(kept, 2, None) == Range(2, 4)
    with pytest.raises(NotFound, match="use since=2"):
        plan_range(kept, 1, None)


def test_a_table_without_commits_has_an_empty_range() -> None:
    assert plan_range(log([], []), None, None) == Range(0, 0)
    with pytest.raises(NotFound, match="it has none yet"):
        plan_range(log([], []), at(5), None)


def test_an_unknown_mode_is_refused_with_the_known_ones() -> None:
    assert parse_pull_mode("net", table="a.b") is PullMode.NET
    with pytest.raises(InvalidRequest, match=r"a\.b: unknown mode 'all'.*raw, net or base"):
        parse_pull_mode("all", table="a.b")
