"""One call of the command: the choices that every verb shares, and the lake they name.

Catalogs, Arrow and Spark take a second to load, so they are loaded when a verb opens its lake:
`arctic --help` and wrong use answer at once.

Touches the catalog.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from arcticlake.cli.output import Screen
from arcticlake.errors import InternalError, InvalidRequest, NotFound

if TYPE_CHECKING:
    from arcticlake.lake import Lake, Table

WAREHOUSE_VARIABLE = "ARCTIC_WAREHOUSE"


@dataclass(frozen=True, slots=True)
class Call:
    """What stands before the verb."""

    warehouse: str | None
    catalog: str | None
    screen: Screen

    def lake(self, *, make: bool = False) -> Lake:
        """Open the lake; only `make` creates a folder that is missing."""
        if self.warehouse is not None and self.catalog is not None:
            message = "--warehouse and --catalog exclude each other; name one of them"
            raise InvalidRequest(message)
        if self.warehouse is None and self.catalog is None:
            message = (
                f"which lake? Name a folder with --warehouse PATH or {WAREHOUSE_VARIABLE}, or a "
                "catalog with --catalog NAME"
            )
            raise InvalidRequest(message)
        if self.warehouse is not None and not make and is_missing_folder(self.warehouse):
            message = f"warehouse {self.warehouse} does not exist; `arctic create` makes it"
            raise NotFound(message)
        opened: Lake = import_module("arcticlake.lake").Lake.open(
            self.warehouse, catalog=self.catalog
        )
        return opened

    def table(self, name: str) -> Table:
        """Open a table of the lake."""
        return self.lake().table(name)


def is_missing_folder(warehouse: str) -> bool:
    """Whether a warehouse is a local path that does not exist."""
    if "://" in warehouse and not warehouse.startswith("file://"):
        return False
    return not Path(warehouse.removeprefix("file://")).expanduser().exists()


def call_of(context: typer.Context) -> Call:
    """Return the call that a verb belongs to."""
    if not isinstance(context.obj, Call):
        message = "a verb ran without the choices that stand before it"
        raise InternalError(message)
    return context.obj


def pairs_of(written: list[str], *, what: str) -> dict[str, str]:
    """Return `name=value` arguments as a mapping."""
    found: dict[str, str] = {}
    for text in written:
        name, separator, value = text.partition("=")
        if not separator or not name.strip():
            message = f"{what} {text!r} must read name=value, such as target-file-size=64MB"
            raise InvalidRequest(message)
        found[name.strip()] = value.strip()
    return found


def names_of(written: list[str] | None) -> list[str]:
    """Return names given one by one, or parted by commas outside of brackets."""
    found: list[str] = []
    for text in written or []:
        depth, start = 0, 0
        for place, character in enumerate(text):
            depth += {"(": 1, ")": -1}.get(character, 0)
            if character == "," and depth == 0:
                found.append(text[start:place])
                start = place + 1
        found.append(text[start:])
    return [name.strip() for name in found if name.strip()]
