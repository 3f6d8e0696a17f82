from __future__ import annotations

from arcticlake.table.order import MERGED_SEQUENCE, UNMARKED_SEQUENCE, Place, newer


def test_the_commit_decides_first_and_the_order_inside_it_second() -> None:
    assert newer(Place(2, -5), Place(1, 9))
    assert newer(Place(2, 1), Place(2, 0))
    assert not newer(Place(2, 0), Place(2, 0))


def test_merged_rows_are_older_and_unmarked_rows_newer_than_every_change() -> None:
    assert newer(Place(1, -(2**63)), Place(MERGED_SEQUENCE, 0))
    assert newer(Place(UNMARKED_SEQUENCE, 0), Place(2**40, 2**62))
