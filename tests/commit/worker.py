"""What the processes of the concurrency tests do; apart, because each imports it afresh."""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Callable

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.update import TableRequirement, TableUpdate

from arcticlake.commit.change import SnapshotChange
from arcticlake.commit.iceberg import commit_snapshot
from arcticlake.commit.loop import commit
from tests.commit.lab import append, stand_in


def _always(change: SnapshotChange) -> Callable[[Table], SnapshotChange]:
    return lambda _: change


def append_many(uri: str, warehouse: str, times: int) -> list[tuple[str, str]]:
    """Append one file at a time; return the commit ids and paths that were acknowledged."""
    catalog = SqlCatalog("lab", uri=uri, warehouse=warehouse)
    acknowledged = []
    for _ in range(times):
        identity = uuid.uuid4().hex
        change = append(stand_in(catalog.load_table("db.t")))
        decide = _always(change)
        commit(lambda: catalog.load_table("db.t"), decide, identity)
        acknowledged.append((identity, change.added[0].file_path))
    catalog.close()
    return acknowledged


class DyingCatalog(SqlCatalog):
    """Kills its process when the manifests are written and the commit is about to be sent."""

    def commit_table(
        self,
        table: Table,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> CommitTableResponse:
        os.kill(os.getpid(), signal.SIGKILL)
        return super().commit_table(table, requirements, updates)


def append_and_die(uri: str, warehouse: str) -> None:
    catalog = DyingCatalog("lab", uri=uri, warehouse=warehouse)
    table = catalog.load_table("db.t")
    commit_snapshot(table, append(stand_in(table)), "dead")
