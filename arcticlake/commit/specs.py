"""A partition spec is found by what it says, never by a remembered id.

Every depth of the tree is a partition spec of its own, and all of them stand side by side in the
table. Ids are handed out by whoever comes first, and other engines may drop a spec that has no
files (Spark's expire_snapshots with clean_expired_metadata), so a plan always looks its spec up by
the list of (column, transform) and adds it when it is missing.

A partition field has one id for each (column, transform) over all specs; a new spec takes over the
id and the name of a field that exists and gives fresh ones to the rest. Two fields with one name
would break Spark's `partitions` table, so a name that is taken gets its field id as a suffix.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import Transform


class SpecField(Protocol):
    """A transform of one column, with the name to use if the field is new."""

    @property
    def source_id(self) -> int:
        """Id of the column."""

    @property
    def transform(self) -> Transform:  # type: ignore[type-arg]
        """What is made of the column's value."""

    @property
    def name(self) -> str:
        """Name of the partition field."""


def match_spec(specs: Iterable[PartitionSpec], fields: Sequence[SpecField]) -> PartitionSpec | None:
    """Return the spec with exactly these (column, transform) pairs in this order."""
    wanted = [_meaning(field) for field in fields]
    return next((spec for spec in specs if [_meaning(f) for f in spec.fields] == wanted), None)


def plan_spec(
    specs: Sequence[PartitionSpec], fields: Sequence[SpecField], *, last_field_id: int | None
) -> PartitionSpec:
    """Return a new spec for the fields; `last_field_id` is the highest that was ever used."""
    known = {_meaning(field): field for spec in specs for field in spec.fields}
    taken = {field.name for field in known.values()}
    last = PARTITION_FIELD_ID_START - 1 if last_field_id is None else last_field_id
    planned = []
    for field in fields:
        same = known.get(_meaning(field))
        if same is None:
            last += 1
            name = f"{field.name}_{last}" if field.name in taken else field.name
            same = PartitionField(field.source_id, last, field.transform, name)
            taken.add(name)
        planned.append(same)
    return PartitionSpec(*planned, spec_id=max(spec.spec_id for spec in specs) + 1)


def schema_of(spec: PartitionSpec, schemas: Sequence[Schema]) -> Schema:
    """Return the first schema that has all columns of the spec; one may have been dropped since."""
    wanted = {field.source_id for field in spec.fields}
    return next((schema for schema in schemas if wanted <= schema.field_ids), schemas[0])


def _meaning(field: SpecField) -> tuple[int, str]:
    return field.source_id, str(field.transform)
