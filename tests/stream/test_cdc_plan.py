"""Select lists drawn from a spec: what is split, what is refused, what is told beside a row."""

from __future__ import annotations

import pytest

from arcticlake.stream.cdc_format import ChangeRequest, format_named
from arcticlake.stream.cdc_plan import (
    NOTES,
    UNAVAILABLE,
    cell_type,
    change_columns,
    image_columns,
    judged_columns,
    plain_columns,
    value_columns,
)
from arcticlake.table.change import HIDDEN_COLUMNS
from arcticlake.table.ddl import schema_from_ddl
from arcticlake.table.spec import TableSpec, plan_table

REQUEST = ChangeRequest("debezium-json")


def spec_of(ddl: str = "id bigint, day string, v string", *partition: str) -> TableSpec:
    return plan_table(
        "db.t",
        schema_from_ddl(ddl),
        primary_key=["id"],
        partition_by=partition,
        sort_by=(),
        bucket_by=None,
        options={},
    )


def test_an_update_moves_when_its_key_or_its_partition_changes() -> None:
    """KUP-01, KUP-03: a NULL in the old image tells nothing."""
    moved = judged_columns(spec_of("id bigint, day string, v string", "day"), REQUEST)[-1]

    assert "(w0 IS NOT NULL AND NOT w0 <=> v0)" in moved
    assert "(w1 IS NOT NULL AND NOT w1 <=> v1)" in moved
    assert "w2" not in moved
    assert "w1" not in judged_columns(spec_of(), REQUEST)[-1]


def test_what_takes_a_row_away_stands_before_what_puts_one_there() -> None:
    """KUP-04: one position has two places."""
    rows = change_columns(spec_of(), REQUEST)[0][-1]

    assert "'o', try_multiply(2L, place)," in rows
    assert "'o', try_add(try_multiply(2L, place), 1L)," in rows


def test_change_rows_end_with_hidden_columns_and_notes() -> None:
    last = change_columns(spec_of(), REQUEST)[-1]
    names = [column.rpartition(" AS ")[2] for column in last]

    assert names == ["`id`", "`day`", "`v`", *HIDDEN_COLUMNS, *NOTES.names]


def test_an_old_partition_is_known_when_the_key_decides_it() -> None:
    free = change_columns(spec_of(), REQUEST)[0][-1]
    bound = change_columns(spec_of("id bigint, day string, v string", "day"), REQUEST)[0][-1]

    assert "coalesce(true, false)" in free
    assert "has_old AND w1 IS NOT NULL" in bound


@pytest.mark.parametrize(
    ("ddl", "cell"), [("id int, a decimal(5,1)", "variant"), ("id int", "string")]
)
def test_decimals_are_parsed_with_every_digit(ddl: str, cell: str) -> None:
    assert cell_type(spec_of(ddl)) == cell


def test_only_a_format_with_a_schema_part_decodes_decimals() -> None:
    spec = spec_of("id bigint, a decimal(5,1)")

    assert "base64" in str(value_columns(spec, format_named("debezium-json"), None))
    assert "base64" not in str(value_columns(spec, format_named("canal-json"), None))


def test_a_value_that_an_update_left_alone_is_taken_from_the_old_image() -> None:
    lists = value_columns(spec_of(), format_named("debezium-json"), None)

    assert any(UNAVAILABLE in text and text.endswith(" AS n2") for text in lists[0])
    assert UNAVAILABLE not in str(value_columns(spec_of(), format_named("maxwell-json"), None))


def test_a_column_is_looked_for_where_the_table_has_it_first() -> None:
    texts = image_columns(spec_of(), format_named("debezium-json"))[-1]

    new = next(text for text in texts if text.endswith(" AS n2"))
    assert new.startswith("if(get(nn, 2) = 'v', get(nt, 2), ")


def test_an_old_image_of_changed_columns_is_laid_over_the_new_one() -> None:
    texts = image_columns(spec_of(), format_named("maxwell-json"))[-1]

    old = next(text for text in texts if text.endswith(" AS o2"))
    assert "get(ot, " in old and "get(nt, " in old


def test_plain_rows_name_the_columns_that_the_table_lacks() -> None:
    request = ChangeRequest("rows", order_by="lsn", action="op")
    frame = ["id", "day", "v", "note", "OP", "lsn"]
    first, last = plain_columns(spec_of(), {"id": "id", "day": "day", "v": "v"}, request, frame)

    assert "CAST(array('note') AS array<string>) AS extra" in first
    assert "v0 AS w0" in last
