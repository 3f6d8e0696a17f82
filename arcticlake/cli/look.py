"""Verbs that look: describe, tree, files, history, verify and tags.

Touches the catalog, and for `verify` the data files.
"""

from __future__ import annotations

from typing import Annotated

import typer

from arcticlake.cli.call import call_of
from arcticlake.cli.output import cell_text, count_text, table_text
from arcticlake.cli.tables import TableName

PROBLEMS_FOUND = 3


def describe(context: typer.Context, name: TableName) -> None:
    """Show columns, keys, options, sizes and backlog."""
    call = call_of(context)
    detail = call.table(name).detail()
    call.screen.show(detail.to_dict(), str(detail))


def tree(context: typer.Context, name: TableName) -> None:
    """Draw the tree: every node and how much lies there."""
    call = call_of(context)
    drawn = call.table(name).tree()
    call.screen.show(drawn.to_dict(), str(drawn))


def files(context: typer.Context, name: TableName) -> None:
    """List the live files of base and changes."""
    call = call_of(context)
    listed = call.table(name).files()
    columns = ("role", "partition", "node", "rows", "bytes", "version", "keys", "path")
    rows = [
        (
            file["role"],
            _partition_text(file["partition"]),
            f"{file['mask']}/{file['index']}",
            file["rows"],
            file["bytes"],
            file["version"],
            f"{file['min_key']} .. {file['max_key']}",
            file["path"],
        )
        for file in listed
    ]
    call.screen.show(listed, table_text(columns, rows))
    call.screen.note(count_text(len(rows), "file"))


def _partition_text(partition: object) -> str:
    if not isinstance(partition, dict) or not partition:
        return "-"
    return ",".join(f"{name}={value}" for name, value in partition.items())


def history(
    context: typer.Context,
    name: TableName,
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Only the newest N entries.")
    ] = None,
) -> None:
    """List versions and compactions, newest first."""
    call = call_of(context)
    entries = call.table(name).history()[:limit]
    columns = ("version", "kind", "timestamp", "rows", "files")
    rows = [(e.version, e.kind, e.timestamp, e.rows, e.files) for e in entries]
    lines = table_text(columns, rows).splitlines()
    shown = lines[:1]
    for line, entry in zip(lines[1:], entries, strict=True):
        shown += [line, *(f"    {cell_text(told)}" for told in entry.explain())]
    call.screen.show([entry.to_dict() for entry in entries], "\n".join(shown))


def verify(
    context: typer.Context,
    name: TableName,
    quick: Annotated[
        bool, typer.Option("--quick", help="Read only the columns that a rule needs.")
    ] = False,
) -> None:
    """Check the table's files against every rule. Exit code 3 if one is broken."""
    call = call_of(context)
    verdict = call.table(name).verify(deep=not quick)
    call.screen.show(verdict.to_dict(), str(verdict))
    if not verdict.ok:
        raise typer.Exit(PROBLEMS_FOUND)


def tag(
    context: typer.Context,
    name: TableName,
    label: Annotated[
        str | None, typer.Argument(metavar="TAG", help="The tag; without one, list them.")
    ] = None,
    version: Annotated[
        int | None, typer.Option(metavar="V", help="The version to name; the newest if absent.")
    ] = None,
    drop: Annotated[bool, typer.Option("--drop", help="Remove the tag.")] = False,
) -> None:
    """Name a version for `read --tag`, or list the names."""
    call = call_of(context)
    table = call.table(name)
    if label is None:
        known = table.tags()
        text = table_text(("tag", "version"), list(known.items()))
        call.screen.show(known, text)
    elif drop:
        table.drop_tag(label)
        call.screen.show({"table": name, "dropped": label}, f"dropped tag {label}")
    else:
        named = table.create_tag(label, version).version
        answer = {"table": name, "tag": label, "version": named}
        call.screen.show(answer, f"tag {label} names version {named}")
