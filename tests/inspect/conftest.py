from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from arcticlake import Lake, Table
from tests.inspect.lab import opened_lake, orders_table


@pytest.fixture
def lake(warehouse: Path) -> Iterator[Lake]:
    with opened_lake(warehouse) as lake:
        yield lake


@pytest.fixture
def table(lake: Lake) -> Table:
    """An empty table of orders with two leaves."""
    return orders_table(lake)
