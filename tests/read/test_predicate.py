"""Single predicates; `test_condition.py` judges them by rows, here by files."""

from __future__ import annotations

import pytest
from pyiceberg.conversions import to_bytes
from pyiceberg.expressions import AlwaysFalse, AlwaysTrue, EqualTo, IsNull, Reference
from pyiceberg.expressions.literals import literal
from pyiceberg.expressions.visitors import _InclusiveMetricsEvaluator
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record
from pyiceberg.types import DoubleType, LongType

from arcticlake.read.condition import relaxed
from arcticlake.read.predicate import Comparison, Target, all_of, any_of, compare, is_null
from arcticlake.table.ddl import schema_from_ddl

SCHEMA = schema_from_ddl("id bigint, g double")
FILE = DataFile.from_args(
    content=DataFileContent.DATA,
    file_path="a.parquet",
    file_format=FileFormat.PARQUET,
    partition=Record(),
    record_count=10,
    file_size_in_bytes=100,
    column_sizes={},
    value_counts={1: 10, 2: 10},
    null_value_counts={1: 2, 2: 2},
    nan_value_counts={},
    lower_bounds={1: to_bytes(LongType(), 5), 2: to_bytes(DoubleType(), 0.0)},
    upper_bounds={1: to_bytes(LongType(), 9), 2: to_bytes(DoubleType(), 1.0)},
)


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("id = 4", False),
        ("id = 5", True),
        ("id in (1, 4)", False),
        ("id > 8.5", True),
        ("id > 9", False),
        ("id > 9.5", False),
        ("id not in (5, 6)", True),
        ("not (id > 4)", False),
        ("id is null", True),
        ("id = null", False),
        ("g > 5", True),  # the bounds do not know NaN
        ("g >= 5", True),
        ("not (g < 5)", True),
        ("g <> 5", True),
        ("g < 0", False),
        ("g = 5", False),
    ],
)
def test_bounds_of_a_file_never_lose_a_row(condition: str, kept: bool) -> None:
    assert _InclusiveMetricsEvaluator(SCHEMA, relaxed(condition, SCHEMA)).eval(FILE) is kept


def test_required_field_of_an_optional_struct_is_null_with_it() -> None:
    target = Target("addr.zip", LongType(), "addr")

    assert is_null(target, True) == IsNull(term=Reference("addr"))
    assert is_null(Target("id", LongType(), None), True) == AlwaysFalse()


def test_mirrored_twice_and_negated_twice_is_the_same_order() -> None:
    orders = [c for c in Comparison if c not in {Comparison.EQUAL, Comparison.SAME}]

    assert [c.mirrored().mirrored() for c in Comparison] == list(Comparison)
    assert [c.negated().negated() for c in orders] == orders


def test_joins_of_no_part_are_neutral() -> None:
    one = compare(Target("id", LongType(), "id"), Comparison.EQUAL, 1, True, zone=None)

    assert one is not None
    assert one == EqualTo(term=Reference("id"), value=literal(1))
    assert (all_of([]), any_of([])) == (AlwaysTrue(), AlwaysFalse())
    assert all_of([one]) == any_of([one]) == one
