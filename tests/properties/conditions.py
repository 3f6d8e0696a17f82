"""Random conditions as SQL, and what SQL says of them for one row: true, false or unknown."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import ge, gt, le, lt

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tests.properties.model import Column, Row
from tests.properties.values import VALUES

Truth = bool | None
COMPARED = ("int", "bigint", "string", "date", "decimal(9,2)", "decimal(20,2)", "double", "float")

COMPARISONS: Mapping[str, Callable[..., bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}


@dataclass(frozen=True)
class Condition:
    sql: str
    truth: Callable[[Row], Truth]


def literal(value: object, kind: str) -> str:
    if kind == "string":
        return f"'{value}'"
    if kind == "date":
        return f"date '{value}'"
    return str(value)


def literals(kind: str) -> list[object]:
    """Values that have a plain literal; how text is escaped is tested with the parser."""
    found = []
    for value in VALUES[kind]:
        odd_text = isinstance(value, str) and not value.isascii()
        odd_float = isinstance(value, float) and not (math.isfinite(value) and abs(value) < 1e9)
        if not odd_text and not odd_float and value != -(2**63) and "\0" not in str(value):
            found.append(value)
    return found


def ordered(value: object) -> object:
    """Spark's order of floats: NaN is the largest and equal to itself."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value


@st.composite
def conditions(draw: DrawFn, columns: Sequence[Column], depth: int = 2) -> Condition:
    able = [column for column in columns if column.kind in COMPARED]
    if depth > 0 and draw(st.integers(0, 2)) == 0:
        return draw(_combined(columns, depth))
    column = draw(st.sampled_from(able or list(columns)))
    name, identity = f"`{column.name}`", column.identity
    if not able or draw(st.integers(0, 4)) == 0:
        if draw(st.booleans()):
            return Condition(f"{name} is null", lambda row: row.get(identity) is None)
        return Condition(f"{name} is not null", lambda row: row.get(identity) is not None)
    known = literals(column.kind)
    if draw(st.integers(0, 3)) == 0:
        chosen = draw(st.lists(st.sampled_from(known), min_size=1, max_size=3))
        sql = f"{name} in ({', '.join(literal(value, column.kind) for value in chosen)})"
        return Condition(sql, lambda row: _member(row.get(identity), chosen))
    value = draw(st.sampled_from(known))
    sign = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]))
    sql = f"{name} {sign} {literal(value, column.kind)}"
    return Condition(sql, lambda row: _compare(row.get(identity), sign, value))


@st.composite
def _combined(draw: DrawFn, columns: Sequence[Column], depth: int) -> Condition:
    left = draw(conditions(columns, depth - 1))
    if draw(st.integers(0, 3)) == 0:
        return Condition(f"not ({left.sql})", lambda row: _not(left.truth(row)))
    right = draw(conditions(columns, depth - 1))
    if draw(st.booleans()):
        return Condition(
            f"({left.sql}) and ({right.sql})", lambda row: _and(left.truth(row), right.truth(row))
        )
    return Condition(
        f"({left.sql}) or ({right.sql})",
        lambda row: _not(_and(_not(left.truth(row)), _not(right.truth(row)))),
    )


def _not(truth: Truth) -> Truth:
    return None if truth is None else not truth


def _and(left: Truth, right: Truth) -> Truth:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _member(value: object, chosen: Sequence[object]) -> Truth:
    return None if value is None else ordered(value) in [ordered(one) for one in chosen]


def _compare(value: object, sign: str, other: object) -> Truth:
    if value is None:
        return None
    left, right = ordered(value), ordered(other)
    if sign in {"=", "<>"}:
        return (left == right) == (sign == "=")
    compare: Callable[[object, object], bool] = COMPARISONS[sign]
    return compare(left, right)
