"""The schema of the change table: the base columns by id, then the hidden ones.

Hidden columns have field ids far above any business column, so the two tables share the ids of
all business columns, now and after every evolution, and one scan can read files of both.

Pure.
"""

from __future__ import annotations

from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType, TimestamptzType

from arcticlake.table.change import ACTION, ORDER, SEQ, TS

HIDDEN_ID_FIRST = 1_000_000_001
SEQ_ID = HIDDEN_ID_FIRST + 3

HIDDEN_FIELDS = (
    NestedField(HIDDEN_ID_FIRST, ACTION, StringType(), required=True),
    NestedField(HIDDEN_ID_FIRST + 1, TS, TimestamptzType(), required=True),
    NestedField(HIDDEN_ID_FIRST + 2, ORDER, LongType(), required=True),
    NestedField(SEQ_ID, SEQ, LongType(), required=False),
)


def change_schema(base: Schema, key_ids: tuple[int, ...]) -> Schema:
    """Return the schema of the change table.

    A delete knows its key and nothing else, so only key columns stay required.
    """
    business = [
        NestedField(c.field_id, c.name, c.field_type, required=c.field_id in key_ids, doc=c.doc)
        for c in base.fields
    ]
    return Schema(*business, *HIDDEN_FIELDS)
