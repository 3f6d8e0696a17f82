"""Texts as typed values: the SQL that is built, and what never gets into it unquoted."""

from __future__ import annotations

import pytest
from pyiceberg.types import IcebergType

from arcticlake.stream.cdc_types import (
    TIME_UNITS,
    Hint,
    cast_text,
    decimal_text,
    name_of,
    quote,
    type_ddl,
    wanted,
)
from arcticlake.table.ddl import schema_from_ddl


def type_of(ddl: str) -> IcebergType:
    return schema_from_ddl(f"c {ddl}").fields[0].field_type


def test_texts_and_names_cannot_leave_their_quotes() -> None:
    assert quote("it's \\ here") == "'it\\'s \\\\ here'"
    assert name_of("a`b") == "`a``b`"


def test_inner_names_of_a_type_are_quoted() -> None:
    kind = type_of("map<string, array<struct<`a b`: decimal(5,1)>>>")

    assert type_ddl(kind) == "map<string,array<struct<`a b`:decimal(5,1)>>>"


def test_whole_numbers_and_doubles_are_only_tried() -> None:
    assert cast_text(type_of("bigint"), "n0") == "try_cast(n0 AS bigint)"
    assert cast_text(type_of("double"), "n0") == "try_cast(n0 AS double)"
    assert cast_text(type_of("string"), "n0") == "n0"


def test_a_number_is_a_moment_only_with_a_unit() -> None:
    """No order or moment is guessed: without a unit a number does not fit."""
    kind = type_of("timestamp")

    assert "array(CAST(NULL AS bigint))" in cast_text(kind, "n0")
    for unit, formula in TIME_UNITS.items():
        assert formula.format("try_cast(n0 AS bigint)") in cast_text(kind, "n0", time_unit=unit)


def test_a_schema_part_tells_unit_and_scale() -> None:
    hint = Hint("k0", "s0")

    moment = cast_text(type_of("timestamp"), "n0", hint=hint)
    assert "WHEN 'io.debezium.time.MicroTimestamp' THEN try_cast(n0 AS bigint)" in moment
    assert "'E-', coalesce(s0, '0')" in decimal_text("n0", hint)


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("timestamp", "a number needs time_unit"),
        ("date", "days since 1970"),
        ("boolean", "true, false, 1 or 0"),
        ("binary", "base64"),
        ("array<int>", "in JSON"),
        ("decimal(5,1)", "decimal(5,1)"),
        ("bigint", "bigint"),
    ],
)
def test_a_refusal_says_what_a_column_takes(kind: str, sentence: str) -> None:
    assert sentence in wanted(type_of(kind))
