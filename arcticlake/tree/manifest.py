"""Manifest entries → FileEntry: where a file lies in the tree, by its partition spec.

A file under `[user fields…, bucket[N](bucket key)]` with bucket value v is in node (N - 1, v).
A file under another bucket column, or a bucket count that is no power of two, may hold any key
of its partition: it counts as a file of the root.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import DataFile, ManifestEntry
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import IntegerType, LongType, PrimitiveType

from arcticlake.errors import CorruptData
from arcticlake.table.hidden import SEQ_ID
from arcticlake.table.spec import TableSpec
from arcticlake.tree.files import Bounds, FileEntry, Role
from arcticlake.tree.node import ROOT, Node

_INT_BYTES = 4


@dataclass(frozen=True, slots=True)
class _Reading:
    """How the partition record of one Iceberg spec is read."""

    positions: tuple[int, ...]
    """Places of the user's fields in the record."""
    bucket: int | None
    buckets: int


def file_entries(
    entries: Sequence[ManifestEntry],
    role: Role,
    spec: TableSpec,
    iceberg_specs: Mapping[int, PartitionSpec],
    row_deletes: Mapping[str, tuple[DataFile, ...]],
) -> list[FileEntry]:
    """Return the planner's description of every live data file."""
    readings = {
        spec_id: _plan_reading(iceberg_spec, spec)
        for spec_id, iceberg_spec in iceberg_specs.items()
    }
    key_types = _types(spec, spec.key_ids)
    sort_types = _types(spec, spec.sort_ids)
    found = []
    for entry in entries:
        file = entry.data_file
        reading = readings[file.spec_id]
        if reading is None:
            message = (
                f"table {spec.name}: file {file.file_path} lies under a partition spec of another "
                "tool that lacks fields of the table; rewrite it with the table's own spec"
            )
            raise CorruptData(message)
        lower, upper = file.lower_bounds or {}, file.upper_bounds or {}
        found.append(
            FileEntry(
                path=file.file_path,
                role=role,
                partition=tuple(file.partition[position] for position in reading.positions),
                node=_node(file, reading),
                rows=file.record_count,
                bytes=file.file_size_in_bytes,
                key_lower=_bounds(lower, key_types),
                key_upper=_bounds(upper, key_types),
                sort_lower=_bounds(lower, sort_types),
                sort_upper=_bounds(upper, sort_types),
                snapshot_id=entry.snapshot_id or 0,
                sequence=entry.sequence_number or 0,
                data_file=file,
                oldest=_oldest(role, lower),
                row_deletes=row_deletes.get(file.file_path, ()),
            )
        )
    return found


def _types(spec: TableSpec, ids: Sequence[int]) -> list[tuple[int, PrimitiveType]]:
    kinds = [(field_id, spec.schema.find_type(field_id)) for field_id in ids]
    return [(field_id, kind) for field_id, kind in kinds if isinstance(kind, PrimitiveType)]


def _plan_reading(iceberg_spec: PartitionSpec, spec: TableSpec) -> _Reading | None:
    places = {
        (field.source_id, str(field.transform)): place
        for place, field in enumerate(iceberg_spec.fields)
    }
    wanted = [(term.source_id, str(term.transform)) for term in spec.partition]
    if any(term not in places for term in wanted):
        return None
    bucket, buckets = None, 1
    for place, field in enumerate(iceberg_spec.fields):
        transform = field.transform
        if field.source_id == spec.bucket_id and isinstance(transform, BucketTransform):
            count = transform.num_buckets
            if count & (count - 1) == 0:
                bucket, buckets = place, count
    return _Reading(tuple(places[term] for term in wanted), bucket, buckets)


def _node(file: DataFile, reading: _Reading) -> Node:
    if reading.bucket is None:
        return ROOT
    return Node(reading.buckets - 1, file.partition[reading.bucket])


def _oldest(role: Role, lower: Mapping[int, bytes]) -> int:
    """Return the lowest sequence that rows of a change file have of their own; 0 for none."""
    if role is Role.BASE or SEQ_ID not in lower:
        return 0
    oldest = _decode(LongType(), lower[SEQ_ID])
    assert isinstance(oldest, int)
    return oldest


def _bounds(raw: Mapping[int, bytes], kinds: Sequence[tuple[int, PrimitiveType]]) -> Bounds:
    return tuple(
        _decode(kind, raw[field_id]) if field_id in raw else None for field_id, kind in kinds
    )


def _decode(kind: PrimitiveType, raw: bytes) -> object:
    if isinstance(kind, LongType) and len(raw) == _INT_BYTES:
        kind = IntegerType()  # written before the column was widened
    value: object = from_bytes(kind, raw)
    return value
