from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from tests.commit.lab import create, sqlite_catalog


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[SqlCatalog]:
    with sqlite_catalog(tmp_path) as opened:
        yield opened


@pytest.fixture
def table(catalog: SqlCatalog) -> Table:
    return create(catalog)


@pytest.fixture(autouse=True)
def planner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Polars plan with pyiceberg, whether its own planner is installed or not."""
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
