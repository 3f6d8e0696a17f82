"""Consumers as a user sees them; streams record them in tests/stream/test_spark_feed.py."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from arcticlake import Lake
from arcticlake.errors import NotFound
from arcticlake.stream.consumers import Consumer
from arcticlake.stream.iceberg_consumers import record_consumer
from arcticlake.verbs.consumers import consumers
from tests.verbs.shop import orders

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def test_consumers_are_listed_by_name_and_dropped(warehouse: Path) -> None:
    table = orders(Lake.open(str(warehouse)))
    record_consumer(table._opened.pair(), Consumer("search", 1, NOON))
    record_consumer(table._opened.pair(), Consumer("billing", 3, NOON))
    assert [(c.name, c.version) for c in consumers(table._opened)] == [
        ("billing", 3),
        ("search", 1),
    ]
    table.drop_consumer("billing")
    assert [c.name for c in table.consumers()] == ["search"]
    with pytest.raises(NotFound, match="no consumer 'billing'; consumers: search"):
        table.drop_consumer("billing")
