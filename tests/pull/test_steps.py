"""Which snapshots a pull opens, and how each version is told."""

from __future__ import annotations

import pytest

from arcticlake.commit.history import CHANGE_VERSION, FOREIGN, OVERWROTE, SnapshotFact
from arcticlake.errors import NotFound
from arcticlake.pull.range import PullMode, Range
from arcticlake.pull.steps import Step, Told, plan_steps
from arcticlake.read.plan import ReadMode
from arcticlake.tree.files import Role
from arcticlake.tree.node import Node
from tests.pull.lab import batch, change, file, log, marker, merge

RAW, NET, BASE = PullMode.RAW, PullMode.NET, PullMode.BASE


def overwrites(stands_for: int) -> dict[str, str]:
    return {CHANGE_VERSION: str(stands_for), OVERWROTE: "*"}


def told(steps: tuple[Step, ...]) -> list[tuple[int, str, int, str]]:
    return [(s.version, s.role.value, s.snapshot_id, s.told.value) for s in steps]


@pytest.mark.parametrize("mode", [RAW, NET])
def test_commits_bring_rows_and_compactions_bring_nothing(mode: PullMode) -> None:
    """INC-16, INC-35: commits by arrival, TST-21: batches too."""
    found = log(
        [batch(1), merge(2, 3, 3)],
        [change(1), marker(2, 1), change(3, "minor"), change(4, "trim"), change(5, "delete")],
    )

    steps = plan_steps(found, Range(0, 5), mode, difference=False)

    assert told(steps.steps) == [
        (1, "change", 1, "rows"),
        (2, "base", 101, "rows"),
        (5, "change", 5, "rows"),
    ]
    assert plan_steps(found, Range(2, 2), mode, difference=False).steps == ()
    assert [s.version for s in plan_steps(found, Range(1, 2), mode, difference=False).steps] == [2]


def with_overwrite(stands_for: int, **more: str) -> list[SnapshotFact]:
    return [change(1), change(2), marker(3, 1, "overwrite", **overwrites(stands_for), **more)]


def test_an_overwrite_is_one_row_or_a_difference() -> None:
    found = log([batch(1, "overwrite", through=2)], with_overwrite(2))

    plain = plan_steps(found, Range(2, 3), RAW, difference=False).steps
    (compared,) = plan_steps(found, Range(2, 3), RAW, difference=True).steps

    assert told(plain) == [(3, "base", 101, "overwrite")]
    assert compared.told is Told.DIFFERENCE
    assert compared.before is not None
    assert compared.after is not None
    assert (compared.before.version, compared.after.version) == (2, 3)
    assert compared.reading is ReadMode.MERGED


@pytest.mark.parametrize(
    "changes",
    [
        with_overwrite(1),
        with_overwrite(2, **{FOREIGN: "true"}),
        [change(1), marker(2, 1, "rollback")],
        [change(1), marker(2, 1, "overwrite", **{FOREIGN: "true"})],
    ],
)
def test_what_one_row_cannot_tell_is_always_compared(changes: list[SnapshotFact]) -> None:
    """Changes on top, other engines and rollbacks."""
    found = log([batch(1, "overwrite", through=2)], changes)

    step = plan_steps(found, Range(1, changes[-1].sequence), RAW, difference=False).steps[-1]

    assert step.told is Told.DIFFERENCE


def test_a_difference_whose_state_before_has_expired_says_where_to_go_on() -> None:
    """INC-36."""
    found = log([batch(1, "overwrite", through=2)], with_overwrite(2)[2:])

    assert plan_steps(found, Range(2, 3), RAW, difference=False).steps
    with pytest.raises(NotFound, match="use since=3"):
        plan_steps(found, Range(2, 3), RAW, difference=True)


def test_a_table_without_a_key_tells_of_its_base_commits() -> None:
    found = log([batch(1), merge(2, 0, 0), batch(3, "overwrite"), batch(4)], None)

    for mode in PullMode:
        steps = plan_steps(found, Range(0, 4), mode, difference=False).steps
        assert told(steps) == [
            (1, "base", 101, "rows"),
            (3, "base", 103, "overwrite"),
            (4, "base", 104, "rows"),
        ]


def test_base_takes_what_merges_took_node_by_node() -> None:
    """The first merge took all up to 1, the second only node 1/0 up to 3."""
    found = log(
        [merge(1, 1, 1), merge(2, 3, 1, ahead={0: 3})],
        [change(1), change(2), change(3)],
    )
    left, right = Node(1, 0), Node(1, 1)

    steps = plan_steps(found, Range(1, 3), BASE, difference=False)

    assert [s.version for s in steps.steps] == [2, 3]
    two, three = steps.steps
    assert steps.rank(two, file("a", 2, node=left)) == (0, 2)
    assert steps.rank(three, file("b", 3, node=left)) == (0, 3)
    assert steps.rank(three, file("c", 3, node=right)) is None


def test_base_without_a_merge_between_has_nothing_to_tell() -> None:
    found = log([merge(1, 1, 1)], [change(1), change(2), change(3)])

    assert plan_steps(found, Range(1, 3), BASE, difference=False).steps == ()


def test_an_overwrite_of_base_ranks_above_what_was_merged_before_it() -> None:
    """Change 2 was merged, replaced by an overwrite that stands for 1, and merged again."""
    base = [
        merge(1, 2, 2),
        batch(2, "overwrite", through=1, **overwrites(1)),
    ]
    changes = [change(1), change(2), marker(3, 2, "overwrite", **overwrites(1)), change(4)]
    once = log(base, changes)
    twice = log([*base, merge(3, 4, 4)], changes)

    first = plan_steps(once, Range(0, 3), BASE, difference=False)
    again = plan_steps(twice, Range(0, 4), BASE, difference=False)

    for steps, expected in ((first, (0, 2)), (again, (1, 2))):
        by_version = {step.version: step for step in steps.steps}
        assert steps.rank(by_version[2], file("a", 2)) == expected
        compared = by_version[3]
        assert (compared.rank, compared.told) == ((1, -1), Told.DIFFERENCE)
        assert compared.reading is ReadMode.BASE
        assert compared.before is not None
        assert compared.after is not None
        assert compared.before.base_snapshot_id == 101
        assert compared.after.base_snapshot_id == 102


def test_base_names_the_oldest_version_whose_changes_are_kept() -> None:
    """Version 4 is merged up to 3; what lies between 1 and 4 has expired."""
    found = log([merge(1, 1, 1), merge(2, 4, 4)], [change(4), change(5), change(6)])

    with pytest.raises(NotFound, match="use since=4"):
        plan_steps(found, Range(3, 6), BASE, difference=False)
    assert plan_steps(found, Range(4, 6), BASE, difference=False).steps == ()


def test_rows_of_a_batch_stand_at_its_version() -> None:
    found = log([batch(1)], [marker(1, 1)])

    steps = plan_steps(found, Range(0, 1), BASE, difference=False)

    assert steps.rank(steps.steps[0], file("a", 1, role=Role.BASE)) == (0, 1)
