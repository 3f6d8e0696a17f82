"""Verbs on rows: read, upsert, insert, delete and SQL.

`read` and the writes work without Spark; `sql` starts it.

Touches the catalog and data files.
"""

from __future__ import annotations

import logging
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from arcticlake.cli.call import Call, call_of, names_of
from arcticlake.cli.output import count_text, table_text
from arcticlake.cli.tables import TableName
from arcticlake.errors import InvalidRequest

if TYPE_CHECKING:
    import pyarrow as pa

    from arcticlake.ingest.iceberg import Committed
    from arcticlake.lake import Table

FORMATS = "Parquet, CSV or JSON lines, by its ending."
RowsFile = Annotated[Path, typer.Argument(metavar="FILE", help=FORMATS)]


def read(
    context: typer.Context,
    name: TableName,
    *,
    columns: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Repeat it, or use commas.")
    ] = None,
    where: Annotated[str | None, typer.Option(metavar="SQL", help="Only these rows.")] = None,
    version: Annotated[int | None, typer.Option(metavar="V", help="As of this version.")] = None,
    timestamp: Annotated[
        str | None, typer.Option(metavar="TIME", help="As of this moment, ISO 8601.")
    ] = None,
    tag: Annotated[str | None, typer.Option(metavar="TAG", help="As of this tag.")] = None,
    mode: Annotated[str, typer.Option(metavar="MODE", help="merged, base or unmerged.")] = "merged",
    limit: Annotated[int | None, typer.Option(metavar="N", min=0, help="At most N rows.")] = None,
    metadata: Annotated[
        bool, typer.Option("--metadata", help="Add _version, the commit of each row.")
    ] = False,
) -> None:
    """Show rows, fresh to the last commit."""
    call = call_of(context)
    rows = call.table(name).to_arrow(
        columns=names_of(columns) or None,
        where=where,
        version=version,
        timestamp=timestamp,
        tag=tag,
        mode=mode,
        metadata=metadata,
    )
    _show_rows(call, rows if limit is None else rows.slice(0, limit), total=rows.num_rows)


def sql(
    context: typer.Context,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A query in Spark SQL.")],
    limit: Annotated[int | None, typer.Option(metavar="N", min=0, help="At most N rows.")] = None,
) -> None:
    """Run Spark SQL. Every table is read fresh, or AS OF a version."""
    call = call_of(context)
    lake = call.lake()
    logging.getLogger("SQLQueryContextLogger").disabled = True  # the error itself says it all
    call.screen.note("starting Spark")
    frame = lake.sql(text)
    rows = (frame if limit is None else frame.limit(limit)).toArrow()
    _show_rows(call, rows, total=rows.num_rows)


def upsert(
    context: typer.Context,
    name: TableName,
    file: RowsFile,
    *,
    order_by: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Whole number that orders the changes of one key."),
    ] = None,
    delete_when: Annotated[
        str | None, typer.Option(metavar="SQL", help="Rows that delete: \"op = 'D'\"")
    ] = None,
    locate: Annotated[
        bool, typer.Option("--locate", help="Look up the old partition of rows that exist.")
    ] = False,
) -> None:
    """Insert or replace the rows of a file by key."""
    call = call_of(context)
    table = call.table(name)
    rows = _load(table, file)
    done = table.upsert(rows, order_by=order_by, delete_when=delete_when, locate=locate)
    _show_commit(call, name, done)


def insert(context: typer.Context, name: TableName, file: RowsFile) -> None:
    """Add the rows of a file to base. A key that exists is an error."""
    call = call_of(context)
    table = call.table(name)
    _show_commit(call, name, table.insert(_load(table, file)))


def delete(
    context: typer.Context,
    name: TableName,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help=f"The keys to delete: {FORMATS}")
    ] = None,
    where: Annotated[
        str | None, typer.Option(metavar="SQL", help="Delete the rows that meet it.")
    ] = None,
) -> None:
    """Delete rows, by a condition or by a file of keys."""
    call = call_of(context)
    if (file is None) == (where is None):
        message = f"table {name}: say which rows to delete, with --where or with a file of keys"
        raise InvalidRequest(message)
    table = call.table(name)
    done = table.delete(where if file is None else _load(table, file))
    _show_commit(call, name, done)


def _load(table: Table, file: Path) -> pa.Table:
    """Return the rows of a file, text in the types of the table."""
    target = table.to_arrow(where="1 = 0").schema
    rows: pa.Table = import_module("arcticlake.cli.rows").read_rows(file, target)
    return rows


def _show_rows(call: Call, rows: pa.Table, *, total: int) -> None:
    listed = rows.to_pylist(maps_as_pydicts="strict")
    names = rows.column_names
    cells = [[row[name] for name in names] for row in listed]
    call.screen.show(listed, table_text(names, cells))
    shown = count_text(rows.num_rows, "row")
    call.screen.note(shown if rows.num_rows == total else f"{shown} of {total:,}")


def _show_commit(call: Call, name: str, done: Committed) -> None:
    answer = {"table": name, "version": done.version, "rows": done.rows, "files": done.files}
    wrote = f"{count_text(done.rows, 'row')} in {count_text(done.files, 'file')}"
    stays = f"nothing to do; {name} stays at version {done.version}"
    call.screen.show(answer, f"version {done.version}: {wrote}" if done.rows else stays)
