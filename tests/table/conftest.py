from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog

from arcticlake.table.iceberg import open_catalog


@pytest.fixture
def catalog(warehouse: Path) -> Iterator[Catalog]:
    opened = open_catalog(str(warehouse), None)
    yield opened
    assert isinstance(opened, SqlCatalog)
    opened.close()
