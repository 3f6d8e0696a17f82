"""Consumers in the properties of a table: load, record and drop.

Whoever is slower than another writer of the table's metadata simply says it again on the newest
state; a consumer has one writer, its query.

Touches the catalog.
"""

from __future__ import annotations

from pyiceberg.table import Table

from arcticlake.commit.iceberg import WALL_CLOCK, Clock, reload
from arcticlake.commit.iceberg_repeat import repeat_until
from arcticlake.errors import NotFound
from arcticlake.stream.consumers import CONSUMER, Consumer, decode_consumers, encode_consumer
from arcticlake.table.iceberg import TablePair


def load_consumers(pair: TablePair) -> tuple[Consumer, ...]:
    """Return all consumers of a table, by name."""
    return decode_consumers(_holder(pair).properties)


def record_consumer(pair: TablePair, consumer: Consumer, clock: Clock = WALL_CLOCK) -> None:
    """Say how far a consumer is; a version that is said already is not said again."""
    key, value = encode_consumer(consumer)
    told = f"{consumer.version} "

    def act(table: Table) -> None:
        with table.transaction() as transaction:
            transaction.set_properties({key: value})

    repeat_until(
        reload(_holder(pair)),
        f"table {pair.spec.name}: recording consumer {consumer.name}",
        done=lambda table: table.properties.get(key, "").startswith(told),
        act=act,
        clock=clock,
    )


def drop_consumer(pair: TablePair, name: str, clock: Clock = WALL_CLOCK) -> None:
    """Forget a consumer; what it had not read may expire from then on."""
    key = CONSUMER + name
    if key not in _holder(pair).properties:
        known = ", ".join(consumer.name for consumer in load_consumers(pair)) or "none"
        message = f"table {pair.spec.name} has no consumer {name!r}; consumers: {known}"
        raise NotFound(message)

    def act(table: Table) -> None:
        with table.transaction() as transaction:
            transaction.remove_properties(key)

    repeat_until(
        _holder(pair),
        f"table {pair.spec.name}: dropping consumer {name}",
        done=lambda table: key not in table.properties,
        act=act,
        clock=clock,
    )


def _holder(pair: TablePair) -> Table:
    return pair.base if pair.change is None else pair.change
