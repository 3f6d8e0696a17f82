"""Consumers in the properties of a table: load, record and drop.

Whoever is slower than another writer of the table's metadata simply says it again on the newest
state; a consumer has one writer, its query.

Touches the catalog.
"""

from __future__ import annotations

from collections.abc import Callable

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table

from arcticlake.commit.answer import as_arctic, worth_repeating
from arcticlake.commit.iceberg import WALL_CLOCK, Clock, reload
from arcticlake.errors import Conflict, NotFound
from arcticlake.stream.consumers import CONSUMER, Consumer, decode_consumers, encode_consumer
from arcticlake.table.iceberg import TablePair

_ATTEMPTS_MAX = 20


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

    _repeat(
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

    _repeat(
        _holder(pair),
        f"table {pair.spec.name}: dropping consumer {name}",
        done=lambda table: key not in table.properties,
        act=act,
        clock=clock,
    )


def _holder(pair: TablePair) -> Table:
    return pair.base if pair.change is None else pair.change


def _repeat(
    table: Table,
    doing: str,
    *,
    done: Callable[[Table], bool],
    act: Callable[[Table], None],
    clock: Clock,
) -> None:
    """Act until it is done; saying the same twice does no harm, so a lost answer is looked at."""
    for attempt in range(_ATTEMPTS_MAX):
        if done(table):
            return
        try:
            act(table)
        except Exception as error:
            if not worth_repeating(error) and not isinstance(error, CommitFailedException):
                raise (as_arctic(error, doing) or error) from error
            clock.sleep(clock.random() * 0.05 * 2 ** min(attempt, 5))
        table = reload(table)
    if not done(table):
        message = f"{doing}: others keep changing the table; try again"
        raise Conflict(message)
