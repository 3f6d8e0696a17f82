"""Incoming rows, checked and brought into the table's own columns.

Whatever the source (Spark, pandas, Polars, Arrow), the same rules hold, stated on Arrow schemas:

  * names are matched without case; every table column must be there, once; a column that the
    table lacks is an error, unless only `order_by` or `delete_when` needed it;
  * a value may change its type only where nothing can be lost in silence: numbers to numbers
    with a range check, dates to timestamps, never text to numbers or the reverse;

`plan_columns` decides; `cast_rows` and the Spark writer both follow its answer. Rules on the
values (no NULL in a key, no key twice) are the writer's, who sees every row.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from polars.exceptions import PolarsError

from arcticlake.errors import InvalidRequest
from arcticlake.table.change import ACTION, ORDER, SEQ, TS, Action

_STRING_LITERAL = re.compile(r"'(?:[^'\\]|\\.|'')*'")
_NAME = re.compile(r"`([^`]+)`|(\w+)")


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """Which incoming column feeds which table column."""

    sources: tuple[str, ...]
    """Names in the incoming frame, one for each target, in target order."""
    targets: tuple[str, ...]


def rows_of(frame: object, *, table: str) -> pa.Table:
    """Return any frame that speaks Arrow (pandas, Polars, Arrow) or a list of dicts as Arrow."""
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, list) and all(isinstance(row, dict) for row in frame):
        return _rows_of_dicts(frame, table)
    if hasattr(frame, "__arrow_c_stream__"):
        rows = pa.table(_with_index(frame))
        index = [name for name in rows.column_names if name.startswith("__index_level_")]
        return rows.drop_columns(index) if index else rows
    message = (
        f"table {table}: a {type(frame).__name__} is no frame; pass a Spark, pandas or Polars "
        "DataFrame, an Arrow table or a list of dicts"
    )
    raise InvalidRequest(message)


def _rows_of_dicts(dicts: Sequence[Mapping[str, object]], table: str) -> pa.Table:
    """Return dicts as rows; every name of any row is a column, so that none gets lost."""
    names = dict.fromkeys(name for row in dicts for name in row)
    try:
        return pa.table({name: pa.array([row.get(name) for row in dicts]) for name in names})
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        message = f"table {table}: the rows are not of one kind: {error}"
        raise InvalidRequest(message) from error


def _with_index(frame: object) -> object:
    """Return a pandas frame with the named levels of its index as columns; Arrow drops them."""
    names = getattr(getattr(frame, "index", None), "names", ())
    if isinstance(names, Sequence) and any(name is not None for name in names):
        return frame.reset_index()  # type: ignore[attr-defined]
    return frame


def plan_columns(
    source: pa.Schema,
    target: pa.Schema,
    *,
    table: str,
    spare: Sequence[str] = (),
    partial: bool = False,
) -> ColumnPlan:
    """Return which source column feeds which target column, or refuse with the reason.

    `spare` names source columns that may be dropped; `partial` allows target columns to be
    missing (a delete needs its key only).
    """
    by_name = _by_lower_name(source.names, table)
    known = {name.lower() for name in target.names}
    spared = {name.lower() for name in spare}
    extra = [name for lower, name in by_name.items() if lower not in known | spared]
    if extra:
        raise InvalidRequest(_extra(extra, target.names, table))
    missing = [name for name in target.names if name.lower() not in by_name]
    if missing and not partial:
        message = (
            f"table {table}: the rows lack column {', '.join(missing)}; every column must be "
            "given, with NULL where there is no value"
        )
        raise InvalidRequest(message)
    targets = tuple(name for name in target.names if name.lower() in by_name)
    sources = tuple(by_name[name.lower()] for name in targets)
    for name, column in zip(targets, sources, strict=True):
        given, wanted = source.field(column).type, target.field(name).type
        if not assignable(given, wanted):
            message = (
                f"table {table}: column {name} is {wanted}, the rows bring {given}; cast it "
                "before writing"
            )
            raise InvalidRequest(message)
    return ColumnPlan(sources, targets)


def _by_lower_name(names: Sequence[str], table: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in names:
        if name.lower() in found:
            message = f"table {table}: column {name} comes twice in the rows; keep one"
            raise InvalidRequest(message)
        found[name.lower()] = name
    return found


def _extra(extra: Sequence[str], known: Sequence[str], table: str) -> str:
    near = get_close_matches(extra[0], known, n=1)
    hint = f"did you mean {near[0]}?" if near else "drop it, or add_column() first"
    return f"table {table}: there is no column {', '.join(extra)}; {hint}"


def assignable(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of one type may enter a column of another."""
    if given == wanted or pa.types.is_null(given):
        return True
    if pa.types.is_dictionary(given):
        return assignable(given.value_type, wanted)
    return (
        (_is_number(given) and _is_number(wanted) and not _rounds(given, wanted))
        or (_is_text(given) and _is_text(wanted))
        or (_is_bytes(given) and _is_bytes(wanted))
        or (pa.types.is_boolean(given) and pa.types.is_boolean(wanted))
        or (pa.types.is_date(given) and (pa.types.is_date(wanted) or pa.types.is_timestamp(wanted)))
        or (pa.types.is_timestamp(given) and pa.types.is_timestamp(wanted))
        or _assignable_nested(given, wanted)
    )


def _assignable_nested(given: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_struct(given) and pa.types.is_struct(wanted):
        names = [field.name for field in wanted]
        return [field.name for field in given] == names and all(
            assignable(given.field(name).type, wanted.field(name).type) for name in names
        )
    if pa.types.is_map(wanted):
        if pa.types.is_map(given):
            return assignable(given.key_type, wanted.key_type) and assignable(
                given.item_type, wanted.item_type
            )
        return False
    if _is_list(given) and _is_list(wanted):
        return assignable(given.value_type, wanted.value_type)
    return False


def _is_number(kind: pa.DataType) -> bool:
    numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return any(test(kind) for test in numbers)


def _rounds(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a cast would round in silence: a binary fraction is no exact decimal."""
    return bool(pa.types.is_floating(given) and pa.types.is_decimal(wanted))


def _is_text(kind: pa.DataType) -> bool:
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(test(kind) for test in texts)


def _is_bytes(kind: pa.DataType) -> bool:
    tests = (
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_binary_view,
        pa.types.is_fixed_size_binary,
    )
    return any(test(kind) for test in tests)


def _is_list(kind: pa.DataType) -> bool:
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(test(kind) for test in lists)


def cast_rows(rows: pa.Table, plan: ColumnPlan, target: pa.Schema, *, table: str) -> pa.Table:
    """Return the planned columns in the table's types; target columns without source are null."""
    planned = dict(zip(plan.targets, plan.sources, strict=True))
    columns = []
    for field in target:
        if field.name not in planned:
            columns.append(pa.chunked_array([pa.nulls(rows.num_rows, field.type)]))
            continue
        columns.append(_cast(rows.column(planned[field.name]), field, table))
    optional = [field.with_nullable(True) for field in target]  # the writer looks for NULLs
    return pa.Table.from_arrays(columns, schema=pa.schema(optional))


def _cast(column: pa.ChunkedArray, field: pa.Field, table: str) -> pa.ChunkedArray:
    if column.type == field.type:
        return column
    lossy_float = pa.types.is_floating(column.type) and pa.types.is_floating(field.type)
    try:
        if pa.types.is_timestamp(column.type) and pa.types.is_timestamp(field.type):
            return _cast_timestamp(column, field.type)
        if pa.types.is_dictionary(column.type):
            return _cast(_decoded(column), field, table)
        if pa.types.is_integer(column.type) and pa.types.is_decimal(field.type):
            # Arrow asks for room for every number of the type, not only for those that are there.
            return column.cast(pa.decimal256(76, field.type.scale)).cast(field.type)
        return pc.cast(column, field.type, safe=not lossy_float)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        message = f"table {table}: column {field.name}: {error}; the column is {field.type}"
        raise InvalidRequest(message) from error


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the values of a dictionary column; Arrow itself decodes few of the kinds there are."""
    kind = column.type.value_type
    plain = pa.string() if _is_text(kind) else pa.binary() if _is_bytes(kind) else kind
    chunks = [chunk.dictionary.cast(plain).take(chunk.indices) for chunk in column.chunks]
    return pa.chunked_array(chunks, plain)


def _cast_timestamp(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """Return timestamps in the wanted form; one without a zone stands for UTC."""
    if column.type.tz is None and wanted.tz is not None:
        return pc.assume_timezone(column, "UTC").cast(wanted)
    return column.cast(wanted)


def changes_of(
    rows: pa.Table,
    target: pa.Schema,
    *,
    order: pa.ChunkedArray | None,
    deleted: pa.Array | None,
    entered_micros: int,
    action: Action = Action.UPDATE_AFTER,
) -> pa.Table:
    """Return checked business rows as change rows in the change table's schema."""
    count = rows.num_rows
    if order is None:
        order = pa.chunked_array([pa.array(range(count), pa.int64())])
    actions = pa.array([str(action)], pa.string()).take(pa.nulls(count, pa.int64()).fill_null(0))
    if deleted is not None:
        actions = pc.if_else(pc.fill_null(deleted, False), str(Action.DELETE), actions)
    hidden = {
        ACTION: actions,
        TS: pa.repeat(pa.scalar(entered_micros, pa.int64()), count).cast(target.field(TS).type),
        ORDER: order,
        SEQ: pa.nulls(count, pa.int64()),
    }
    columns = [
        hidden[field.name] if field.name in hidden else rows.column(field.name) for field in target
    ]
    optional = pa.schema([field.with_nullable(True) for field in target])
    return pa.Table.from_arrays(columns, schema=optional)


def spare_columns(order_by: str | None, delete_when: str | None, names: Sequence[str]) -> list[str]:
    """Return the columns that only `order_by` or `delete_when` may need; they are dropped."""
    bare = _STRING_LITERAL.sub("", delete_when or "")
    words = {(quoted or word).lower() for quoted, word in _NAME.findall(bare)}
    used = words | ({order_by.lower()} if order_by else set())
    return [name for name in names if name.lower() in used]


def order_of(rows: pa.Table, order_by: str | None, *, table: str) -> pa.ChunkedArray | None:
    """Return the source positions of the rows as longs; None when no column names them."""
    if order_by is None:
        return None
    column = rows.column(_find(rows, order_by, "order_by", table))
    if not pa.types.is_integer(column.type):
        message = (
            f"table {table}: order_by {order_by} is {column.type}; it must be a whole number, such "
            "as a log position or an offset"
        )
        raise InvalidRequest(message)
    if column.null_count:
        message = f"table {table}: {column.null_count} rows have NULL in order_by {order_by}"
        raise InvalidRequest(message)
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid as error:
        message = f"table {table}: order_by {order_by}: {error}; it must fit a bigint"
        raise InvalidRequest(message) from error


def deleted_of(rows: pa.Table, delete_when: str | None, *, table: str) -> pa.Array | None:
    """Return which rows a SQL condition marks as deletes; None without a condition."""
    if delete_when is None:
        return None
    try:
        condition = pl.sql_expr(delete_when)
        marks = _columns_named(rows, condition.meta.root_names()).select(
            condition.cast(pl.Boolean).alias("deleted")
        )["deleted"]
    except PolarsError as error:
        message = f"table {table}: delete_when {delete_when!r} cannot be evaluated: {error}"
        raise InvalidRequest(message) from error
    if len(marks) != rows.num_rows:
        message = f"table {table}: delete_when {delete_when!r} must give one answer for each row"
        raise InvalidRequest(message)
    return marks.to_arrow()


def _columns_named(rows: pa.Table, names: Sequence[str]) -> pl.DataFrame:
    """Return the columns that a condition names, without regard to case, under its spelling."""
    known = {name.lower(): name for name in rows.column_names}
    used = [name for name in dict.fromkeys(names) if name.lower() in known]
    frame = pl.from_arrow(rows.select([known[name.lower()] for name in used]).rename_columns(used))
    assert isinstance(frame, pl.DataFrame)
    return frame


def _find(rows: pa.Table, column: str, role: str, table: str) -> str:
    for name in rows.column_names:
        if name.lower() == column.lower():
            return str(name)
    message = f"table {table}: {role} names {column!r}, which is not a column of the rows"
    raise InvalidRequest(message)
