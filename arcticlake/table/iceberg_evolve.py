"""Schema evolution: one commit on the base table, by field id; the change table follows.

The base schema is the truth and columns are matched by id, so each change is atomic although
there are two tables: files of either table that were written before simply lack the new id, or
carry the old name under the same id. The change table's schema is brought along afterwards, and
by the next writer if that fails.

Touches the catalog.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches

from pyiceberg.exceptions import CommitFailedException, ValidationError
from pyiceberg.table.update.schema import UpdateSchema

from arcticlake.errors import Conflict, InvalidRequest
from arcticlake.table.ddl import schema_from_ddl
from arcticlake.table.iceberg import TablePair, load_pair, sync_change_schema
from arcticlake.table.options import options_of_properties, options_to_properties, parse_options
from arcticlake.table.spec import TableSpec, check_column_name
from arcticlake.table.types import check_storable

METRICS_PROPERTY = "write.metadata.metrics.column."


def add_column(pair: TablePair, name: str, kind: str) -> None:
    """Add an optional column at the end; rows written before read as null."""
    parent, _, leaf = name.rpartition(".")
    wanted = schema_from_ddl(f"`{leaf}` {kind}")
    check_storable(wanted)
    if parent:
        _existing(pair.spec, parent)
    path: str | tuple[str, ...] = tuple(name.split(".")) if parent else name
    _check_free(pair.spec, name)
    field = wanted.fields[0]
    if field.required:
        message = (
            f"table {pair.spec.name}: a new column cannot be NOT NULL: rows that exist have no "
            f"value for {name}"
        )
        raise InvalidRequest(message)
    _evolve(pair, lambda update: update.add_column(path, field.field_type, doc=field.doc))


def rename_column(pair: TablePair, name: str, new_name: str) -> None:
    """Give a column another name; its id, and so its data, stays."""
    column = _existing(pair.spec, name)
    if "." in new_name:
        message = f"table {pair.spec.name}: the new name {new_name!r} must be the last part only"
        raise InvalidRequest(message)
    check_storable(schema_from_ddl(f"`{new_name}` int"))
    parent, _, last = column.rpartition(".")
    _check_free(pair.spec, f"{parent}.{new_name}" if parent else new_name, but=last)
    _evolve(pair, lambda update: update.rename_column(column, new_name))
    _keep_metrics_exact(load_pair(pair.base.catalog, pair.spec.name))


def widen_column(pair: TablePair, name: str, kind: str) -> None:
    """Widen int to bigint, float to double, or a decimal's precision."""
    column = _existing(pair.spec, name)
    wanted = schema_from_ddl(f"c {kind}").fields[0].field_type
    _evolve(pair, lambda update: update.update_column(column, field_type=wanted))


def drop_column(pair: TablePair, name: str) -> None:
    """Drop a column; a later column of the same name is another one and does not revive it."""
    column = _existing(pair.spec, name)
    spec = pair.spec
    field_id = spec.schema.find_field(column).field_id
    for ids, role in (
        (spec.key_ids, "primary key"),
        (spec.partition_source_ids, "partition"),
        (spec.sort_ids, "sort key"),
    ):
        if field_id in ids:
            message = f"table {spec.name}: {name} is a {role} column and cannot be dropped"
            raise InvalidRequest(message)
    _evolve(pair, lambda update: update.delete_column(column))


def move_column(pair: TablePair, name: str, *, after: str | None) -> None:
    """Move a column behind another one, or to the front."""
    column = _existing(pair.spec, name)
    if after is None:
        _evolve(pair, lambda update: update.move_first(column))
    else:
        target = _existing(pair.spec, after)
        _evolve(pair, lambda update: update.move_after(column, target))


def set_options(pair: TablePair, options: Mapping[str, object]) -> None:
    """Change options; those not named stay as they are."""
    name = pair.spec.name
    if "initial-nodes" in options:
        message = f"table {name}: initial-nodes is fixed at creation; the tree grows by itself"
        raise InvalidRequest(message)
    parse_options({**options_of_properties(pair.base.properties), **options}, table=name)
    with pair.base.transaction() as transaction:
        transaction.set_properties(options_to_properties(options))


def _existing(spec: TableSpec, name: str) -> str:
    known = spec.schema.column_names
    wanted = name.strip().strip("`")
    for column in known:
        if column.lower() == wanted.lower():
            return column
    near = get_close_matches(wanted, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"columns: {', '.join(spec.columns)}"
    message = f"table {spec.name}: there is no column {name!r}; {hint}"
    raise InvalidRequest(message)


def _check_free(spec: TableSpec, name: str, *, but: str = "") -> None:
    """Refuse a name that is taken, with case ignored; `but` is the name that is given up."""
    taken = {known.lower() for known in spec.schema.column_names}
    if name.lower() in taken and name.rpartition(".")[2].lower() != but.lower():
        message = f"table {spec.name}: column {name} exists already; choose another name"
        raise InvalidRequest(message)
    check_column_name(spec, name)


def _evolve(pair: TablePair, change: Callable[[UpdateSchema], object]) -> None:
    name = pair.spec.name
    try:
        with pair.base.update_schema() as update:
            change(update)
    except CommitFailedException as error:
        message = (
            f"table {name}: its schema was changed by somebody else meanwhile; retry ({error})"
        )
        raise Conflict(message) from error
    except (ValidationError, ValueError) as error:
        message = f"table {name}: this change of columns is not possible: {error}"
        raise InvalidRequest(message) from error
    sync_change_schema(load_pair(pair.base.catalog, name))


def _keep_metrics_exact(pair: TablePair) -> None:
    """Exact bounds are asked for by column name, so a rename of a key column moves the setting."""
    wanted = {METRICS_PROPERTY + column for column in (*pair.spec.key, *pair.spec.sort)}
    for table in filter(None, (pair.base, pair.change)):
        present = {p for p in table.properties if p.startswith(METRICS_PROPERTY)}
        if present != wanted:
            with table.transaction() as transaction:
                transaction.remove_properties(*(present - wanted))
                transaction.set_properties(dict.fromkeys(wanted - present, "full"))
