"""One open table: how a verb gets at its state, its schemas and a Spark session.

Every verb loads the state anew, so it always acts on the last commit.

Touches the catalog.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyspark.sql import SparkSession

from arcticlake.commit.iceberg_state import TableState, load_settled, load_state
from arcticlake.ingest.plan import changes_schema
from arcticlake.read.iceberg import load_positions
from arcticlake.read.lookup import Lookup
from arcticlake.table.change import ACTION, ORDER, SEQ
from arcticlake.table.iceberg import TablePair, sync_change_schema
from arcticlake.table.types import arrow_schema


@dataclass(frozen=True, slots=True)
class Opened:
    """A table of a lake, by name."""

    catalog: Catalog
    name: str
    session: Callable[[], SparkSession]
    """Returns the lake's session, made on first need."""

    def pair(self) -> TablePair:
        """Load both tables, base first."""
        return load_settled(self.catalog, self.name)

    def pair_to_write(self) -> TablePair:
        """Load both tables; the change table follows the schema of base."""
        return sync_change_schema(self.pair())

    def state(self, at: int | None = None) -> TableState:
        """Load the newest state, or that of a version."""
        return load_state(self.pair(), at)


def hidden_schema(pair: TablePair) -> pa.Schema:
    """Return the hidden columns that a resolution reads, with field ids."""
    whole = changes_schema(pair.spec)
    return pa.schema([whole.field(name) for name in (ACTION, ORDER, SEQ)])


def lookup_in(state: TableState) -> Lookup:
    """Return a look-up in a loaded state."""
    pair = state.pair
    return Lookup(
        spec=pair.spec,
        view=state.view,
        files=state.files,
        storage=pair.storage,
        schema=arrow_schema(pair.spec.schema),
        hidden_schema=hidden_schema(pair),
        positions=load_positions(pair.base.io, state.files.bases),
    )
