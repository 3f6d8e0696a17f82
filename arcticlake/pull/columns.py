"""The three columns that a pull adds, in the words of Spark's own change feed.

    _change_type        insert, update_preimage, update_postimage, delete; overwrite for a batch
                        that replaced rows, told by this one row without values
    _commit_version     the version that brought the row
    _commit_timestamp   when it was committed; for people, it orders nothing

While rows are on their way they carry three more: where they stand among the versions of their
key, their place in the commit, and whether they end a key.

Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from arcticlake.table.change import ORDER, Action

CHANGE_TYPE, COMMIT_VERSION = "_change_type", "_commit_version"
COMMIT_TIMESTAMP = "_commit_timestamp"
TOLD_COLUMNS = (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP)
RANK, ENDS = "__arctic_rank", "__arctic_ends"

INSERT, DELETE, OVERWRITE = "insert", "delete", "overwrite"
UPDATE_BEFORE, UPDATE_AFTER = "update_preimage", "update_postimage"

_TYPE_OF_ACTION = {
    Action.INSERT: INSERT,
    Action.UPDATE_BEFORE: UPDATE_BEFORE,
    Action.UPDATE_AFTER: UPDATE_AFTER,
    Action.DELETE: DELETE,
}
_TOLD = (
    pa.field(CHANGE_TYPE, pa.string()),
    pa.field(COMMIT_VERSION, pa.int64()),
    pa.field(COMMIT_TIMESTAMP, pa.timestamp("us", "UTC")),
)
_TRAVEL = (pa.field(RANK, pa.int64()), pa.field(ORDER, pa.int64()), pa.field(ENDS, pa.bool_()))


def told_schema(business: pa.Schema) -> pa.Schema:
    """Return the schema of an answer: business columns, then the three."""
    return pa.schema([*(field.with_nullable(True) for field in business), *_TOLD])


def travel_schema(business: pa.Schema) -> pa.Schema:
    """Return the schema of rows on their way."""
    return pa.schema([*told_schema(business), *_TRAVEL])


def change_types(actions: pa.Array) -> pa.Array:
    """Return what actions are called in a change feed; a row without one was inserted."""
    known = pa.array([str(action) for action in _TYPE_OF_ACTION], pa.string())
    names = pa.array([*_TYPE_OF_ACTION.values()], pa.string())
    return pc.fill_null(names.take(pc.index_in(actions, known)), INSERT)


def tell(
    business: Sequence[pa.Array],
    types: pa.Array,
    order: pa.Array,
    commit: tuple[int, int, int],
    schema: pa.Schema,
) -> pa.RecordBatch:
    """Return rows on their way; `commit` is version, milliseconds and rank."""
    version, milliseconds, rank = commit
    ends = pc.is_in(types, pa.array([DELETE, UPDATE_BEFORE]))
    values = (version, milliseconds * 1000, rank)
    kinds = (pa.int64(), pa.timestamp("us", "UTC"), pa.int64())
    told = [pa.repeat(pa.scalar(v, k), len(types)) for v, k in zip(values, kinds, strict=True)]
    arrays = [*business, types, *told, order, ends]
    return pa.RecordBatch.from_arrays(arrays, schema=travel_schema(schema))


def overwrite_row(version: int, milliseconds: int, schema: pa.Schema) -> pa.RecordBatch:
    """Return the one row that tells of an overwrite."""
    nothing = [pa.nulls(1, field.type) for field in schema]
    types = pa.array([OVERWRITE], pa.string())
    return tell(nothing, types, pa.nulls(1, pa.int64()), (version, milliseconds, 0), schema)
