from __future__ import annotations

from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, DayTransform
from pyiceberg.types import LongType, NestedField

from arcticlake.commit.specs import match_spec, plan_spec, schema_of
from tests.commit.lab import Term, bucket

DAY = Term(3, DayTransform(), "created_day")
SPEC = PartitionSpec(
    PartitionField(3, 1000, DayTransform(), "created_day"),
    PartitionField(1, 1001, BucketTransform(4), "id_bucket_4"),
    spec_id=0,
)


def test_a_spec_is_matched_by_column_and_transform_in_order() -> None:
    assert match_spec([SPEC], (DAY, *bucket(4))) is SPEC
    assert match_spec([SPEC], (*bucket(4), DAY)) is None
    assert match_spec([SPEC], bucket(4)) is None
    renamed = Term(1, BucketTransform(4), "key_bucket_4")
    assert match_spec([SPEC], (DAY, renamed)) is SPEC


def test_a_new_spec_takes_over_known_fields_and_numbers_the_rest() -> None:
    spec = plan_spec([SPEC], (DAY, *bucket(8)), last_field_id=1001)

    assert spec.spec_id == 1
    assert [(f.field_id, f.name) for f in spec.fields] == [
        (1000, "created_day"),
        (1002, "id_bucket_8"),
    ]


def test_a_name_that_another_field_has_gets_a_suffix() -> None:
    """Spark's `partitions` table fails on two fields with one name."""
    other = Term(9, BucketTransform(4), "id_bucket_4")

    spec = plan_spec([SPEC], (DAY, other), last_field_id=1001)

    assert spec.fields[1].name == "id_bucket_4_1002"


def test_the_schema_of_a_spec_is_the_newest_that_has_its_columns() -> None:
    new = Schema(NestedField(1, "id", LongType()), schema_id=1)
    old = Schema(*new.fields, NestedField(3, "created", LongType()), schema_id=0)

    assert schema_of(SPEC, (new, old)) is old
    assert schema_of(PartitionSpec(SPEC.fields[1]), (new, old)) is new
    assert schema_of(SPEC, (new,)) is new
