"""Rows of a file that a user names: Parquet, CSV or JSON lines, told apart by its ending.

Parquet brings types of its own. Text does not, so each value is read as the type of the table's
column, strictly: a value that does not fit is an error with its file, line, column and text, and
nothing is rounded or turned into NULL. In CSV an empty field is NULL and "" is the empty string.
Columns that the table lacks (an operation, a log position) are whole numbers if all of their
values are, else text.

Touches that file.
"""

from __future__ import annotations

import json
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from polars.exceptions import PolarsError

from arcticlake.cli.parquet import read_parquet_rows
from arcticlake.errors import InvalidRequest, NotFound

ZONE = r"(?i)[0-9](z|[+-][0-9]{2}(:?[0-9]{2})?)$"
DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
SHOWN_MAX = 60
_NAMES = {
    "bool": "a boolean (true or false)",
    "int32": "a whole number (int)",
    "int64": "a whole number (bigint)",
    "float": "a number (float)",
    "double": "a number (double)",
    "string": "text",
}


def read_rows(path: Path, target: pa.Schema) -> pa.Table:
    """Return the rows of a file; text becomes the types that `target` names."""
    if not path.is_file():
        message = f"file {path} does not exist" if not path.exists() else f"{path} is not a file"
        raise NotFound(message)
    match path.suffix.lower():
        case ".parquet" | ".pq":
            return read_parquet_rows(path)
        case ".csv":
            return _read_csv(path, target)
        case ".jsonl" | ".ndjson" | ".json":
            return _read_json_lines(path, target)
    message = (
        f"file {path}: the ending {path.suffix or 'is missing'} is not known; use .parquet, .csv, "
        ".jsonl, .ndjson or .json (one object a line)"
    )
    raise InvalidRequest(message)


def _read_csv(path: Path, target: pa.Schema) -> pa.Table:
    try:
        text = pl.read_csv(path, infer_schema=False).to_arrow()
    except PolarsError as error:
        message = f"file {path} cannot be read as CSV: {str(error).partition(chr(10))[0]}"
        raise InvalidRequest(message) from error
    kinds = {field.name.lower(): field.type for field in target}
    columns = []
    for name in text.column_names:
        column = text.column(name).cast(pa.string())
        kind = kinds.get(name.lower())
        columns.append(
            _number_or_text(column) if kind is None else _from_text(column, kind, path, name)
        )
    return pa.table(columns, names=text.column_names)


def _number_or_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        return pc.cast(column, pa.int64())
    except pa.ArrowInvalid:
        return column


def _from_text(
    column: pa.ChunkedArray, kind: pa.DataType, path: Path, name: str
) -> pa.ChunkedArray:
    """Return text as another type; the first value that does not fit is named."""
    if pa.types.is_nested(kind):
        message = (
            f"file {path}: column {name} is {kind}, which CSV cannot hold; use JSON lines or "
            "Parquet"
        )
        raise InvalidRequest(message)
    try:
        return _cast_text(column, kind)
    except (pa.ArrowInvalid, ValueError):
        for row, value in enumerate(column):
            try:
                _cast_text(pa.chunked_array([[value.as_py()]], pa.string()), kind)
            except (pa.ArrowInvalid, ValueError) as error:
                # A quoted field may hold line ends, so rows are counted and not lines.
                raise _misfit(path, f"row {row + 1}", name, value.as_py(), kind) from error
        raise


def _cast_text(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_string(kind):
        return column
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        decoded = [None if text is None else _bytes(text) for text in column.to_pylist()]
        return pa.chunked_array([pa.array(decoded, kind)])
    trimmed = pc.utf8_trim_whitespace(column)
    if pa.types.is_timestamp(kind):
        whole = pc.replace_substring_regex(trimmed, DAY, r"\0T00:00:00")
        if kind.tz is None:
            return pc.cast(whole, kind)
        zoned = pc.match_substring_regex(whole, ZONE)
        in_utc = pc.if_else(zoned, whole, pc.binary_join_element_wise(whole, "Z", ""))
        return pc.cast(in_utc, kind)
    return pc.cast(trimmed, kind)


def _read_json_lines(path: Path, target: pa.Schema) -> pa.Table:
    fields = {field.name.lower(): field for field in target}
    found: dict[str, list[object]] = {}
    count = 0
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            for name, value in _parse_line(path, number, line).items():
                values = found.setdefault(name, [None] * count)
                if len(values) > count:
                    message = f"file {path}, line {number}: {name} comes twice"
                    raise InvalidRequest(message)
                field = fields.get(name.lower())
                values.append(
                    value if field is None else _value(path, number, name, value, field.type)
                )
            count += 1
            for values in found.values():
                values.extend([None] * (count - len(values)))
    return pa.table({name: _array(path, name, found[name], fields) for name in found})


def _parse_line(path: Path, number: int, line: str) -> Mapping[str, object]:
    try:
        parsed = json.loads(line, parse_float=Decimal)
    except ValueError as error:
        message = f"file {path}, line {number}: not JSON: {error}"
        raise InvalidRequest(message) from error
    if not isinstance(parsed, dict):
        message = f"file {path}, line {number}: each line must be one JSON object"
        raise InvalidRequest(message)
    return parsed


def _array(
    path: Path, name: str, values: Sequence[object], fields: Mapping[str, pa.Field]
) -> pa.Array:
    field = fields.get(name.lower())
    try:
        return pa.array(values) if field is None else pa.array(values, field.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        wanted = "of one kind" if field is None else f"a column of {field.type}"
        message = f"file {path}: the values of {name} do not fit {wanted}: {error}"
        raise InvalidRequest(message) from error


def _value(path: Path, number: int, name: str, value: object, kind: pa.DataType) -> object:
    try:
        return from_json(value, kind)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise _misfit(path, f"line {number}", name, value, kind) from error


def from_json(value: object, kind: pa.DataType) -> object:
    """Return a JSON value as Python's value of an Arrow type; ValueError if it does not fit."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        given = _object(value)
        unknown = set(given) - {field.name for field in kind}
        if unknown:
            raise ValueError(unknown)
        return {field.name: from_json(given.get(field.name), field.type) for field in kind}
    if pa.types.is_map(kind):
        return [
            (_map_key(key, kind.key_type), from_json(inner, kind.item_type))
            for key, inner in _object(value).items()
        ]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        if not isinstance(value, list):
            raise TypeError(value)
        return [from_json(inner, kind.value_type) for inner in value]
    return next(read for holds, read in _SCALARS if holds(kind))(value, kind)


def _map_key(key: str, kind: pa.DataType) -> object:
    """Return a map key, which JSON always writes as text."""
    if pa.types.is_integer(kind):
        return int(key)
    return from_json(key, kind)


def _object(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise TypeError(value)
    return value


def _expect(value: object, *kinds: type) -> object:
    """Return a value of one of some types; True and False are no numbers."""
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise TypeError(value)
    return value


def _bytes(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except NotBase64 as error:
        raise ValueError(text) from error


def _decimal(value: object, _: pa.DataType) -> Decimal:
    try:
        return Decimal(str(_expect(value, str, int, Decimal)))
    except InvalidOperation as error:
        raise ValueError(value) from error


def _timestamp(value: object, kind: pa.DataType) -> datetime:
    moment = datetime.fromisoformat(str(_expect(value, str)))
    if kind.tz is None:
        if moment.tzinfo is not None:
            raise ValueError(value)
        return moment
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


_SCALARS: tuple[
    tuple[Callable[[pa.DataType], bool], Callable[[object, pa.DataType], object]], ...
] = (
    (pa.types.is_boolean, lambda value, _: _expect(value, bool)),
    (pa.types.is_integer, lambda value, _: _expect(value, int)),
    (pa.types.is_floating, lambda value, _: float(str(_expect(value, int, Decimal, float, str)))),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_date, lambda value, _: date.fromisoformat(str(_expect(value, str)))),
    (pa.types.is_timestamp, _timestamp),
    (pa.types.is_string, lambda value, _: _expect(value, str)),
    (lambda _: True, lambda value, _: _bytes(str(_expect(value, str)))),
)


def _misfit(path: Path, place: str, name: str, value: object, kind: pa.DataType) -> InvalidRequest:
    shown = str(value) if len(str(value)) <= SHOWN_MAX else f"{str(value)[:SHOWN_MAX]}…"
    return InvalidRequest(
        f"file {path}, {place}: column {name} is {_plain_name(kind)}, and {shown!r} is none; "
        "nothing was written"
    )


def _plain_name(kind: pa.DataType) -> str:
    """Return a type as people know it, with the form that its text takes."""
    if pa.types.is_timestamp(kind):
        zone = "" if kind.tz is None else ", UTC if it names no zone"
        return f"a timestamp (2026-11-15T12:00:00{zone})"
    if pa.types.is_date(kind):
        return "a date (2026-11-15)"
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return "binary (base64)"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return _NAMES.get(str(kind), str(kind))
