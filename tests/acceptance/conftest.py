"""An empty lake for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from arcticlake import Lake


@pytest.fixture
def lake(warehouse: Path) -> Iterator[Lake]:
    opened = Lake.open(str(warehouse))
    yield opened
    assert isinstance(opened.catalog, SqlCatalog)
    opened.catalog.close()
