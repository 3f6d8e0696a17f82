"""The formats as values: which there are, and what a request must say."""

from __future__ import annotations

import pytest

from arcticlake.errors import InvalidRequest
from arcticlake.stream.cdc_format import (
    ACTIONS,
    CANAL,
    DEBEZIUM,
    MAXWELL,
    NAMES,
    SUB_ORDER,
    ChangeRequest,
    action_column,
    format_named,
    message_columns,
)


def test_every_format_has_one_name() -> None:
    assert NAMES == (DEBEZIUM, CANAL, MAXWELL, "rows")


@pytest.mark.parametrize("name", [DEBEZIUM, CANAL, MAXWELL])
@pytest.mark.parametrize("cell", ["string", "variant"])
def test_every_format_ends_in_the_same_columns(name: str, cell: str) -> None:
    *_, last = message_columns(format_named(name), ordered=True, cell=cell)

    ends = [column.rpartition(" AS ")[2] for column in last]
    assert ends[:7] == ["raw", "broken", "position", "place", "op", "older", "newer"]
    assert not any("{cell}" in column for column in last)


def test_order_by_goes_before_the_position_of_the_source() -> None:
    known = format_named(DEBEZIUM)
    ordered, own = (message_columns(known, ordered=flag)[-1] for flag in (True, False))

    assert "given AS position" in ordered
    position = next(column for column in own if column.endswith(" AS position"))
    assert position.index("['lsn']") < position.index("['file']") < position.index("['scn']")


def test_rows_of_one_canal_message_keep_their_places() -> None:
    last = message_columns(format_named(CANAL), ordered=True)[-1]

    assert f"try_add(try_multiply({SUB_ORDER}L, given), coalesce(nth, 0)) AS place" in last


def test_an_action_column_may_have_any_name() -> None:
    assert "`a``b`" in action_column("a`b")
    assert set(ACTIONS.values()) == {"c", "u", "d", "b"}


@pytest.mark.parametrize(
    ("request_made", "reason"),
    [
        (ChangeRequest("avro"), "is not known; use debezium-json"),
        (ChangeRequest("rows"), "it goes with format 'rows'"),
        (ChangeRequest(CANAL, action="op"), "and only with it"),
        (ChangeRequest(CANAL, time_unit="days"), "use seconds, millis, micros, nanos"),
    ],
)
def test_a_request_that_no_format_understands_is_refused(
    request_made: ChangeRequest, reason: str
) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        request_made.check("db.t")
