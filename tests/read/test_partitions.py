"""Whole partitions by a condition: inside, outside, or cut and refused."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arcticlake.errors import InvalidRequest
from arcticlake.ingest.plan import place_terms
from arcticlake.read.condition import exact
from arcticlake.read.partitions import select_partitions, shown
from arcticlake.table.ddl import schema_from_ddl
from arcticlake.table.spec import TableSpec, plan_table
from arcticlake.table.types import arrow_schema
from arcticlake.tree.hash import partition_values
from tests.properties.conditions import conditions
from tests.properties.model import Column
from tests.properties.values import VALUES


def table(column: str, *partition_by: str) -> TableSpec:
    return plan_table(
        "db.t",
        schema_from_ddl(f"id bigint, c {column}, other int"),
        primary_key=("id",),
        partition_by=partition_by,
        sort_by=(),
        bucket_by=None,
        options={},
    )


def partition_of(spec: TableSpec, value: object) -> tuple[object, ...]:
    """Return the partition that a writer puts a row with this value in."""
    rows = pa.table({"c": pa.array([value], arrow_schema(spec.schema).field("c").type)})
    return tuple(partition_values(rows, term)[0].as_py() for term in place_terms(spec))


def judge(spec: TableSpec, where: str, value: object) -> str:
    partition = partition_of(spec, value)
    try:
        chosen = select_partitions(exact(where, spec.schema), spec, [partition])
    except InvalidRequest:
        return "cut"
    return "inside" if chosen else "outside"


def noon(day: int) -> datetime:
    return datetime(2026, 11, day, 12)  # noqa: DTZ001 - the table's timestamps have no zone


CASES: Sequence[tuple[str, str, str, object, str]] = [
    ("string", "c", "c = 'de'", "de", "inside"),
    ("string", "c", "c = 'de'", "fr", "outside"),
    ("string", "c", "c = 'de'", None, "outside"),
    ("string", "c", "c <> 'de'", "fr", "inside"),
    ("string", "c", "c <> 'de'", None, "outside"),
    ("string", "c", "not (c = 'de')", None, "outside"),
    ("string", "c", "c is null", None, "inside"),
    ("string", "c", "c is null", "de", "outside"),
    ("string", "c", "c is not null", "de", "inside"),
    ("string", "c", "c <=> null", None, "inside"),
    ("string", "c", "not (c <=> 'de')", None, "inside"),
    ("string", "c", "c in ('de', 'fr')", "fr", "inside"),
    ("string", "c", "c not in ('de', 'fr')", "it", "inside"),
    ("string", "c", "c not in ('de', null)", "it", "outside"),
    ("string", "c", "c like 'd%'", "de", "inside"),
    ("string", "c", "c not like 'd%'", "fr", "inside"),
    ("string", "c", "c = 'de' or c is null", None, "inside"),
    ("string", "c", "c = 'de' and other = 1", "de", "cut"),
    ("string", "c", "c = 'de' and other = 1", "fr", "outside"),
    ("string", "c", "c = 'de' or other = 1", "de", "inside"),
    ("string", "c", "true", None, "inside"),
    ("string", "c", "false", "de", "outside"),
    ("date", "c", "c >= '2026-11-01'", date(2026, 11, 1), "inside"),
    ("date", "c", "c > date'2026-11-01'", date(2026, 11, 1), "outside"),
    ("date", "c", "c > date'2026-11-01'", None, "outside"),
    ("date", "month(c)", "c >= '2026-11-01'", date(2026, 11, 7), "inside"),
    ("date", "month(c)", "c >= '2026-11-02'", date(2026, 11, 7), "cut"),
    ("date", "month(c)", "c < '2026-12-01' and c >= '2026-11-01'", date(2026, 11, 7), "inside"),
    ("date", "year(c)", "c < '1970-01-01'", date(1969, 12, 31), "inside"),
    ("date", "year(c)", "c <= '1969-12-30'", date(1969, 12, 31), "cut"),
    # Nothing comes after the last day that Python knows, so its year is refused, not guessed.
    ("date", "year(c)", "c <= '9999-12-31'", date(9999, 12, 31), "cut"),
    ("decimal(9,2)", "c", "c = 1.50", Decimal("1.50"), "inside"),
    ("decimal(9,2)", "c", "c > 1.499", Decimal("1.50"), "inside"),
    ("decimal(9,2)", "c", "c > 1.50", Decimal("1.50"), "outside"),
    ("decimal(9,2)", "truncate(c, 100)", "c >= 1.00 and c < 2.00", Decimal("1.50"), "inside"),
    ("decimal(9,2)", "truncate(c, 100)", "c >= 1.01", Decimal("1.50"), "cut"),
    ("int", "truncate(c, 10)", "c >= 10 and c < 20", 17, "inside"),
    ("int", "truncate(c, 10)", "c >= 10 and c <= 18", 17, "cut"),
    ("int", "truncate(c, 10)", "c >= -10 and c < 0", -3, "inside"),
    ("int", "truncate(c, 10)", "c is null", None, "inside"),
    ("int", "truncate(c, 10)", "c is null or c = 17", 17, "cut"),
    # The truncation runs over the end of the column: the partition tells nothing of its rows.
    ("bigint", "truncate(c, 10)", "c < 0", -(2**63), "cut"),
    ("int", "truncate(c, 3)", "c >= 0", -(2**31), "cut"),
    ("string", "truncate(c, 2)", "c like 'de%'", "delta", "inside"),
    ("string", "truncate(c, 2)", "c like 'del%'", "delta", "cut"),
    ("string", "truncate(c, 2)", "c like 'd%'", "delta", "inside"),
    ("string", "truncate(c, 2)", "c like 'x%'", "delta", "outside"),
    ("timestamp_ntz", "day(c)", "c >= '2026-11-01' and c < '2026-11-02'", noon(1), "inside"),
    ("timestamp_ntz", "day(c)", "c >= '2026-11-01' and c < '2026-11-02'", noon(2), "outside"),
    ("timestamp_ntz", "day(c)", "c >= '2026-11-01 06:00:00'", noon(1), "cut"),
    ("timestamp_ntz", "day(c)", "c < '2026-11-02'", None, "outside"),
    ("timestamp_ntz", "hour(c)", "c >= '2026-11-01 12:00:00'", noon(1), "inside"),
    ("timestamp_ntz", "c", "c = '2026-11-01 12:00:00'", noon(1), "inside"),
    ("timestamp_ntz", "c", "c = '2026-11-01 12:00:01'", noon(1), "outside"),
    ("binary", "c", "c = X'6162'", b"ab", "inside"),
    ("boolean", "c", "c", True, "inside"),
    ("boolean", "c", "not c", True, "outside"),
    ("boolean", "c", "not c", None, "outside"),
]


@pytest.mark.parametrize(("kind", "term", "where", "value", "expected"), CASES)
def test_a_partition_is_inside_outside_or_cut(
    kind: str, term: str, where: str, value: object, expected: str
) -> None:
    """BAT-05: only whole partitions, with SQL's answer for NULL."""
    assert judge(table(kind, term), where, value) == expected


def test_a_column_that_cannot_be_null_never_misses_by_null() -> None:
    spec = table("string not null", "c")

    assert judge(spec, "c = 'de'", "de") == "inside"
    assert judge(spec, "c <> 'de'", "fr") == "inside"


def test_several_fields_are_judged_together_and_shown_by_name() -> None:
    spec = table("date", "month(c)", "other")
    partitions = {(682, 1), (682, 2), (682, None), (683, 1)}

    chosen = select_partitions(
        exact("c < '2026-12-01' and other = 1", spec.schema), spec, partitions
    )

    assert chosen == {(682, 1)}
    assert shown(spec, (682, None)) == "c_month=2026-11, other=null"
    with pytest.raises(InvalidRequest, match=r"db\.t.*c_month=2026-11, other=.*borders"):
        select_partitions(exact("c < '2026-11-09'", spec.schema), spec, partitions)


TERMS = {
    "int": ["c", "truncate(c, 3)"],
    "bigint": ["c", "truncate(c, 10)"],
    "string": ["c", "truncate(c, 1)", "truncate(c, 2)"],
    "date": ["c", "day(c)", "month(c)", "year(c)"],
    "decimal(9,2)": ["c", "truncate(c, 50)"],
}


@settings(max_examples=200)
@given(data=st.data(), kind=st.sampled_from(sorted(TERMS)))
def test_no_row_inside_misses_and_no_row_outside_matches(data: st.DataObject, kind: str) -> None:
    """BAT-05: whatever the condition, a row is neither lost nor left by mistake."""
    spec = table(kind, data.draw(st.sampled_from(TERMS[kind])))
    condition = data.draw(conditions([Column(1, "c", kind), Column(2, "other", "int")]))
    value = data.draw(st.none() | st.sampled_from(VALUES[kind]))
    other = data.draw(st.none() | st.sampled_from(VALUES["int"]))

    judged = judge(spec, condition.sql, value)

    matches = condition.truth({1: value, 2: other}) is True
    assert judged == "cut" or (judged == "inside") == matches, condition.sql
