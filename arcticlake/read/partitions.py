"""Which partitions a condition selects, whole; a partition that it cuts in two is refused.

    may a row match?  may a row miss?
    no                any              outside
    yes               no               inside: every row of it matches
    yes               yes              cut: some rows may match and others not

Both questions are asked of the partition's values alone. A row misses a condition where it is not
true, so where a column is NULL a comparison with it misses, as in SQL: a partition of NULLs is
inside of `is null` only.

Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from pyiceberg.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    IsNull,
    NotNull,
    Or,
    UnboundPredicate,
)
from pyiceberg.expressions.visitors import expression_evaluator, inclusive_projection
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import TruncateTransform
from pyiceberg.typedef import Record

from arcticlake.errors import InvalidRequest
from arcticlake.table.spec import TableSpec
from arcticlake.tree.forest import Partition

_FIRST_FIELD_ID = 1000


def select_partitions(
    condition: BooleanExpression, spec: TableSpec, partitions: Collection[Partition]
) -> frozenset[Partition]:
    """Return the partitions that lie wholly inside a condition made by `read/condition.exact`."""
    may_match, may_miss = _judge(condition, spec), _judge(_misses(condition), spec)
    chosen = set()
    for partition in partitions:
        unclear = _ran_over(spec, partition)
        if not unclear and not may_match(partition):
            continue
        if unclear or may_miss(partition):
            message = (
                f"table {spec.name}: the condition cuts partition {shown(spec, partition)} in two; "
                "only whole partitions can be replaced: write the condition with their borders"
            )
            raise InvalidRequest(message)
        chosen.add(partition)
    return frozenset(chosen)


def shown(spec: TableSpec, partition: Partition) -> str:
    """Return a partition as people write it."""
    named = zip(spec.partition, partition, strict=True)
    return ", ".join(
        f"{term.name}="
        + term.transform.to_human_string(spec.schema.find_type(term.source_id), value)
        for term, value in named
    )


def _judge(condition: BooleanExpression, spec: TableSpec) -> Callable[[Partition], bool]:
    """Return what tells by its values whether rows of a partition may meet a condition."""
    fields = [
        PartitionField(term.source_id, _FIRST_FIELD_ID + number, term.transform, term.name)
        for number, term in enumerate(spec.partition)
    ]
    iceberg_spec = PartitionSpec(*fields)
    try:
        projected = inclusive_projection(spec.schema, iceberg_spec)(condition)
    except OverflowError:  # the day after the last one of the calendar has no month
        return lambda _: True
    kinds = Schema(*iceberg_spec.partition_type(spec.schema).fields)
    evaluate = expression_evaluator(kinds, projected, case_sensitive=True)
    return lambda partition: bool(evaluate(Record(*partition)))


def _ran_over(spec: TableSpec, partition: Partition) -> bool:
    """Whether a truncated number is none that a truncation gives.

    Near the smallest number that a column holds the truncation runs over its end and comes out
    at the largest. Such a partition says nothing about its rows.
    """
    return any(
        isinstance(term.transform, TruncateTransform)
        and isinstance(value, int)
        and value % term.transform.width != 0
        for term, value in zip(spec.partition, partition, strict=True)
    )


def _misses(condition: BooleanExpression) -> BooleanExpression:
    """Return the rows where a condition is not true: false or unknown."""
    match condition:
        case And(left=left, right=right):
            return Or(_misses(left), _misses(right))
        case Or(left=left, right=right):
            return And(_misses(left), _misses(right))
        case AlwaysTrue() | AlwaysFalse() | IsNull() | NotNull():
            return ~condition
        case UnboundPredicate(term=term):
            return Or(~condition, IsNull(term=term))
    message = f"a condition of kind {type(condition).__name__} was not made by exact()"
    raise AssertionError(message)
