"""A rival, a lost answer and a refusal, on a real catalog."""

from __future__ import annotations

import pytest
from pyiceberg.exceptions import CommitFailedException, ForbiddenError
from pyiceberg.table import Table

from arcticlake.commit.iceberg_repeat import repeat_until
from arcticlake.errors import Conflict, InvalidRequest
from tests.commit.lab import FakeClock

NO_CLOCK = FakeClock().clock


def colour(table: Table) -> str | None:
    return table.properties.get("colour")


def paint(table: Table, name: str = "green") -> None:
    with table.transaction() as transaction:
        transaction.set_properties({"colour": name})


def painted(table: Table) -> bool:
    return colour(table) == "green"


def test_what_is_done_already_is_not_done_again(table: Table) -> None:
    paint(table)
    acts: list[Table] = []

    repeat_until(table.refresh(), "painting", done=painted, act=acts.append, clock=NO_CLOCK)

    assert acts == []


def test_a_stale_table_is_loaded_again_after_a_rival(table: Table) -> None:
    paint(table.catalog.load_table(table.name()), "red")
    stood_on: list[str | None] = []

    def act(newest: Table) -> None:
        stood_on.append(colour(newest))
        if len(stood_on) == 1:
            raise CommitFailedException("409")
        paint(newest)

    repeat_until(table, "painting", done=painted, act=act, clock=NO_CLOCK)

    assert stood_on == [None, "red"]
    assert painted(table.refresh())


def test_a_lost_answer_is_looked_at_instead_of_repeated(table: Table) -> None:
    acts: list[Table] = []

    def act(newest: Table) -> None:
        acts.append(newest)
        paint(newest)
        raise ConnectionResetError("connection reset")

    repeat_until(table, "painting", done=painted, act=act, clock=NO_CLOCK)

    assert len(acts) == 1


def test_a_refusal_is_told_at_once(table: Table) -> None:
    acts: list[Table] = []

    def act(newest: Table) -> None:
        acts.append(newest)
        raise ForbiddenError("403")

    with pytest.raises(InvalidRequest, match="painting: the catalog denies it"):
        repeat_until(table, "painting", done=painted, act=act, clock=NO_CLOCK)
    assert len(acts) == 1


def test_rivals_without_end_are_a_conflict_after_longer_and_longer_naps(table: Table) -> None:
    clock = FakeClock()

    def act(_: Table) -> None:
        raise CommitFailedException("409")

    with pytest.raises(Conflict, match=r"painting: others keep changing the table; try again"):
        repeat_until(table, "painting", done=painted, act=act, clock=clock.clock)
    assert clock.naps == sorted(clock.naps)
    assert clock.naps[-1] <= 1, "never longer than a moment"
