"""Several processes on one table, and one that dies in the middle."""

from __future__ import annotations

import multiprocessing
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from arcticlake.commit.iceberg import commit_snapshot, live_entries
from tests.commit.lab import append, create, files_under, real_files
from tests.commit.worker import append_and_die, append_many

WRITERS, COMMITS = 4, 25
# One process imports everything once and the writers are forked from it, so that they start at
# the same moment and the test is about commits and not about imports.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.commit.worker"])


@pytest.fixture
def sqlite_uri(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/catalog.db"


@pytest.fixture
def postgres_uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pgserver = pytest.importorskip("pgserver", reason="no embedded PostgreSQL on this Python")
    server = pgserver.get_server(tmp_path_factory.mktemp("pg"), cleanup_mode="delete")
    try:
        yield server.get_uri().replace("postgresql://", "postgresql+psycopg2://")
    finally:
        server.cleanup()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite_uri", "postgres_uri"])
def test_every_commit_of_four_processes_lands_exactly_once(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    uri = request.getfixturevalue(kind)
    catalog = SqlCatalog("lab", uri=uri, warehouse=str(tmp_path))
    create(catalog)

    with PROCESSES.Pool(WRITERS) as pool:
        told = pool.starmap(append_many, [(uri, str(tmp_path), COMMITS)] * WRITERS, chunksize=1)
    acknowledged = [identity for acknowledgements in told for identity, _ in acknowledgements]
    files = [path for acknowledgements in told for _, path in acknowledgements]
    table = catalog.load_table("db.t")
    catalog.close()

    snapshots = table.metadata.snapshots
    landed = Counter(s.summary["arctic.commit-id"] for s in snapshots if s.summary)
    assert len(acknowledged) == WRITERS * COMMITS
    assert landed == Counter(acknowledged)
    live = Counter(e.data_file.file_path for e in live_entries(table, table.current_snapshot()))
    assert live == Counter(files)
    assert max(live.values()) == 1
    assert [s.sequence_number for s in snapshots] == list(range(1, WRITERS * COMMITS + 1))


def test_a_crash_between_manifests_and_catalog_leaves_the_table_as_it_was(
    table: Table, catalog: SqlCatalog, sqlite_uri: str, tmp_path: Path
) -> None:
    table = commit_snapshot(table, append(*real_files(table, [1, 2, 3], spec_id=0)), "one")
    before = files_under(tmp_path)

    dying = PROCESSES.Process(target=append_and_die, args=(sqlite_uri, str(tmp_path)))
    dying.start()
    dying.join(timeout=120)

    assert dying.exitcode == -signal.SIGKILL
    assert len(files_under(tmp_path)) == len(before) + 2, "a manifest and a list, both orphans"
    loaded = catalog.load_table("db.t")
    assert loaded.metadata == table.metadata
    assert sorted(loaded.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]
    loaded = commit_snapshot(loaded, append(*real_files(loaded, [4], spec_id=0)), "two")
    assert sorted(loaded.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4]
