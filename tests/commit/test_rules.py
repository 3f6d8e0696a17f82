from __future__ import annotations

import pytest

from arcticlake.commit.rules import Action, Group, Kind, Landed, Planned, conflict

P1, P2 = ("2026-11-01",), ("2026-11-02",)
ONE = Group(frozenset({"a", "b"}), frozenset({P1}))
TWO = Group(frozenset({"c"}), frozenset({P2}))
ALL = frozenset({"a", "b", "c"})

CHANGES = Landed(Kind.CHANGES, frozenset({P1}))
INSERT = Landed(Kind.INSERT, frozenset({P1}))
OVERWRITE = Landed(Kind.OVERWRITE, frozenset({P1}))
OVERWRITE_ALL = Landed(Kind.OVERWRITE, None)
ROLLBACK = Landed(Kind.ROLLBACK, None)
COMPACTION = Landed(Kind.COMPACTION, frozenset({P1}))
ROW_DELETES = Landed(Kind.ROW_DELETES, named=frozenset({"c"}))
ROW_DELETES_ANYWHERE = Landed(Kind.ROW_DELETES, named=None)

EVERYTHING = [
    CHANGES,
    INSERT,
    OVERWRITE,
    OVERWRITE_ALL,
    ROLLBACK,
    COMPACTION,
    ROW_DELETES,
    ROW_DELETES_ANYWHERE,
]


@pytest.mark.parametrize("kind", [Kind.CHANGES, Kind.OVERWRITE, Kind.ROLLBACK])
@pytest.mark.parametrize("landed", EVERYTHING)
def test_changes_overwrite_and_rollback_always_commit(kind: Kind, landed: Landed) -> None:
    """BAT-06: batch outranks compaction; change appends conflict with nothing."""
    assert conflict(Planned(kind), [landed]).action is Action.COMMIT
    assert conflict(Planned(kind), None).action is Action.COMMIT


@pytest.mark.parametrize("landed", EVERYTHING)
def test_insert_checks_its_keys_again_when_anything_moved(landed: Landed) -> None:
    assert conflict(Planned(Kind.INSERT), [landed]).action is Action.RECHECK


def test_insert_commits_on_the_state_it_was_checked_on() -> None:
    assert conflict(Planned(Kind.INSERT), []).action is Action.COMMIT
    assert conflict(Planned(Kind.INSERT), None).action is Action.RECHECK


@pytest.mark.parametrize(
    ("since", "live", "kept", "reasons"),
    [
        ([], ALL, (ONE, TWO), []),
        ([CHANGES, INSERT], ALL, (ONE, TWO), []),
        ([OVERWRITE], ALL, (TWO,), ["overwrite replaced"]),
        ([OVERWRITE], ALL - {"a", "b"}, (TWO,), ["2 of 2 input files are gone"]),
        ([OVERWRITE_ALL], ALL, (), ["overwrite replaced", "overwrite replaced"]),
        ([ROLLBACK], ALL, (), ["rollback replaced", "rollback replaced"]),
        ([COMPACTION], ALL - {"a"}, (TWO,), ["1 of 2 input files are gone"]),
        ([COMPACTION], ALL, (ONE, TWO), []),
        ([ROW_DELETES, CHANGES], ALL, (ONE,), ["another engine deleted rows"]),
        ([ROW_DELETES_ANYWHERE], ALL, (), ["another engine", "another engine"]),
        ([CHANGES, OVERWRITE, CHANGES], ALL, (TWO,), ["overwrite replaced"]),
        (None, ALL, (), ["no longer known", "no longer known"]),
    ],
)
def test_compaction_gives_up_the_groups_that_lost_and_commits_the_others(
    since: list[Landed] | None,
    live: frozenset[str],
    kept: tuple[Group, ...],
    reasons: list[str],
) -> None:
    """BAT-07, design §8; also pyiceberg's hole: a row delete followed by one more commit."""
    verdict = conflict(Planned(Kind.COMPACTION, (ONE, TWO)), since, live=live)

    assert verdict.groups == kept
    assert verdict.action is (Action.COMMIT if kept else Action.GIVE_UP)
    for (_, told), expected in zip(verdict.lost, reasons, strict=True):
        assert expected in told


def test_a_compaction_without_groups_has_nothing_to_give_up() -> None:
    assert conflict(Planned(Kind.COMPACTION), [OVERWRITE_ALL]).action is Action.COMMIT


def test_arctic_plans_no_row_deletes() -> None:
    with pytest.raises(AssertionError):
        conflict(Planned(Kind.ROW_DELETES), [])
