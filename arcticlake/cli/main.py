"""`arctic`: the verbs of the library in a terminal.

    arctic [--warehouse PATH | --catalog NAME] [--output text|json] VERB ...

The choices that all verbs share may stand before or after the verb. What a verb raises becomes one
line and an exit code, told apart by what to do next:

    0 done   1 failed   2 wrong use   3 a check found problems   4 conflict   5 outcome unknown

Touches the terminal; the verbs touch what they name.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from arcticlake import __version__
from arcticlake.cli import changes, compact, data, look, tables
from arcticlake.cli.call import WAREHOUSE_VARIABLE, Call, call_of
from arcticlake.cli.output import Failure, Form, Screen
from arcticlake.errors import ArcticError

SHARED = ("--warehouse", "--catalog", "--output")
TRACE_VARIABLE = "ARCTIC_TRACEBACK"
INTERRUPTED = 130

# The parser is click, which typer carries under a name that changed; its errors descend from this.
_WRONG_USE = typer.BadParameter.__mro__[1]
# Mistakes in a query, by the names of Spark's errors, so that Spark need not be loaded to tell.
_QUERY_MISTAKES = frozenset(
    {"AnalysisException", "ParseException", "IllegalArgumentException", "NumberFormatException"}
    | {"ArithmeticException", "DateTimeException", "ArrayIndexOutOfBoundsException"}
)


def version(context: typer.Context) -> None:
    """Show the version."""
    call_of(context).screen.show({"version": __version__}, f"arctic {__version__}")


def demo(
    context: typer.Context,
    keep: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Leave the lake in this folder, which must be empty."),
    ] = None,
    rows: Annotated[
        int, typer.Option(metavar="N", min=1000, help="Orders to begin with.")
    ] = 200_000,
) -> None:
    """Show what a lake does. Local Spark, generated orders, every answer checked."""
    good = import_module("arcticlake.cli.demo").run_demo(call_of(context).screen, keep, rows)
    if not good:
        raise typer.Exit(1)


def doctor(
    context: typer.Context,
    spark: Annotated[bool, typer.Option(help="Start a Spark session to see that it works.")] = True,
) -> None:
    """Check Java, Spark, catalog, disk and clock. Exit code 3 with problems."""
    good = import_module("arcticlake.cli.doctor").run_doctor(call_of(context), spark=spark)
    if not good:
        raise typer.Exit(look.PROBLEMS_FOUND)


VERBS: Mapping[str, Callable[..., None]] = {
    "demo": demo,
    "tables": tables.tables,
    "create": tables.create,
    "describe": look.describe,
    "read": data.read,
    "upsert": data.upsert,
    "insert": data.insert,
    "delete": data.delete,
    "sql": data.sql,
    "changes": changes.changes,
    "compact": compact.compact,
    "tree": look.tree,
    "files": look.files,
    "history": look.history,
    "verify": look.verify,
    "tag": look.tag,
    "add-column": tables.add_column,
    "rename-column": tables.rename_column,
    "widen-column": tables.widen_column,
    "drop-column": tables.drop_column,
    "move-column": tables.move_column,
    "set-options": tables.set_options,
    "drop": tables.drop,
    "doctor": doctor,
    "version": version,
}


def share(
    context: typer.Context,
    warehouse: Annotated[
        str | None,
        typer.Option(metavar="PATH", envvar=WAREHOUSE_VARIABLE, help="Folder of the lake."),
    ] = None,
    catalog: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A catalog of pyiceberg's configuration instead."),
    ] = None,
    output: Annotated[Form, typer.Option(help="Form of results and errors.")] = Form.TEXT,
) -> None:
    """A stream-and-batch lakehouse for PySpark on plain Apache Iceberg tables."""
    if catalog is not None and warehouse == os.environ.get(WAREHOUSE_VARIABLE):
        warehouse = None  # what is typed wins over what is set
    context.obj = Call(warehouse, catalog, Screen(output))


def make_app() -> typer.Typer:
    """Return the command with all its verbs."""
    app = typer.Typer(
        name="arctic",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback()(share)
    for name, verb in VERBS.items():
        app.command(name)(verb)
    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one call and return its exit code."""
    given = shared_first(sys.argv[1:] if arguments is None else arguments)
    screen = Screen(form_of(given))
    try:
        code = make_app()(given, prog_name="arctic", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has gone, as `head` does; nothing may be written at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except typer.Abort:
        screen.note("aborted; nothing was changed")
        return 1
    except KeyboardInterrupt:
        screen.note("interrupted")
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - this is the last line of defence
        if os.environ.get(TRACE_VARIABLE):
            traceback.print_exc()
        failure = explain_failure(error)
        if failure.message:
            screen.fail(failure)
        return failure.exit_code
    return code if isinstance(code, int) else 0


def explain_failure(error: Exception) -> Failure:
    """Return an error as the terminal shows it."""
    if isinstance(error, ArcticError):
        return Failure(type(error).__name__, error.message, error.exit_code)
    if isinstance(error, _WRONG_USE):
        return Failure("InvalidRequest", _wrong_use(error), 2)
    name = type(error).__name__
    if type(error).__module__.startswith("pyspark.errors") and name in _QUERY_MISTAKES:
        return Failure("InvalidRequest", str(error).strip().partition("\n")[0].rstrip(";"), 2)
    message = (
        f"{name}: {str(error).strip() or 'no message'}. This is not an error that Arctic knows; "
        f"please report it with what {TRACE_VARIABLE}=1 shows"
    )
    return Failure("InternalError", message, 1)


def _wrong_use(error: Exception) -> str:
    told: str = getattr(error, "format_message", lambda: str(error))()
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(told, err=True)
        return ""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "arctic"
    return f"{told.rstrip('.')}; see {path} --help"


def shared_first(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with the shared choices before the verb, wherever they stood."""
    shared: list[str] = []
    own: list[str] = []
    left: Iterator[str] = iter(arguments)
    for argument in left:
        name, separator, _ = argument.partition("=")
        if argument == "--":
            own.extend((argument, *left))
        elif name in SHARED:
            shared.append(argument)
            if not separator:
                shared.extend(value for value in (next(left, None),) if value is not None)
        else:
            own.append(argument)
    return [*shared, *own]


def form_of(arguments: Sequence[str]) -> Form:
    """Return the form that the arguments ask for, also when they cannot be understood."""
    text = " ".join(arguments).replace("--output=", "--output ")
    return Form.JSON if f"--output {Form.JSON}" in text else Form.TEXT


if __name__ == "__main__":
    sys.exit(main())
