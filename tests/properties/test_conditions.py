"""Random conditions against an evaluator that knows SQL's three truths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import TypeAlias

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from arcticlake.read.condition import exact, relaxed
from arcticlake.table.types import arrow_schema
from tests.read.test_condition import SCHEMA, rows_of

Truth: TypeAlias = bool | None
Row: TypeAlias = dict[str, object]


@dataclass(frozen=True)
class Case:
    """A condition as text and as a function of a row."""

    sql: str
    holds: Callable[[Row], Truth]


COLUMNS: dict[str, st.SearchStrategy[object]] = {
    "id": st.integers(-2, 2),
    "Name": st.sampled_from(["", "a", "ab", "b", "é"]),
    "amount": st.sampled_from([Decimal("-1.00"), Decimal("0.05"), Decimal("1.50")]),
    "day": st.sampled_from([date(2019, 12, 31), date(2020, 1, 1), date(2020, 2, 29)]),
}
LITERALS: dict[str, st.SearchStrategy[object]] = {
    "id": st.integers(-3, 3) | st.sampled_from([Decimal("1.5"), Decimal("-0.5"), 2**40]),
    "Name": COLUMNS["Name"],
    "amount": COLUMNS["amount"] | st.sampled_from([Decimal("0.049"), 1, Decimal(12345)]),
    "day": COLUMNS["day"],
}
OPERATORS: dict[str, Callable[[object, object], bool]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,  # type: ignore[operator]
    "<=": lambda a, b: a <= b,  # type: ignore[operator]
    ">": lambda a, b: a > b,  # type: ignore[operator]
    ">=": lambda a, b: a >= b,  # type: ignore[operator]
}


def spelled(value: object) -> str:
    match value:
        case None:
            return "null"
        case str():
            return f"'{value}'"
        case date():
            return f"date '{value}'"
    return str(value)


def compared(operator: str, left: object, right: object) -> Truth:
    if left is None or right is None:
        return None
    return OPERATORS[operator](left, right)


def conjunction(left: Truth, right: Truth) -> Truth:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def negation(truth: Truth) -> Truth:
    return None if truth is None else not truth


def comparison(column: str) -> st.SearchStrategy[Case]:
    def build(operator: str, value: object, mirrored: bool) -> Case:
        if mirrored:
            return Case(
                f"{spelled(value)} {operator} {column}",
                lambda row: compared(operator, value, row[column]),
            )
        return Case(
            f"{column} {operator} {spelled(value)}",
            lambda row: compared(operator, row[column], value),
        )

    literals = st.none() | LITERALS[column]
    return st.builds(build, st.sampled_from(sorted(OPERATORS)), literals, st.booleans())


def membership(column: str) -> st.SearchStrategy[Case]:
    def build(values: list[object], word: str) -> Case:
        def holds(row: Row) -> Truth:
            truth: Truth = False
            for value in values:
                other = negation(compared("=", row[column], value))
                truth = negation(conjunction(negation(truth), other))
            return truth if word == "in" else negation(truth)

        return Case(f"{column} {word} ({', '.join(map(spelled, values))})", holds)

    lists = st.lists(st.none() | LITERALS[column], min_size=1, max_size=3)
    return st.builds(build, lists, st.sampled_from(["in", "not in"]))


def between(column: str) -> st.SearchStrategy[Case]:
    def build(low: object, high: object, word: str) -> Case:
        def holds(row: Row) -> Truth:
            value = row[column]
            inside = conjunction(compared(">=", value, low), compared("<=", value, high))
            return inside if word == "between" else negation(inside)

        return Case(f"{column} {word} {spelled(low)} and {spelled(high)}", holds)

    words = st.sampled_from(["between", "not between"])
    return st.builds(build, LITERALS[column], LITERALS[column], words)


def null_test(column: str) -> st.SearchStrategy[Case]:
    return st.sampled_from(
        [
            Case(f"{column} is null", lambda row: row[column] is None),
            Case(f"{column} is not null", lambda row: row[column] is not None),
            Case(f"{column} <=> null", lambda row: row[column] is None),
        ]
    )


def prefixes() -> st.SearchStrategy[Case]:
    def build(prefix: object, word: str) -> Case:
        def holds(row: Row) -> Truth:
            name = row["Name"]
            truth = None if name is None else str(name).startswith(str(prefix))
            return truth if word == "like" else negation(truth)

        return Case(f"name {word} '{prefix}%'", holds)

    return st.builds(build, COLUMNS["Name"], st.sampled_from(["like", "not like"]))


def leaves() -> st.SearchStrategy[Case]:
    kinds = (comparison, membership, between, null_test)
    columns = [kind(column) for kind in kinds for column in COLUMNS]
    return st.one_of(*columns, prefixes())


def nested(inner: st.SearchStrategy[Case]) -> st.SearchStrategy[Case]:
    def both(left: Case, right: Case) -> Case:
        return Case(
            f"({left.sql}) and ({right.sql})",
            lambda row: conjunction(left.holds(row), right.holds(row)),
        )

    def either(left: Case, right: Case) -> Case:
        return Case(
            f"(({left.sql}) or ({right.sql}))",
            lambda row: negation(
                conjunction(negation(left.holds(row)), negation(right.holds(row)))
            ),
        )

    def neither(case: Case) -> Case:
        return Case(f"not ({case.sql})", lambda row: negation(case.holds(row)))

    return (
        st.builds(both, inner, inner) | st.builds(either, inner, inner) | st.builds(neither, inner)
    )


CASES = st.recursive(leaves(), nested, max_leaves=6)
TABLES = st.lists(
    st.fixed_dictionaries({name: st.none() | values for name, values in COLUMNS.items()}),
    min_size=1,
    max_size=8,
)


@settings(max_examples=300, deadline=None)
@given(case=CASES, rows=TABLES)
@example(
    case=Case("not (id > 1.5)", lambda row: negation(compared(">", row["id"], Decimal("1.5")))),
    rows=[{"id": n, "Name": None, "amount": None, "day": None} for n in (None, 1, 2)],
)
def test_exact_keeps_the_rows_of_sql_and_relaxed_at_least_those(
    case: Case, rows: list[Row]
) -> None:
    numbered = [{"row": place, **row} for place, row in enumerate(rows)]
    table = pa.Table.from_pylist(numbered, schema=arrow_schema(SCHEMA))
    expected = [place for place, row in enumerate(rows) if case.holds(row) is True]

    assert rows_of(exact(case.sql, SCHEMA), table) == expected
    half_known = f"({case.sql}) and upper(name) <> 'X' or not (upper(name) = 'Y' or ({case.sql}))"
    assert set(expected) <= set(rows_of(relaxed(case.sql, SCHEMA), table))
    true_or_false = [place for place, row in enumerate(rows) if case.holds(row) is not None]
    assert set(true_or_false) <= set(rows_of(relaxed(half_known, SCHEMA), table))
