"""Columns of a file as the table wants them, matched by field id.

A file keeps the names and types of the day it was written. Its columns are found by field id at
every level, so renamed ones are found, dropped and re-added ones are not, missing ones are null
and narrower ones are widened. Files without ids (another tool's) are matched by name.

Pure.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

FIELD_ID = b"PARQUET:field_id"


def field_id(field: pa.Field) -> int | None:
    """Return the Iceberg id that a Parquet field carries."""
    raw = (field.metadata or {}).get(FIELD_ID)
    return int(raw) if raw is not None else None


def find_field(wanted: pa.Field, present: pa.Schema | pa.StructType) -> pa.Field | None:
    """Return the field of a file that holds a wanted column; by name where the file has no ids."""
    fields = [present.field(number) for number in range(_width(present))]
    identity = field_id(wanted)
    with_ids = [field for field in fields if field_id(field) is not None]
    if identity is None or not with_ids:
        return next((field for field in fields if field.name == wanted.name), None)
    return next((field for field in with_ids if field_id(field) == identity), None)


def _width(present: pa.Schema | pa.StructType) -> int:
    return len(present) if isinstance(present, pa.Schema) else present.num_fields


def project(batch: pa.RecordBatch, wanted: pa.Schema) -> pa.RecordBatch:
    """Return a batch of a file with exactly the wanted columns and types."""
    columns = []
    for field in wanted:
        found = find_field(field, batch.schema)
        if found is None:
            columns.append(pa.nulls(batch.num_rows, field.type))
        else:
            position = batch.schema.get_field_index(found.name)
            columns.append(_shape(batch.column(position), found, field))
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema([_optional(f) for f in wanted]))


def _optional(field: pa.Field) -> pa.Field:
    return field.with_nullable(True)


def _shape(array: pa.Array, found: pa.Field, wanted: pa.Field) -> pa.Array:
    """Return an array in the wanted type, children matched by id."""
    kind = wanted.type
    if pa.types.is_struct(kind) and pa.types.is_struct(array.type):
        return _shape_struct(array, found, wanted)
    if pa.types.is_map(kind) and pa.types.is_map(array.type):
        keys = _shape(array.keys, found.type.key_field, kind.key_field)
        items = _shape(array.items, found.type.item_field, kind.item_field)
        return pa.MapArray.from_arrays(_offsets(array), keys, items, type=kind, mask=_mask(array))
    if pa.types.is_list(kind) and _is_any_list(array.type):
        values = _shape(array.values, found.type.value_field, kind.value_field)
        return pa.ListArray.from_arrays(
            _offsets(array).cast(pa.int32()), values, type=kind, mask=_mask(array)
        )
    return array if array.type == kind else pc.cast(array, kind)


def _is_any_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _shape_struct(array: pa.Array, found: pa.Field, wanted: pa.Field) -> pa.Array:
    children = []
    for number in range(wanted.type.num_fields):
        target = wanted.type.field(number)
        source = find_field(target, found.type)
        if source is None:
            children.append(pa.nulls(len(array), target.type))
        else:
            position = found.type.get_field_index(source.name)
            child = array.field(position)
            children.append(_shape(child, source, target))
    fields = [_optional(wanted.type.field(number)) for number in range(wanted.type.num_fields)]
    return pa.StructArray.from_arrays(children, fields=fields, mask=_mask(array)).cast(wanted.type)


def _offsets(array: pa.Array) -> pa.Array:
    # from_arrays refuses sliced offsets together with a mask, so they are copied.
    return pa.array(array.offsets.to_numpy(zero_copy_only=False))


def _mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None
