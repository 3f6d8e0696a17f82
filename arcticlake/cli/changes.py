"""changes: what happened between two versions, as rows.

    arctic changes T --since 3 --until 9                 every change of versions 4 to 9
    arctic changes T --since 2026-11-15T12:00:00Z --mode net

Works without Spark.

Touches the catalog and data files.
"""

from __future__ import annotations

from typing import Annotated

import typer

from arcticlake.cli.call import call_of, names_of
from arcticlake.cli.output import count_text, table_text
from arcticlake.cli.tables import TableName


def changes(
    context: typer.Context,
    name: TableName,
    *,
    since: Annotated[
        str | None,
        typer.Option(metavar="V|TIME", help="After this version, or moment in ISO 8601."),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(metavar="V|TIME", help="Up to and with this one; the newest if absent."),
    ] = None,
    mode: Annotated[str, typer.Option(metavar="MODE", help="raw, net or base.")] = "raw",
    columns: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Repeat it, or use commas.")
    ] = None,
    where: Annotated[str | None, typer.Option(metavar="SQL", help="Only these rows.")] = None,
    difference: Annotated[
        bool, typer.Option("--difference", help="Compare rows before and after an overwrite.")
    ] = False,
    limit: Annotated[int | None, typer.Option(metavar="N", min=0, help="At most N rows.")] = None,
) -> None:
    """Show what changed between two versions, oldest first."""
    call = call_of(context)
    rows = call.table(name).changes_to_arrow(
        _point(since),
        _point(until),
        mode,
        columns=names_of(columns) or None,
        where=where,
        difference=difference,
    )
    shown = rows if limit is None else rows.slice(0, limit)
    listed = shown.to_pylist(maps_as_pydicts="strict")
    cells = [list(row.values()) for row in listed]
    call.screen.show(listed, table_text(rows.column_names, cells))
    counted = count_text(shown.num_rows, "row")
    all_shown = shown.num_rows == rows.num_rows
    call.screen.note(counted if all_shown else f"{counted} of {rows.num_rows:,}")


def _point(text: str | None) -> int | str | None:
    """Return a version as a number; what is none is a moment."""
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        return text
