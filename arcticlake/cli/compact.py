"""compact: better files for the same rows, or only the plan of it.

    arctic compact T --dry-run     what would be done and why, group by group
    arctic compact T               do it; progress on stderr, the numbers on stdout

Groups that somebody else changed meanwhile are skipped and named. Only where nothing at all landed
is that a conflict, exit code 4: run it again.

Touches the catalog and data files.
"""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import typer

from arcticlake.cli.call import call_of
from arcticlake.cli.tables import TableName
from arcticlake.errors import Conflict


def compact(
    context: typer.Context,
    name: TableName,
    *,
    kind: Annotated[str, typer.Option(metavar="KIND", help="auto, minor, major or full.")] = "auto",
    where: Annotated[str | None, typer.Option(metavar="SQL", help="Only these partitions.")] = None,
    to_version: Annotated[
        int | None,
        typer.Option(metavar="V", help="Merge changes up to here; with kind major or full."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the plan, with reasons, and do nothing.")
    ] = False,
) -> None:
    """Merge changes into base and small files into larger ones."""
    call = call_of(context)
    table = call.table(name)
    if dry_run:
        plan = table.plan_compaction(kind, where=where, to_version=to_version)
        told = import_module("arcticlake.cli.plan").plan_to_dict(plan)
        call.screen.show(told, plan.explain())
        return
    result = table.compact(kind, where=where, to_version=to_version)
    call.screen.show(result.to_dict(), str(result))
    if result.skipped and result.kind == "none":
        raise typer.Exit(Conflict.exit_code)
