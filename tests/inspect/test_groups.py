from __future__ import annotations

import numpy as np
import polars as pl

from arcticlake.inspect.groups import KeyedFile, check_unit, plan_units
from arcticlake.inspect.verdict import Findings
from arcticlake.tree.files import Role
from arcticlake.tree.node import Node
from tests.inspect.lab import Place, entry


def base(
    path: str, ids: list[int], *, sequence: int = 0, deleted: list[int] | None = None
) -> KeyedFile:
    rows = pl.DataFrame({"id": ids}, schema={"id": pl.Int64})
    positions = None if deleted is None else np.array(deleted, dtype=np.int64)
    return KeyedFile(path, Role.BASE, sequence, rows, positions)


def change(path: str, sequence: int, rows: list[tuple[int, str, int, int | None]]) -> KeyedFile:
    frame = pl.DataFrame(
        rows,
        schema={"id": pl.Int64, "_action": pl.String, "_order": pl.Int64, "_seq": pl.Int64},
        orient="row",
    )
    return KeyedFile(path, Role.CHANGE, sequence, frame)


def check(*groups: list[KeyedFile]) -> tuple[Findings, int]:
    return check_unit(groups, ["id"], oracle=True)


def test_files_that_may_share_a_key_are_one_unit() -> None:
    files = [
        entry("a", Place(Node(1, 0), ("de",))),
        entry("b", Place(Node(3, 2), ("de",))),
        entry("c", Place(Node(1, 0), ("fr",))),
        entry("d", Place(Node(1, 1), ("fr",))),
    ]

    apart = list(plan_units(files, key_decides_partition=True))
    together = list(plan_units(files, key_decides_partition=False))

    assert [[[f.path for f in group] for group in unit.groups] for unit in apart] == [
        [["a", "b"]],
        [["c"]],
        [["d"]],
    ]
    assert [[[f.path for f in group] for group in unit.groups] for unit in together] == [
        [["a", "b"], ["c"]],
        [["d"]],
    ]


def test_changes_over_base_leave_each_key_alive_once() -> None:
    found, alive = check(
        [
            base("b", [1, 2, 3]),
            change("c", 2, [(2, "+U", 0, None), (3, "-D", 1, None), (4, "+I", 2, None)]),
            change("d", 5, [(4, "-D", 0, 3), (5, "+I", 1, 4)]),
        ]
    )

    assert not found.problems
    assert alive == 3


def test_a_key_that_was_deleted_and_inserted_again_is_alive_once() -> None:
    found, alive = check(
        [
            base("a", [1], sequence=1),
            change("c", 2, [(1, "-D", 0, None)]),
            base("b", [1], sequence=3),
        ]
    )

    assert not found.problems
    assert alive == 1


def test_a_key_that_is_twice_in_base_is_found() -> None:
    found, alive = check([base("a", [1, 2]), base("b", [2, 3])])

    assert alive == 4
    assert [problem.check for problem in found.problems] == ["keys"]
    assert "in base: 1 keys, id=2 for one, in a, b" in found.problems[0].message


def test_a_repeated_base_row_under_a_change_is_no_problem() -> None:
    found, alive = check([base("a", [1]), base("b", [1]), change("c", 2, [(1, "+U", 0, None)])])

    assert not found.problems
    assert alive == 1


def test_a_key_alive_in_two_partitions_is_found() -> None:
    found, _ = check([base("a", [1])], [change("c", 2, [(1, "+I", 0, None)])])

    assert "in base and changes: 1 keys, id=1" in found.problems[0].message


def test_rows_that_another_engine_deleted_are_dead() -> None:
    found, alive = check([base("a", [1, 2], deleted=[0]), base("b", [1])])

    assert not found.problems
    assert alive == 2


def test_two_changes_of_one_key_at_one_place_are_found() -> None:
    found, _ = check([change("c", 2, [(1, "+I", 7, None)]), change("d", 3, [(1, "-D", 7, 2)])])

    assert "order" in {problem.check for problem in found.problems}
    assert "id=1 at version 2, order 7" in found.problems[0].message


def test_the_oracle_looks_at_every_row() -> None:
    found, _ = check([base("a", list(range(50))), change("c", 2, [(7, "+U", 0, None)])])

    assert found.counts.total() >= 51
    assert not found.problems
