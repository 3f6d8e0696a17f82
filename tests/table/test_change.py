from __future__ import annotations

from arcticlake.table.change import ACTION, HIDDEN_COLUMNS, ORDER, SEQ, TS, Action


def test_actions_that_keep_a_row_start_with_plus() -> None:
    """KEY-25: +I and +U bring a row, -U and -D end it."""
    assert [str(action) for action in Action] == ["+I", "-U", "+U", "-D"]


def test_the_hidden_columns_stand_in_their_order() -> None:
    assert HIDDEN_COLUMNS == (ACTION, TS, ORDER, SEQ)
