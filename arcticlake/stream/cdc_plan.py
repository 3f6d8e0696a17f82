"""Operation and images → change rows, as Spark SQL drawn from the table's spec.

    op, older, newer ─ by name ─▶ texts ─ cdc_types ─▶ values ─ judge ─▶ reason ─ split ─▶ rows

An update that changes the key or a partition column is two rows, a delete of the old image and the
new image, so each goes to the leaf that owns it (KUP-01..04). With position p their orders are 2p
and 2p + 1: whatever takes a row away stands before what puts one there.

    update 7 → 9 at position 100      -D key 7  _order 200
                                      +U key 9  _order 201

A position that is too large for that has no order, and the verb refuses the batch.

What a row cannot be made of is told as a reason, and such a row carries its message instead of
values. A truncate is a row too (`TRUNCATE`); the verb gives it its meaning, since only a look at
the table can.

Columns are numbered, so no name of a user's meets one of ours: nᵢ and oᵢ are the texts of the new
and the old image, vᵢ and wᵢ their values.

Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyiceberg.types import DecimalType, NestedField

from arcticlake.stream.cdc_format import ROWS, ChangeRequest, Format, action_column
from arcticlake.stream.cdc_types import (
    Hint,
    cast_text,
    decimal_text,
    name_of,
    quote,
    type_ddl,
    wanted,
)
from arcticlake.table.change import ACTION, ORDER, SEQ, TS
from arcticlake.table.spec import TableSpec

TRUNCATE, REJECT = "truncate", "reject"
"""Actions that never reach the table: it is emptied here; this message was not understood."""

POSITION, REASON, RAW = "__arctic_position", "__arctic_reason", "__arctic_raw"
PLACED, SPLIT, EXTRA = "__arctic_placed", "__arctic_split", "__arctic_extra"
NOTES = pa.schema(
    {
        POSITION: pa.int64(),
        REASON: pa.string(),
        RAW: pa.string(),
        PLACED: pa.bool_(),
        SPLIT: pa.bool_(),
        EXTRA: pa.list_(pa.string()),
    }
)
"""What the verb learns of each row beside its change: PLACED, whether its old partition is known;
SPLIT, whether it is one half of a split update; EXTRA, columns that the table does not have."""

UNAVAILABLE = "__debezium_unavailable_value"
"""What Debezium sends for a large value that an update left alone."""

TEXT_MAX = 100
"""Characters of a bad value that a reason shows."""


def cell_type(spec: TableSpec) -> str:
    """Return the type that values of messages are parsed to.

    Spark makes text of a JSON number by way of a double, which a large decimal does not survive; a
    variant keeps every digit.
    """
    exact = any(isinstance(column.field_type, DecimalType) for column in spec.schema.fields)
    return "variant" if exact else "string"


def image_columns(spec: TableSpec, known: Format) -> list[list[str]]:
    """Return the select lists from messages taken apart to the texts of both images."""
    keep = ["raw", "broken", "position", "place", "op"]
    columns = list(enumerate(spec.schema.fields))
    lower = "transform(map_keys({0}), x -> lower(x))"
    texts_of = "map_values({0})"
    if cell_type(spec) == "variant":
        texts_of = "transform(map_values({0}), x -> CAST(x AS string))"
    names = [
        f"{lower.format('newer')} AS nn",
        f"{texts_of.format('newer')} AS nt",
        f"{lower.format('older')} AS `on`",
        f"{texts_of.format('older')} AS ot",
        "map_keys(coalesce(newer, older)) AS spelled",
        "newer IS NOT NULL AS has_new",
        "older IS NOT NULL AS has_old",
    ]
    if known.shape is not None:
        names += [
            "transform(shape, s -> lower(s.field)) AS sn",
            "transform(shape, s -> s.name) AS sk",
            "transform(shape, s -> s.parameters['scale']) AS ss",
        ]
    flags = [
        f"{_extra(spec)} AS extra",
        *("has_new", "has_old", f"{_twice('nn')} OR {_twice('`on`')} AS twice"),
    ]
    texts = [text for i, column in columns for text in _texts(i, column, known)]
    return [[*keep, *names], [*keep, *flags, *texts]]


def _extra(spec: TableSpec) -> str:
    """Return the names that the table does not have; mostly there are none, which is seen fast."""
    known = f"array({', '.join(quote(name.lower()) for name in spec.columns)})"
    strange = f"filter(spelled, x -> NOT array_contains({known}, lower(x)))"
    return f"if(size(array_except(coalesce(nn, `on`), {known})) > 0, {strange}, NULL)"


def _twice(names: str) -> str:
    return f"(coalesce(size(array_distinct({names})) < size({names}), false))"


def _texts(number: int, column: NestedField, known: Format) -> list[str]:
    """Return the texts of one column; a name that is not there has no text."""
    name = quote(column.name.lower())
    new, old = _find("nt", "nn", number, name), _find("ot", "`on`", number, name)
    if known.overlay:
        # Only what changed is in `old`; a delete has its whole row there.
        changed = f"array_position(`on`, {name}) > 0 OR nn IS NULL"
        old = f"if({changed}, {old}, if(`on` IS NULL, NULL, {new}))"
    texts = [f"{new} AS n{number}", f"{old} AS o{number}"]
    if known.shape is not None:
        texts += [
            f"{_find('sk', 'sn', number, name)} AS k{number}",
            f"{_find('ss', 'sn', number, name)} AS s{number}",
        ]
    return texts


def _find(values: str, names: str, number: int, name: str) -> str:
    """Return the value of a name, which mostly stands where the table has it: look there first."""
    searched = f"get({values}, array_position({names}, {name}) - 1)"
    return f"if(get({names}, {number}) = {name}, get({values}, {number}), {searched})"


def value_columns(spec: TableSpec, known: Format, time_unit: str | None) -> list[list[str]]:
    """Return the select lists that read all texts as values."""
    keep = ["raw", "broken", "position", "place", "op", "extra", "has_new", "has_old", "twice"]
    whole, plain, values = list(keep), list(keep), list(keep)
    for i, column in enumerate(spec.schema.fields):
        kind = column.field_type
        hint = None if known.shape is None else Hint(f"k{i}", f"s{i}")
        sent = f"if(n{i} = '{UNAVAILABLE}', coalesce(o{i}, n{i}), n{i}) AS n{i}"
        whole += [sent, f"o{i}", *(() if hint is None else (f"k{i}", f"s{i}"))]
        plain += [] if hint is None else [f"k{i}"]
        for text, value in ((f"n{i}", f"v{i}"), (f"o{i}", f"w{i}")):
            if hint is not None and isinstance(kind, DecimalType):
                plain.append(f"{decimal_text(text, hint)} AS {text}")
            else:
                plain.append(text)
            values += [text, f"{cast_text(kind, text, time_unit=time_unit, hint=hint)} AS {value}"]
    lists = [] if known.overlay else [whole]
    return [*lists, values] if known.shape is None else [*lists, plain, values]


def plain_columns(
    spec: TableSpec, sources: dict[str, str], request: ChangeRequest, frame: Sequence[str]
) -> list[list[str]]:
    """Return the select lists from plain rows to the same columns as `value_columns`.

    `sources` says which column of the frame feeds which of the table.
    """
    assert request.action is not None, "the request was checked"
    known = {name.lower() for name in spec.columns}
    spare = {request.action.lower(), (request.order_by or request.action).lower()}
    extra = [name for name in frame if name.lower() not in known | spare]
    op = action_column(request.action)
    head = [
        f"struct({', '.join(map(name_of, frame))}) AS raw",
        "false AS broken",
        "given AS position",
        "given AS place",
        f"{op} AS op",
        f"CAST(array({', '.join(map(quote, extra))}) AS array<string>) AS extra",
        "true AS has_new",
        "true AS has_old",
        "false AS twice",
        f"trim(CAST({name_of(request.action)} AS string)) AS word",
    ]
    values = []
    for i, column in enumerate(spec.schema.fields):
        source = name_of(sources[column.name]) if column.name in sources else "NULL"
        kind = type_ddl(column.field_type)
        values += [
            f"CAST({source} AS string) AS n{i}"
            if column.field_type.is_primitive
            else f"if({source} IS NULL, NULL, '…') AS n{i}",
            f"try_cast({source} AS {kind}) AS v{i}",
        ]
    first = [*head, *values]
    numbers = range(len(spec.schema.fields))
    twin = [text for i in numbers for text in (f"n{i}", f"v{i}", f"n{i} AS o{i}", f"v{i} AS w{i}")]
    kept = ["raw", "broken", "position", "place", "op", "extra", "has_new", "has_old", "twice"]
    return [first, [*kept, "word", *twin]]


def judged_columns(spec: TableSpec, request: ChangeRequest) -> list[str]:
    """Return the select list that adds why a row is refused, and whether an update moves it."""
    checks = [
        "CASE WHEN broken THEN 'this is not JSON of the format' END",
        "CASE WHEN NOT broken AND op IS NULL THEN 'the operation is not known' END",
        "CASE WHEN op IN ('c', 'u') AND NOT has_new THEN 'there is no row after the change' END",
        "CASE WHEN op = 'd' AND NOT has_old THEN 'there is no row before the delete' END",
        "CASE WHEN twice THEN 'a column comes twice in the message' END",
    ]
    for i, column in enumerate(spec.schema.fields):
        checks += _column_checks(i, column, spec, debezium=request.format != ROWS)
    reason = f"nullif(concat_ws('; ', {', '.join(checks)}), '')"
    moved = "false" if request.format == ROWS else f"(op = 'u' AND ({_moves(spec)}))"
    values = [text for i in range(len(spec.columns)) for text in (f"v{i}", f"w{i}")]
    word = ["word"] if request.format == ROWS else []
    return [
        *("raw", "position", "place", "op", "extra", "has_old", *word, *values),
        f"{reason} AS reason",
        f"coalesce({moved}, false) AS moved",
    ]


def _column_checks(
    number: int, column: NestedField, spec: TableSpec, *, debezium: bool
) -> list[str]:
    label = f"column {column.name}"
    layout = column.field_id in {*spec.key_ids, *spec.partition_source_ids}
    kind = quote(f" is no {wanted(column.field_type)}")

    def unfit(text: str, value: str, ops: str) -> str:
        shown = f"concat({quote(label + ': ')}, substr({text}, 1, {TEXT_MAX}), {kind})"
        return (
            f"CASE WHEN op IN ({ops}) AND {text} IS NOT NULL AND {value} IS NULL THEN {shown} END"
        )

    checks = [unfit(f"n{number}", f"v{number}", "'c', 'u'")]
    if debezium:
        absent = quote(f"{label}: the source did not send its value; send whole rows")
        checks.append(f"CASE WHEN op = 'u' AND n{number} = '{UNAVAILABLE}' THEN {absent} END")
    if layout:
        checks.append(unfit(f"o{number}", f"w{number}", "'u', 'd', 'b'"))
    if column.field_id in spec.key_ids:
        missing = quote(f"key {label} is missing")
        checks.append(
            f"CASE WHEN (op IN ('c', 'u') AND has_new AND n{number} IS NULL) "
            f"OR (op IN ('d', 'b') AND has_old AND o{number} IS NULL) THEN {missing} END"
        )
    elif column.required:
        missing = quote(f"{label} is NOT NULL and has no value")
        checks.append(
            f"CASE WHEN op IN ('c', 'u') AND has_new AND n{number} IS NULL THEN {missing} END"
        )
    return checks


def _numbers(spec: TableSpec, ids: Sequence[int]) -> list[int]:
    return [i for i, column in enumerate(spec.schema.fields) if column.field_id in ids]


def _moves(spec: TableSpec) -> str:
    """Whether old and new image lie in different places; a NULL in the old one tells nothing.

    PostgreSQL sends NULL for every column that its replica identity leaves out.
    """
    whole = " AND ".join(f"w{i} IS NOT NULL" for i in _numbers(spec, spec.key_ids))
    layout = _numbers(spec, (*spec.key_ids, *spec.partition_source_ids))
    differ = " OR ".join(f"(w{i} IS NOT NULL AND NOT w{i} <=> v{i})" for i in layout)
    return f"{whole} AND ({differ})"


def change_columns(spec: TableSpec, request: ChangeRequest) -> list[list[str]]:
    """Return the select lists that make change rows with notes: the last step."""
    before = " AND ".join(
        [f"has_old AND w{i} IS NOT NULL" for i in _numbers(spec, spec.partition_source_ids)]
    )
    known = "true" if spec.key_decides_partition else f"({before})"
    if request.format == ROWS and not spec.key_decides_partition:
        # A sign means a change log: every +U comes with its -U, and a -D has its whole row.
        known = f"(word RLIKE '^[+-]' OR (op <> 'u' AND {known}))"
    minus = _element(
        spec,
        "CASE WHEN reason IS NOT NULL THEN NULL WHEN op = 'd' OR moved THEN '-D' "
        "WHEN op = 'b' THEN '-U' END",
        order="try_multiply(2L, place)",
        placed=known,
        split="moved",
        value="w",
    )
    plus = _element(
        spec,
        f"CASE WHEN reason IS NOT NULL THEN '{REJECT}' WHEN op = 't' THEN '{TRUNCATE}' "
        "WHEN op = 'c' THEN '+I' WHEN op = 'u' THEN '+U' END",
        order="try_add(try_multiply(2L, place), 1L)",
        placed=f"(op = 'c' OR {known})",
        split="moved",
        value="v",
    )
    text = "to_json(raw)" if request.format == ROWS else "raw"
    rows = f"inline(filter(array({minus}, {plus}), x -> x.a IS NOT NULL))"
    first = ["raw", "position", "extra", "reason", rows]
    business = [f"c{i} AS {name_of(name)}" for i, name in enumerate(spec.columns)]
    return [
        first,
        [
            *business,
            f"a AS {ACTION}",
            f"current_timestamp() AS {TS}",
            f"o AS {ORDER}",
            f"CAST(NULL AS bigint) AS {SEQ}",
            f"position AS {POSITION}",
            f"reason AS {REASON}",
            f"if(reason IS NULL, NULL, {text}) AS {RAW}",
            f"p AS {PLACED}",
            f"s AS {SPLIT}",
            f"if(size(extra) > 0, extra, NULL) AS {EXTRA}",
        ],
    ]


def _element(
    spec: TableSpec, action: str, *, order: str, placed: str, split: str, value: str
) -> str:
    """Return one of the two rows that a message may become; its action is NULL when it does not."""
    values = ", ".join(f"'c{i}', {value}{i}" for i in range(len(spec.columns)))
    return (
        f"named_struct('a', {action}, 'o', {order}, 'p', coalesce({placed}, false), "
        f"'s', {split}, {values})"
    )
