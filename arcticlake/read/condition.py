"""A condition in SQL as an Iceberg expression.

sqlglot reads the text (Spark's dialect), every column is looked up in the schema, and the tree is
lowered from the top: each part is asked for the rows where it is true or where it is false. NOT
swaps the question, AND and OR follow De Morgan, and `predicate.py` answers for the leaves.

A leaf without an answer (a function, two columns, a pattern) is where the two readings differ:

    exact      refuses it, by name: the rows are those of Spark, no more and no less
    relaxed    lets all rows pass, on either side of a NOT: a superset, right for pruning files

Unknown columns and broken syntax are refused in both.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from decimal import Decimal
from difflib import get_close_matches
from enum import Enum
from itertools import pairwise

from pyiceberg.expressions import AlwaysFalse, AlwaysTrue, BooleanExpression, Or
from pyiceberg.schema import Schema
from pyiceberg.types import BooleanType, IcebergType, ListType, MapType, StructType
from sqlglot import TokenType, exp, parse_one, tokenize
from sqlglot.errors import ParseError, TokenError

from arcticlake.errors import InvalidRequest
from arcticlake.read.literal import Constant, cast, parse_number, parse_zone
from arcticlake.read.predicate import (
    Comparison,
    Target,
    all_of,
    any_of,
    compare,
    is_like,
    is_member,
    is_null,
    is_true,
    starts_with,
)
from arcticlake.table.ddl import type_from_ddl
from arcticlake.table.types import spark_type_name

# The comparison, and whether it is true or false where the SQL is true.
_COMPARISONS: Mapping[type[exp.Expr], tuple[Comparison, bool]] = {
    exp.EQ: (Comparison.EQUAL, True),
    exp.NEQ: (Comparison.EQUAL, False),
    exp.NullSafeEQ: (Comparison.SAME, True),
    exp.NullSafeNEQ: (Comparison.SAME, False),
    exp.LT: (Comparison.LESS, True),
    exp.LTE: (Comparison.LESS_EQUAL, True),
    exp.GT: (Comparison.GREATER, True),
    exp.GTE: (Comparison.GREATER_EQUAL, True),
}
# The largest literal of Spark types that Iceberg keeps in a wider one.
_LITERAL_MAX = {"TINYINT": 2**7 - 1, "SMALLINT": 2**15 - 1}


class Fidelity(Enum):
    """What to do with a part that has no Iceberg form."""

    EXACT = "refuse it"
    RELAXED = "let all rows pass"


def exact(condition: str, schema: Schema, *, zone: str = "UTC") -> BooleanExpression:
    """The rows where the condition is true, exactly; InvalidRequest names what cannot be said.

    `zone` is the time zone that timestamps written without one are meant in.
    """
    lowering = _Lowering(schema, parse_zone(zone), Fidelity.EXACT)
    return lowering.lower(_parse(condition, schema), True)


def relaxed(condition: str, schema: Schema, *, zone: str = "UTC") -> BooleanExpression:
    """A superset of the rows where the condition is true; all rows in the worst case."""
    lowering = _Lowering(schema, parse_zone(zone), Fidelity.RELAXED)
    return lowering.lower(_parse(condition, schema), True)


def columns_of(condition: str, schema: Schema) -> frozenset[str]:
    """The top-level columns that the condition uses, spelled as in the schema."""
    return frozenset(_columns(_parse(condition, schema), schema))


@dataclass(frozen=True, slots=True)
class _Known:
    """A literal; None is SQL's NULL."""

    value: Constant | None


class _Lowering:
    """One walk over one condition."""

    def __init__(self, schema: Schema, zone: tzinfo | None, fidelity: Fidelity) -> None:
        self._schema = schema
        self._zone = zone
        self._fidelity = fidelity

    def lower(self, node: exp.Expr, wanted: bool) -> BooleanExpression:
        """The rows where `node` is `wanted`; unknown is neither true nor false."""
        if node.args.get("negate"):  # some versions of sqlglot read `not like` this way
            wanted = not wanted
        match node:
            case exp.Paren():
                return self.lower(node.this, wanted)
            case exp.Not():
                return self.lower(node.this, not wanted)
            case exp.And() | exp.Or():
                parts = [self.lower(part, wanted) for part in node.flatten(unnest=False)]
                return all_of(parts) if isinstance(node, exp.And) == wanted else any_of(parts)
            case exp.Between():
                low = exp.GTE(this=node.this.copy(), expression=node.args["low"].copy())
                high = exp.LTE(this=node.this.copy(), expression=node.args["high"].copy())
                parts = [self.lower(low, wanted), self.lower(high, wanted)]
                return all_of(parts) if wanted else any_of(parts)
        lowered = self._leaf(node, wanted)
        if lowered is not None:
            return lowered
        if self._fidelity is Fidelity.RELAXED:
            return AlwaysTrue()
        raise InvalidRequest(
            f"the part {node.sql(dialect='spark')!r} of the condition cannot be used here; compare "
            "columns with literals of their type by = <> < <= > >= <=>, in, between, is null "
            "or like 'prefix%', and filter the rest on the result"
        )

    def _leaf(self, node: exp.Expr, wanted: bool) -> BooleanExpression | None:
        match node:
            case exp.Boolean():
                return AlwaysTrue() if bool(node.this) == wanted else AlwaysFalse()
            case exp.Null():
                return AlwaysFalse()
            case exp.Is():
                return self._is(node, wanted)
            case exp.In():
                return self._in(node, wanted)
            case exp.Like() | exp.StartsWith():
                target, known = self._target(node.this), self._known(node.expression)
                if target is None or known is None:
                    return None
                match_text = is_like if isinstance(node, exp.Like) else starts_with
                return match_text(target, known.value, wanted)
        if type(node) in _COMPARISONS:
            return self._comparison(node, wanted)
        target = self._target(node)
        return None if target is None else is_true(target, wanted)

    def _comparison(self, node: exp.Expr, wanted: bool) -> BooleanExpression | None:
        comparison, positive = _COMPARISONS[type(node)]
        left, right = node.this, node.expression
        if self._target(left) is None:
            left, right, comparison = right, left, comparison.mirrored()
        target, known = self._target(left), self._known(right)
        if known is None:
            return None
        if target is not None:
            return compare(target, comparison, known.value, wanted == positive, zone=self._zone)
        other = self._known(left)
        if other is None:
            return None
        return _compare_literals(comparison, other.value, known.value, wanted == positive)

    def _in(self, node: exp.In, wanted: bool) -> BooleanExpression | None:
        target = self._target(node.this)
        known = [item for item in map(self._known, node.expressions) if item is not None]
        if target is None or not known or len(known) < len(node.expressions):
            return None
        return is_member(target, [item.value for item in known], wanted, zone=self._zone)

    def _is(self, node: exp.Is, wanted: bool) -> BooleanExpression | None:
        target = self._target(node.this)
        match node.expression:
            case exp.Null():
                return None if target is None else is_null(target, wanted)
            case exp.Boolean() as truth if wanted:
                return self.lower(node.this, bool(truth.this))
            case exp.Boolean() as truth if target and isinstance(target.kind, BooleanType):
                return Or(is_null(target, True), self.lower(node.this, not truth.this))
        return None

    def _target(self, node: exp.Expr) -> Target | None:
        """The column that a node names; None if it is no column or lies inside an array or map."""
        parts = _parts(node.unnest())
        return _resolve(parts, self._schema) if parts else None

    def _known(self, node: exp.Expr) -> _Known | None:
        """The literal that a node spells, None if it is none."""
        node = node.unnest()
        value: Constant | None = None
        match node:
            case exp.Null():
                return _Known(None)
            case exp.Boolean():
                value = bool(node.this)
            case exp.Literal() | exp.RawString():
                is_text = isinstance(node, exp.RawString) or node.is_string
                value = str(node.this) if is_text else parse_number(node.this)
            case exp.HexString() if len(node.this) % 2 == 0:
                value = bytes.fromhex(node.this)
            case exp.Neg():
                value = _negative(self._known(node.this))
            case exp.Cast():
                return self._cast(node)
        return None if value is None else _Known(value)

    def _cast(self, node: exp.Cast) -> _Known | None:
        inner, name = self._known(node.this), node.to.sql(dialect="spark")
        if inner is None or inner.value is None:
            return inner
        try:
            value = cast(inner.value, type_from_ddl(name, "literal"), self._zone)
        except InvalidRequest:  # a type that no column can have
            return None
        too_large = isinstance(value, int) and abs(value) > _LITERAL_MAX.get(name, abs(value))
        return None if value is None or too_large else _Known(value)


def _negative(known: _Known | None) -> Constant | None:
    number = None if known is None else known.value
    if isinstance(number, bool) or not isinstance(number, int | float | Decimal):
        return None
    return -number


def _compare_literals(
    comparison: Comparison, left: Constant | None, right: Constant | None, wanted: bool
) -> BooleanExpression | None:
    """Two literals, as in `1 = 1`; only what needs no rule of widening."""
    if (left is None or right is None) and comparison is not Comparison.SAME:
        return AlwaysFalse()
    alike = left is None or right is None or type(left) is type(right)
    if not alike or comparison not in {Comparison.EQUAL, Comparison.SAME}:
        return None
    return AlwaysTrue() if (left == right) == wanted else AlwaysFalse()


def _parse(condition: str, schema: Schema) -> exp.Expr:
    """The syntax tree of a condition whose columns all exist."""
    try:
        tree = parse_one(_escape_quotes(condition), dialect="spark", into=exp.Condition)
    except (ParseError, TokenError) as error:
        details = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
        near = f" at {details['highlight']!r}" if details.get("highlight") else ""
        raise InvalidRequest(
            f"the condition {condition!r} is not valid SQL{near}; write it as after WHERE"
        ) from error
    list(_columns(tree, schema))  # each is looked up on the way, and an unknown one refused
    return tree


def _escape_quotes(text: str) -> str:
    r"""Turn 'it''s' into 'it\'s': sqlglot would read two texts where Spark reads a quote."""
    tokens = tokenize(text, dialect="spark")
    for first, second in pairwise(tokens):
        both_texts = first.token_type == second.token_type == TokenType.STRING
        if both_texts and first.end + 1 == second.start:
            text = f"{text[: first.end]}\\{text[second.start :]}"
    return text


def _parts(node: exp.Expr) -> list[str]:
    """The names of a dotted path, [] if something else than names is in it."""
    match node:
        case exp.Column() if not isinstance(node.this, exp.Star):
            return [part.name for part in node.parts]
        case exp.Dot(this=inner, expression=exp.Identifier() as last):
            before = _parts(inner)
            return [*before, last.name] if before else []
    return []


def _columns(tree: exp.Expr, schema: Schema) -> Iterator[str]:
    """The top-level column of every reference; those of a subquery only if they are ours."""
    names = {field.name.lower(): field.name for field in schema.fields}
    for column in tree.find_all(exp.Column):
        path: exp.Expr = column
        while isinstance(path.parent, exp.Dot) and path.arg_key == "this" and _parts(path.parent):
            path = path.parent
        parts = _parts(path)
        if not parts:
            continue
        if column.find_ancestor(exp.Select, exp.SetOperation) is None:
            _resolve(parts, schema)
        if parts[0].lower() in names:
            yield names[parts[0].lower()]


def _resolve(parts: Sequence[str], schema: Schema) -> Target | None:
    """Follow a path of names, ignoring case; None inside arrays and maps."""
    kind: IcebergType = schema.as_struct()
    names: list[str] = []
    nullable: str | None = None
    for part in parts:
        if isinstance(kind, ListType | MapType):
            return None
        fields = kind.fields if isinstance(kind, StructType) else ()
        field = next((f for f in fields if f.name.lower() == part.lower()), None)
        if field is None:
            raise _unknown([*names, part], [*names], [f.name for f in fields], kind)
        names.append(field.name)
        nullable = ".".join(names) if field.optional else nullable
        kind = field.field_type
    if any("." in name for name in names):
        return None  # Iceberg joins names by dots, so this one cannot be told from a path
    return Target(".".join(names), kind, nullable)


def _unknown(
    path: Sequence[str], parent: Sequence[str], known: Sequence[str], kind: IcebergType
) -> InvalidRequest:
    name, owner = ".".join(path), ".".join(parent)
    if owner and not known:
        return InvalidRequest(
            f"column {name} does not exist; {owner} has type {spark_type_name(kind)}"
        )
    lowered = {candidate.lower(): candidate for candidate in known}
    close = get_close_matches(path[-1].lower(), lowered, n=1, cutoff=0.0)
    hint = ".".join([*parent, lowered[close[0]]]) if close else "none"
    return InvalidRequest(f"column {name} does not exist; the nearest known one is {hint}")
