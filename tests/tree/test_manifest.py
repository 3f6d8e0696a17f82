"""Manifest records become file entries: place in the tree, bounds, and what cannot be placed."""

from __future__ import annotations

import pytest
from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import DataFile, ManifestEntry, ManifestEntryStatus
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.transforms import BucketTransform, IdentityTransform, MonthTransform, Transform
from pyiceberg.typedef import Record
from pyiceberg.types import DoubleType, FloatType, IntegerType, LongType, PrimitiveType, StringType

from arcticlake.errors import CorruptData
from arcticlake.table.ddl import schema_from_ddl
from arcticlake.table.spec import TableSpec, plan_table
from arcticlake.tree.files import FileEntry, Role
from arcticlake.tree.manifest import file_entries
from arcticlake.tree.node import ROOT, Node

Value = int | float | str
SPEC = plan_table(
    "db.t",
    schema_from_ddl("id bigint, name string, day date, f double"),
    primary_key=["id", "name"],
    partition_by=["month(day)"],
    sort_by=["f"],
    bucket_by=None,
    options={},
)


def iceberg_spec(*fields: tuple[int, Transform]) -> PartitionSpec:  # type: ignore[type-arg]
    return PartitionSpec(
        *(
            PartitionField(source, 1000 + number, transform, f"f{number}")
            for number, (source, transform) in enumerate(fields)
        )
    )


def entry(
    spec: PartitionSpec,
    *partition: object,
    bounds: dict[int, tuple[PrimitiveType, Value, Value]] | None = None,
    table: TableSpec = SPEC,
) -> FileEntry:
    known = bounds or {}
    file = DataFile.from_args(
        file_path="x.parquet",
        partition=Record(*partition),
        record_count=3,
        file_size_in_bytes=99,
        lower_bounds={n: to_bytes(kind, low) for n, (kind, low, _) in known.items()},
        upper_bounds={n: to_bytes(kind, high) for n, (kind, _, high) in known.items()},
    )
    file.spec_id = 7
    record = ManifestEntry.from_args(
        status=ManifestEntryStatus.ADDED, snapshot_id=5, sequence_number=4, data_file=file
    )
    (found,) = file_entries([record], Role.BASE, table, {7: spec}, {})
    return found


def test_the_bucket_of_a_file_is_its_node_and_the_rest_its_partition() -> None:
    """IDX-02: node (mask, index) is bucket value index of bucket[mask + 1]."""
    found = entry(iceberg_spec((3, MonthTransform()), (1, BucketTransform(8))), 600, 5)

    assert (found.partition, found.node) == ((600,), Node(7, 5))
    assert (found.rows, found.bytes, found.snapshot_id, found.sequence) == (3, 99, 5, 4)
    assert (found.path, found.role) == ("x.parquet", Role.BASE)


def test_fields_are_found_by_source_and_transform_not_by_place() -> None:
    found = entry(iceberg_spec((1, BucketTransform(2)), (3, MonthTransform())), 1, 600)

    assert (found.partition, found.node) == ((600,), Node(1, 1))


@pytest.mark.parametrize("other", [(1, BucketTransform(6)), (2, BucketTransform(8))])
def test_a_file_under_another_bucket_may_hold_any_key(
    other: tuple[int, Transform],  # type: ignore[type-arg]
) -> None:
    assert entry(iceberg_spec((3, MonthTransform()), other), 600, 3).node == ROOT


def test_a_file_without_a_bucket_lies_at_the_root() -> None:
    assert entry(iceberg_spec((3, MonthTransform())), 600).node == ROOT


def test_a_file_that_lacks_a_partition_field_stops_everything() -> None:
    with pytest.raises(CorruptData, match=r"db\.t: file x\.parquet lies under a partition spec"):
        entry(iceberg_spec((3, IdentityTransform()), (1, BucketTransform(4))), 600, 3)


def test_bounds_are_decoded_by_key_and_sort_column() -> None:
    """IDX-04, IDX-05."""
    spec = iceberg_spec((3, MonthTransform()), (1, BucketTransform(4)))

    found = entry(
        spec,
        600,
        3,
        bounds={
            1: (LongType(), -5, 2**40),
            2: (StringType(), "", "ü" * 30),
            4: (DoubleType(), -0.5, 9.0),
        },
    )

    assert (found.key_lower, found.key_upper) == ((-5, ""), (2**40, "ü" * 30))
    assert (found.sort_lower, found.sort_upper) == ((-0.5,), (9.0,))


def test_bounds_that_were_written_before_a_column_was_widened_are_read() -> None:
    spec = iceberg_spec((3, MonthTransform()), (1, BucketTransform(4)))

    found = entry(spec, 600, 3, bounds={1: (IntegerType(), -5, 7), 4: (FloatType(), 0.5, 1.5)})

    assert (found.key_lower, found.key_upper) == ((-5, None), (7, None))
    assert (found.sort_lower, found.sort_upper) == ((0.5,), (1.5,))
