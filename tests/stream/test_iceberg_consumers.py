"""Consumers in a real catalog, beside other writers."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from arcticlake import Lake
from arcticlake.errors import NotFound
from arcticlake.stream.consumers import Consumer
from arcticlake.stream.iceberg_consumers import drop_consumer, load_consumers, record_consumer
from tests.verbs.shop import orders, rows, statuses

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def test_a_consumer_is_recorded_on_the_newest_state(warehouse: Path) -> None:
    """A pair that was loaded long ago is no reason to fail, and no commit is lost."""
    table = orders(Lake.open(str(warehouse)))
    old = table._opened.pair()
    table.upsert(rows([1]))
    record_consumer(old, Consumer("a", 1, NOON))
    table.upsert(rows([2]))
    record_consumer(old, Consumer("b", 2, NOON))
    assert load_consumers(table._opened.pair()) == (Consumer("a", 1, NOON), Consumer("b", 2, NOON))
    assert statuses(table) == {1: "new", 2: "new"}
    assert [entry.version for entry in table.history()] == [2, 1], "a consumer is no version"


def test_the_same_version_is_not_written_again(warehouse: Path) -> None:
    table = orders(Lake.open(str(warehouse)))
    record_consumer(table._opened.pair(), Consumer("a", 1, NOON))
    change = table._opened.pair().change
    assert change is not None
    record_consumer(table._opened.pair(), Consumer("a", 1, datetime(2027, 1, 1, tzinfo=UTC)))
    again = table._opened.pair().change
    assert again is not None
    assert again.metadata_location == change.metadata_location


def test_a_dropped_consumer_is_gone(warehouse: Path) -> None:
    table = orders(Lake.open(str(warehouse)))
    record_consumer(table._opened.pair(), Consumer("a", 1, NOON))
    drop_consumer(table._opened.pair(), "a")
    assert load_consumers(table._opened.pair()) == ()
    with pytest.raises(NotFound, match="consumers: none"):
        drop_consumer(table._opened.pair(), "a")
