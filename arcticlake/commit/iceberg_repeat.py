"""Small commits that may be said twice: a tag, a property. Whatever goes wrong, look and try again.

Data is never committed this way; that is `commit/loop.py`, which knows three outcomes.

Touches the catalog.
"""

from __future__ import annotations

from collections.abc import Callable

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table

from arcticlake.commit.answer import as_arctic, worth_repeating
from arcticlake.commit.iceberg import Clock, reload
from arcticlake.errors import Conflict

_ATTEMPTS_MAX = 20


def repeat_until(
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
