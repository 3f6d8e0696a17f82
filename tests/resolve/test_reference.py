from __future__ import annotations

from arcticlake.resolve.reference import RowVersion, dead_rows
from arcticlake.table.order import Place


def version(row: int, sequence: int, order: int = 0, *, alive: bool = True) -> RowVersion:
    return RowVersion(("f", row), ("key",), Place(sequence, order), alive)


def test_only_the_newest_version_of_a_key_is_alive_in_any_order_of_arrival() -> None:
    versions = [version(0, 0), version(1, 5), version(2, 3), version(3, 5, 1)]

    assert dead_rows(versions) == {("f", 0), ("f", 1), ("f", 2)}
    assert dead_rows(reversed(versions)) == {("f", 0), ("f", 1), ("f", 2)}


def test_a_newest_version_that_deletes_leaves_nothing_alive() -> None:
    assert dead_rows([version(0, 1), version(1, 2, alive=False)]) == {("f", 0), ("f", 1)}


def test_keys_do_not_touch_one_another() -> None:
    other = RowVersion(("f", 9), ("other",), Place(9, 9), alive=False)

    assert dead_rows([version(0, 1), other]) == {("f", 9)}
    assert dead_rows([]) == set()
