"""One column against literals as an Iceberg expression, with SQL's answer for NULL and NaN.

Iceberg's expressions know two truths, SQL knows three. So each function here is asked for the
rows where its predicate is *true* (`wanted`) or the rows where it is *false*; rows where it is
unknown are in neither, and no expression holds a `Not` that could bring them back:

    predicate   rows where true          rows where false
    x = 5       x == 5                   x != 5 and x is not null
    x = null    none                     none
    x in (1)    x == 1                   x != 1 and x is not null
    x > 1.0     x > 1.0 or x is NaN      x <= 1.0                  (Spark: NaN is the largest)

Evaluated on Arrow they give Spark's rows; evaluated on file bounds they never lose one. None
means that the predicate cannot be said with certainty.

Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo
from enum import Enum

from pyiceberg.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNull,
    LessThan,
    LessThanOrEqual,
    NotEqualTo,
    NotIn,
    NotNull,
    NotStartsWith,
    Or,
    Reference,
    StartsWith,
)
from pyiceberg.expressions.literals import literal
from pyiceberg.typedef import LiteralValue
from pyiceberg.types import BooleanType, DoubleType, FloatType, IcebergType, LongType, StringType

from arcticlake.read.literal import Constant, Place, Side, place


class Comparison(Enum):
    """The comparisons of SQL; `<>` is a false `=`."""

    EQUAL = "="
    SAME = "<=>"
    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="

    def mirrored(self) -> Comparison:
        """The comparison with its two sides exchanged."""
        return _MIRRORED.get(self, self)

    def negated(self) -> Comparison:
        """The order that holds where this one is false."""
        return _NEGATED[self]


_MIRRORED = {
    Comparison.LESS: Comparison.GREATER,
    Comparison.LESS_EQUAL: Comparison.GREATER_EQUAL,
    Comparison.GREATER: Comparison.LESS,
    Comparison.GREATER_EQUAL: Comparison.LESS_EQUAL,
}
_NEGATED = {
    Comparison.LESS: Comparison.GREATER_EQUAL,
    Comparison.LESS_EQUAL: Comparison.GREATER,
    Comparison.GREATER: Comparison.LESS_EQUAL,
    Comparison.GREATER_EQUAL: Comparison.LESS,
}


@dataclass(frozen=True, slots=True)
class Target:
    """A column, or a field of a struct column, that a predicate speaks about.

    `nullable_name` is the innermost optional name on its path. A required field of an optional
    struct is null where the struct is, which Iceberg would rule out by the field alone.
    """

    name: str
    kind: IcebergType
    nullable_name: str | None


def all_of(parts: Sequence[BooleanExpression]) -> BooleanExpression:
    """The rows in every part."""
    return _balanced(parts, AlwaysTrue(), wanted=True)


def any_of(parts: Sequence[BooleanExpression]) -> BooleanExpression:
    """The rows in at least one part."""
    return _balanced(parts, AlwaysFalse(), wanted=False)


def _balanced(
    parts: Sequence[BooleanExpression], empty: BooleanExpression, *, wanted: bool
) -> BooleanExpression:
    """Join halves, so that a thousand parts are ten levels deep and visitors can recurse."""
    if len(parts) < 2:
        return parts[0] if parts else empty
    half = len(parts) // 2
    left = _balanced(parts[:half], empty, wanted=wanted)
    right = _balanced(parts[half:], empty, wanted=wanted)
    return And(left, right) if wanted else Or(left, right)


def is_null(target: Target, wanted: bool) -> BooleanExpression:
    """`x is null`, or `x is not null` where that is false."""
    if target.nullable_name is None:
        return AlwaysFalse() if wanted else AlwaysTrue()
    term = Reference(target.nullable_name)
    return IsNull(term=term) if wanted else NotNull(term=term)


def is_true(target: Target, wanted: bool) -> BooleanExpression | None:
    """A boolean column as a condition of its own."""
    if not isinstance(target.kind, BooleanType):
        return None
    return EqualTo(term=Reference(target.name), value=literal(wanted))


def compare(
    target: Target,
    comparison: Comparison,
    value: Constant | None,
    wanted: bool,
    *,
    zone: tzinfo | None,
) -> BooleanExpression | None:
    """A column against a literal; None is SQL's NULL."""
    if value is None:
        return is_null(target, wanted) if comparison is Comparison.SAME else AlwaysFalse()
    placed = place(value, target.kind, zone)
    if placed is None:
        return None
    if comparison is Comparison.EQUAL:
        return _equal(target, placed, wanted)
    if comparison is Comparison.SAME:
        equal = _equal(target, placed, wanted)
        return equal if wanted else Or(is_null(target, True), equal)
    if isinstance(target.kind, BooleanType):
        return None
    return _ordered(target, comparison if wanted else comparison.negated(), placed)


def is_member(
    target: Target, values: Sequence[Constant | None], wanted: bool, *, zone: tzinfo | None
) -> BooleanExpression | None:
    """`x in (…)`; with a NULL in the list no row is surely outside of it."""
    known = [value for value in values if value is not None]
    places = [place(value, target.kind, zone) for value in known]
    placed = [item for item in places if item is not None]
    if len(placed) < len(known) or not _compared_one_by_one(known, target.kind):
        return None
    if not wanted and len(known) < len(values):
        return AlwaysFalse()
    members = [item for item in placed if item.side == Side.EQUAL]
    if isinstance(target.kind, FloatType | DoubleType):
        # Arrow's set look-up tells 0.0 from -0.0; its comparison does not, and nor does Spark.
        equal = [_equal(target, member, wanted) for member in members]
        return any_of(equal) if wanted else all_of([is_null(target, False), *equal])
    term, literals = Reference(target.name), {_literal(member.value) for member in members}
    if wanted:
        return In(term=term, values=literals)
    return And(is_null(target, False), NotIn(term=term, values=literals))


def starts_with(target: Target, prefix: Constant | None, wanted: bool) -> BooleanExpression | None:
    """`startswith(x, 'prefix')`, which is also `x like 'prefix%'`."""
    if not isinstance(target.kind, StringType) or not isinstance(prefix, str | None):
        return None
    if prefix is None:
        return AlwaysFalse()
    if not prefix:
        return is_null(target, False) if wanted else AlwaysFalse()
    term = Reference(target.name)
    if wanted:
        return StartsWith(term=term, value=literal(prefix))
    return And(is_null(target, False), NotStartsWith(term=term, value=literal(prefix)))


def is_like(target: Target, pattern: Constant | None, wanted: bool) -> BooleanExpression | None:
    """`x like 'abc'` and `x like 'abc%'`; other patterns have no Iceberg form."""
    if not isinstance(pattern, str):
        return starts_with(target, pattern, wanted)
    prefix = pattern.rstrip("%")
    if not isinstance(target.kind, StringType) or any(wild in prefix for wild in "%_\\"):
        return None
    if prefix == pattern:
        return _equal(target, Place(prefix, Side.EQUAL), wanted)
    return starts_with(target, prefix, wanted)


def _literal(value: Constant) -> LiteralValue:
    return literal(value)


def _equal(target: Target, placed: Place, wanted: bool) -> BooleanExpression:
    term = Reference(target.name)
    if placed.side != Side.EQUAL:
        return AlwaysFalse() if wanted else is_null(target, False)
    if wanted:
        return EqualTo(term=term, value=_literal(placed.value))
    return And(is_null(target, False), NotEqualTo(term=term, value=_literal(placed.value)))


def _ordered(target: Target, comparison: Comparison, placed: Place) -> BooleanExpression:
    """Rows before or after a literal that stands at, below or above the placed value."""
    term, value = Reference(target.name), _literal(placed.value)
    if comparison in {Comparison.LESS, Comparison.LESS_EQUAL}:
        strict = comparison is Comparison.LESS if placed.side == Side.EQUAL else placed.side > 0
        if strict:
            return LessThan(term=term, value=value)
        return LessThanOrEqual(term=term, value=value)
    strict = comparison is Comparison.GREATER if placed.side == Side.EQUAL else placed.side < 0
    above = (
        GreaterThan(term=term, value=value)
        if strict
        else GreaterThanOrEqual(term=term, value=value)
    )
    # Arrow's comparison and the bounds of files leave NaN out; for Spark it is the largest.
    is_float = isinstance(target.kind, FloatType | DoubleType)
    return Or(above, IsNaN(term=term)) if is_float else above


def _compared_one_by_one(values: Sequence[Constant], kind: IcebergType) -> bool:
    """Whether widening the whole list to one type, as Spark does, changes no comparison."""
    texts = sum(isinstance(value, str) for value in values)
    doubles = any(isinstance(value, float) for value in values)
    return texts in {0, len(values)} and not (doubles and isinstance(kind, LongType))
