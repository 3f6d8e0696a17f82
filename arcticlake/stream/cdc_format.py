"""The change formats, each as a few select lists of Spark SQL: message text → operation and images.

    raw ─ from_json ─▶ m ─▶ op, older, newer, position ─▶ (cdc_plan) typed rows

    debezium-json   {"op": "c|u|d|r|t", "before": {…}, "after": {…}, "source": {…}}, or the same
                    as `payload` beside a `schema`
    canal-json      {"type": "INSERT|UPDATE|DELETE|TRUNCATE|…", "data": [{…}, …], "old": [{…}, …]}
    maxwell-json    {"type": "insert|update|delete|…", "data": {…}, "old": {…}}
    rows            columns of their own, and one that says what a row does

All of them end in the same columns. `op` is one letter: c create, u update, d delete, b the before
image of an update, t truncate, i to be ignored (DDL, bootstrap notes); NULL is not understood.
`older` and `newer` are maps from column to text, as the message spells both. Canal and Maxwell send
as `old` only what an update changed; `Format.overlay` says so.

The position orders the messages of one batch. `order_by` gives it; else the source's own:

    debezium-json   source.lsn (PostgreSQL); source.file, pos and row (MySQL); source.scn (Oracle)
    maxwell-json    position (file:pos)
    canal-json      none: its messages have only clocks

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from arcticlake.errors import InvalidRequest
from arcticlake.stream.cdc_types import TIME_UNITS, name_of, quote

DEBEZIUM, CANAL, MAXWELL, ROWS = "debezium-json", "canal-json", "maxwell-json", "rows"

_CORRUPT = "_corrupt_record string"


@dataclass(frozen=True, slots=True)
class Format:
    """How messages of one format are taken apart; `{cell}` in the schema is the type of a value."""

    schema: str
    op: str
    older: str
    newer: str
    position: str = "CAST(NULL AS bigint)"
    overlay: bool = False
    """An update's `older` holds only the columns that changed."""
    many: str | None = None
    """SQL of the rows of one message, where there may be several."""
    shape: str | None = None
    """SQL of what a message says of its columns: an array of field, name and parameters."""


def _binlog(file: str, place: str, row: str) -> str:
    """Pack a place in MySQL's log: 20 bits of file, 32 of place, 10 of row; NULL beyond."""
    number = f"try_cast(regexp_extract({file}, '([0-9]+)$', 1) AS bigint)"
    at, step = f"try_cast({place} AS bigint)", f"coalesce(try_cast({row} AS bigint), 0L)"
    return (
        f"if({number} < 1048576 AND {at} < 4294967296 AND {step} < 1024, "
        f"({number} * 4294967296 + {at}) * 1024 + {step}, NULL)"
    )


_SHAPE = (
    "array<struct<field:string,fields:array<struct<field:string,name:string,"
    "parameters:map<string,string>>>>>"
)
_CHANGE = (
    "op string, before map<string,{cell}>, after map<string,{cell}>, "
    "source map<string,string>, ddl string"
)
_PAYLOAD = _CHANGE.replace(" string", ":string").replace(" map", ":map")
# The message is its own payload where there is none.
_P = (
    "coalesce(m.payload, named_struct('op', m.op, 'before', m.before, 'after', m.after, "
    "'source', m.source, 'ddl', m.ddl))"
)

_FORMATS: Mapping[str, Format] = {
    DEBEZIUM: Format(
        schema=f"payload struct<{_PAYLOAD}>, schema struct<fields:{_SHAPE}>, {_CHANGE}, {_CORRUPT}",
        op=f"CASE WHEN {_P}.op IN ('c', 'r') THEN 'c' WHEN {_P}.op IN ('u', 'd', 't') "
        f"THEN {_P}.op WHEN {_P}.op = 'm' OR {_P}.ddl IS NOT NULL THEN 'i' END",
        older=f"{_P}.before",
        newer=f"{_P}.after",
        position="coalesce("
        f"try_cast({_P}.source['lsn'] AS bigint), "
        + _binlog(f"{_P}.source['file']", f"{_P}.source['pos']", f"{_P}.source['row']")
        + f", try_cast({_P}.source['scn'] AS bigint))",
        shape="flatten(transform(filter(m.schema.fields, f -> f.field IN ('before', 'after') "
        "AND f.fields IS NOT NULL), f -> f.fields))",
    ),
    CANAL: Format(
        schema="type string, isDdl string, data array<map<string,{cell}>>, "
        f"old array<map<string,{{cell}}>>, {_CORRUPT}",
        op="CASE upper(m.type) WHEN 'INSERT' THEN 'c' WHEN 'UPDATE' THEN 'u' "
        "WHEN 'DELETE' THEN 'd' WHEN 'TRUNCATE' THEN 't' "
        "ELSE if(lower(m.isDdl) = 'true' OR upper(m.type) = 'QUERY', 'i', NULL) END",
        older="if(upper(m.type) = 'DELETE', line.data, line.old)",
        newer="if(upper(m.type) = 'DELETE', NULL, line.data)",
        overlay=True,
        many="transform(m.data, (d, i) -> named_struct('data', d, 'old', get(m.old, i)))",
    ),
    MAXWELL: Format(
        schema="type string, data map<string,{cell}>, old map<string,{cell}>, position string, "
        f"{_CORRUPT}",
        op="CASE WHEN m.type IN ('insert', 'bootstrap-insert') THEN 'c' "
        "WHEN m.type = 'update' THEN 'u' WHEN m.type = 'delete' THEN 'd' "
        "WHEN m.type RLIKE '^(bootstrap|table|database)-' THEN 'i' END",
        older="if(m.type = 'delete', m.data, m.old)",
        newer="if(m.type = 'delete', NULL, m.data)",
        position=_binlog("split_part(m.position, ':', 1)", "split_part(m.position, ':', 2)", "'0'"),
        overlay=True,
    ),
}
NAMES = (*_FORMATS, ROWS)

ACTIONS: Mapping[str, str] = {
    **dict.fromkeys(("+i", "i", "insert", "c", "create", "r", "read"), "c"),
    **dict.fromkeys(("+u", "u", "update", "upsert"), "u"),
    **dict.fromkeys(("-d", "d", "delete"), "d"),
    "-u": "b",
}
"""What the action column of `rows` may say, in any case."""

SUB_ORDER = 2**20
"""Places that each message has for its rows, where it may carry several."""


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """What the caller asked of `apply_changes` or `stream_changes`."""

    format: str
    order_by: str | None = None
    action: str | None = None
    time_unit: str | None = None
    locate: bool = False

    def check(self, table: str) -> None:
        """Refuse what no format understands."""
        if self.format not in NAMES:
            message = f"table {table}: format {self.format!r} is not known; use {', '.join(NAMES)}"
            raise InvalidRequest(message)
        if (self.format == ROWS) != (self.action is not None):
            message = (
                f"table {table}: action names the column that says what a row does; it goes with "
                f"format {ROWS!r}, and only with it"
            )
            raise InvalidRequest(message)
        if self.time_unit is not None and self.time_unit not in TIME_UNITS:
            message = (
                f"table {table}: time_unit {self.time_unit!r} is not known; use "
                f"{', '.join(TIME_UNITS)}"
            )
            raise InvalidRequest(message)


def format_named(name: str) -> Format:
    """Return the format of a name that was checked."""
    return _FORMATS[name]


def message_columns(known: Format, *, ordered: bool, cell: str = "string") -> list[list[str]]:
    """Return the select lists from `raw` and `given` (the order, if any) to operation and images.

    With `cell` variant the images keep the kinds of their values, to infer types from.
    """
    schema = quote(known.schema.format(cell=cell))
    position = "given" if ordered else known.position
    broken = "(m IS NULL OR m._corrupt_record IS NOT NULL)"
    place = position
    lists = [["raw", "given", f"from_json(raw, {schema}) AS m"]]
    if known.many is not None:
        lists.append(["raw", "given", "m", f"posexplode_outer({known.many}) AS (nth, line)"])
        place = f"try_add(try_multiply({SUB_ORDER}L, {position}), coalesce(nth, 0))"
    last = [
        "raw",
        f"{broken} AS broken",
        f"{position} AS position",
        f"{place} AS place",
        f"if({broken}, NULL, {known.op}) AS op",
        f"if({broken}, NULL, {known.older}) AS older",
        f"if({broken}, NULL, {known.newer}) AS newer",
    ]
    shape = [] if known.shape is None else [f"{known.shape} AS shape"]
    return [*lists, [*last, *shape]]


def action_column(action: str) -> str:
    """Return SQL of the operation of a plain row."""
    cases = " ".join(f"WHEN {quote(word)} THEN '{op}'" for word, op in ACTIONS.items())
    return f"CASE lower(trim(CAST({name_of(action)} AS string))) {cases} END"
