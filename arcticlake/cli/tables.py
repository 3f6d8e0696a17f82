"""Verbs on tables as a whole: list, create, drop, and change columns and options.

Touches the catalog.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from arcticlake.cli.call import call_of, names_of, pairs_of
from arcticlake.errors import InvalidRequest

TableName = Annotated[str, typer.Argument(metavar="TABLE", help="database.table")]
ColumnName = Annotated[str, typer.Argument(metavar="COLUMN", help="Name of the column.")]
ColumnType = Annotated[str, typer.Argument(metavar="TYPE", help="Its type, as in Spark's DDL.")]
Settings = Annotated[list[str], typer.Argument(metavar="NAME=VALUE...", help="See docs/options.md")]


def tables(context: typer.Context) -> None:
    """List the tables."""
    call = call_of(context)
    names = call.lake().tables()
    call.screen.show(names, "\n".join(names))
    if not names:
        call.screen.note("no tables; `arctic create --help` shows how to make one")


def create(
    context: typer.Context,
    name: TableName,
    *,
    schema: Annotated[
        str, typer.Option(metavar="DDL", help="Columns: 'order_id bigint, amount decimal(12,2)'")
    ],
    key: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Primary key column; repeat it, or use commas."),
    ] = None,
    partition: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD", help="Column, year/month/day/hour(column) or truncate(column, n)."
        ),
    ] = None,
    sort: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Sort key column.")
    ] = None,
    bucket: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Key column that spreads the rows.")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Table option; repeat it.")
    ] = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Leave a table that exists as it is.")
    ] = False,
) -> None:
    """Create a table. The warehouse folder is made if it is missing."""
    call = call_of(context)
    lake = call.lake(make=True)
    existed = if_not_exists and name in lake.tables()
    lake.create_table(
        name,
        schema,
        primary_key=names_of(key),
        partition_by=names_of(partition),
        sort_by=names_of(sort),
        bucket_by=bucket,
        options=pairs_of(option or [], what="option"),
        if_not_exists=if_not_exists,
    )
    answer = f"{name} exists already" if existed else f"created {name}"
    call.screen.show({"table": name, "created": not existed}, answer)


def drop(
    context: typer.Context,
    name: TableName,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    purge: Annotated[
        bool, typer.Option("--purge", help="Delete the files too; they stay otherwise.")
    ] = False,
) -> None:
    """Drop a table, after a question."""
    call = call_of(context)
    lake = call.lake()
    lake.table(name)
    if not yes:
        if not sys.stdin.isatty():
            message = f"table {name}: nobody is there to confirm; say --yes to drop it"
            raise InvalidRequest(message)
        fate = "and delete its files" if purge else "(its files stay)"
        typer.confirm(f"Drop {name} {fate}?", abort=True, err=True)
    lake.drop_table(name, purge=purge)
    call.screen.show({"table": name, "dropped": True, "purged": purge}, f"dropped {name}")


def add_column(
    context: typer.Context, name: TableName, column: ColumnName, kind: ColumnType
) -> None:
    """Add a column; rows that exist read as NULL."""
    call = call_of(context)
    call.table(name).add_column(column, kind)
    call.screen.show({"table": name, "added": column, "type": kind}, f"added {column} {kind}")


def rename_column(
    context: typer.Context,
    name: TableName,
    column: ColumnName,
    new_name: Annotated[str, typer.Argument(metavar="NEW_NAME", help="Its new name.")],
) -> None:
    """Give a column another name; its data stays."""
    call = call_of(context)
    call.table(name).rename_column(column, new_name)
    renamed = {"table": name, "renamed": column, "to": new_name}
    call.screen.show(renamed, f"renamed {column} to {new_name}")


def widen_column(
    context: typer.Context, name: TableName, column: ColumnName, kind: ColumnType
) -> None:
    """Widen a column. Int to bigint, float to double, decimals in precision."""
    call = call_of(context)
    call.table(name).widen_column(column, kind)
    call.screen.show(
        {"table": name, "widened": column, "type": kind}, f"widened {column} to {kind}"
    )


def drop_column(context: typer.Context, name: TableName, column: ColumnName) -> None:
    """Drop a column; key, partition and sort columns stay."""
    call = call_of(context)
    call.table(name).drop_column(column)
    call.screen.show({"table": name, "dropped": column}, f"dropped {column}")


def move_column(
    context: typer.Context,
    name: TableName,
    column: ColumnName,
    after: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Put it behind this one; else first.")
    ] = None,
) -> None:
    """Move a column behind another one, or to the front."""
    call = call_of(context)
    call.table(name).move_column(column, after=after)
    place = "first" if after is None else f"after {after}"
    call.screen.show({"table": name, "moved": column, "after": after}, f"moved {column} {place}")


def set_options(context: typer.Context, name: TableName, settings: Settings) -> None:
    """Change table options; those not named stay."""
    call = call_of(context)
    options = pairs_of(settings, what="option")
    call.table(name).set_options(options)
    lines = [f"{option} = {value}" for option, value in options.items()]
    call.screen.show({"table": name, "options": options}, "\n".join(lines))
