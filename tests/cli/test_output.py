"""Text and JSON: every kind of value has one form in each."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from arcticlake.cli.output import (
    Failure,
    Form,
    Screen,
    cell_text,
    count_text,
    encode,
    plain,
    table_text,
)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (Decimal("1.50"), "1.50"),
        (date(2026, 11, 15), "2026-11-15"),
        (datetime(2026, 11, 15, 12, tzinfo=UTC), "2026-11-15T12:00:00+00:00"),
        (b"\x00\xff", "AP8="),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (1.5, 1.5),
        (True, True),
        ({"a": (Decimal(1), None)}, {"a": ["1", None]}),
    ],
)
def test_every_value_has_a_form_that_json_can_hold(value: object, wanted: object) -> None:
    assert plain(value) == wanted
    json.loads(encode(value))


def test_an_array_has_one_element_a_line() -> None:
    assert encode([{"a": 1}, {"a": 2}]) == '[\n{"a": 1},\n{"a": 2}\n]'
    assert encode([]) == "[]"


def test_a_table_puts_numbers_on_the_right_and_names_nulls() -> None:
    text = table_text(("id", "name"), [(1, "ann"), (20, None)])

    assert text == "id  name\n 1  ann\n20  NULL"


def test_a_table_without_rows_is_no_text() -> None:
    assert table_text(("id",), []) == ""


def test_a_cell_stays_on_one_line_and_cannot_command_the_terminal() -> None:
    assert cell_text("a\nb\t\\") == "a\\nb\\t\\\\"
    assert cell_text("\x1b[2Jé") == "\\x1b[2Jé"
    assert cell_text(["a", Decimal(1)]) == '["a", "1"]'


def test_a_count_knows_its_plural() -> None:
    assert (count_text(1, "row"), count_text(2000, "row")) == ("1 row", "2,000 rows")


def test_results_and_errors_never_share_a_stream(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(Form.JSON)

    screen.show({"a": 1}, "text")
    screen.note("for people")
    screen.fail(Failure("Conflict", "try again", 4))

    told = capsys.readouterr()
    assert json.loads(told.out) == {"a": 1}
    assert json.loads(told.err) == {"error": {"kind": "Conflict", "message": "try again"}}
