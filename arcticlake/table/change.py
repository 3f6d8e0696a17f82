"""A change row: one insert, update or delete with its place in history.

Beside the business columns a change row carries four hidden ones:

    _action   +I insert, -U before image, +U after image, -D delete
    _ts       when the row entered; for people, it never decides anything
    _order    place inside its commit: the source's position, or the place in the batch
    _seq      normally null: the row inherits the sequence number of the commit of its file;
              a rewrite of change files writes the inherited number down

A row's place in history is (sequence of its commit, `_order`). Hidden columns have field ids
far above any business column, so the two tables share the ids of all business columns.

Pure.
"""

from __future__ import annotations

from enum import StrEnum

from pyiceberg.schema import Schema
from pyiceberg.types import (
    IcebergType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
)

ACTION, TS, ORDER, SEQ = "_action", "_ts", "_order", "_seq"
HIDDEN_COLUMNS = (ACTION, TS, ORDER, SEQ)
HIDDEN_ID_FIRST = 1_000_000_001

HIDDEN_FIELDS = (
    NestedField(HIDDEN_ID_FIRST, ACTION, StringType(), required=True),
    NestedField(HIDDEN_ID_FIRST + 1, TS, TimestamptzType(), required=True),
    NestedField(HIDDEN_ID_FIRST + 2, ORDER, LongType(), required=True),
    NestedField(HIDDEN_ID_FIRST + 3, SEQ, LongType(), required=False),
)


class Action(StrEnum):
    """What a change row does to its key."""

    INSERT = "+I"
    UPDATE_BEFORE = "-U"
    UPDATE_AFTER = "+U"
    DELETE = "-D"


def change_schema(base: Schema, key_ids: tuple[int, ...]) -> Schema:
    """Return the schema of the change table: the base columns by id, then the hidden ones.

    A delete knows its key and nothing else, so only key columns stay required.
    """
    business = [_copy(column, required=column.field_id in key_ids) for column in base.fields]
    return Schema(
        *business,
        *HIDDEN_FIELDS,
        identifier_field_ids=[],
    )


def _copy(column: NestedField, *, required: bool) -> NestedField:
    return NestedField(
        column.field_id, column.name, column.field_type, required=required, doc=column.doc
    )


def field_id_max(kind: IcebergType | Schema) -> int:
    """Return the highest field id in a schema or type, 0 when there is none."""
    match kind:
        case Schema():
            return field_id_max(kind.as_struct())
        case StructType():
            return max(
                (max(f.field_id, field_id_max(f.field_type)) for f in kind.fields), default=0
            )
        case ListType():
            return max(kind.element_id, field_id_max(kind.element_type))
        case MapType():
            ids = (kind.key_id, kind.value_id)
            return max(*ids, field_id_max(kind.key_type), field_id_max(kind.value_type))
    return 0
