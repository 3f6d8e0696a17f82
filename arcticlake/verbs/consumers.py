"""consumers and drop_consumer: which streams read a table, and how far they are.

Touches the catalog.
"""

from __future__ import annotations

from arcticlake.stream import iceberg_consumers
from arcticlake.stream.consumers import Consumer
from arcticlake.verbs.opened import Opened


def consumers(table: Opened) -> list[Consumer]:
    """Return the named consumers, by name."""
    return list(iceberg_consumers.load_consumers(table.pair()))


def drop_consumer(table: Opened, name: str) -> None:
    """Forget a consumer; what it had not read may expire from then on."""
    iceberg_consumers.drop_consumer(table.pair(), name)
