"""Arctic: a stream-and-batch lakehouse for PySpark, without a single jar.

Read the packages in this order; each imports only those above it:

    table/     what a table is
    tree/      where a key lives
    commit/    how files become visible, all at once
    ingest/    rows in
    resolve/   which rows are alive
    read/      rows out
    compact/   files in shape
    pull/      what changed between two versions
    stream/    rows that never end
    inspect/   looking at a table
    verbs/     whole operations
    cli/       the same verbs in a terminal

`Lake` is the door. It is loaded when first asked for, so that Spark workers, which import only the
inner modules, do not pay for catalogs they never open.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from arcticlake.lake import Lake, Table

__version__ = "0.1.0"
__all__ = ["Lake", "Table", "__version__"]

_HOMES = {"Lake": "arcticlake.lake", "Table": "arcticlake.lake"}


def __getattr__(name: str) -> object:
    """Load a public name from its module."""
    if name not in _HOMES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(_HOMES[name]), name)
