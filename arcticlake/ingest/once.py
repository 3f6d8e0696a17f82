"""Once: the name of a micro-batch, so that it is committed exactly once.

A stream repeats a batch whenever it does not know whether the last try landed: after a crash, after
a lost answer, or because a driver that was given up still works. The rows are then the same, and
so is the name (query, batch). The table remembers the last batch of each query in a property:

    arctic.stream.<query> = <batch> <version>

It is set in the same commit as the rows. A commit asserts the head of the table, so of two tries
of one batch the second meets a head that has the property, and leaves the table as it is. A
property outlives the expiry of snapshots and a rollback; snapshot summaries name the batch too,
for people.

Batches of one query come in order, so a batch below the remembered one is in the table as well.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from arcticlake.errors import CorruptData, InvalidRequest

STREAM = "arctic.stream."
STREAM_QUERY, STREAM_BATCH = "arctic.stream-query", "arctic.stream-batch"

_QUERY = re.compile(r"[\w.:-]{1,200}")


@dataclass(frozen=True, slots=True)
class Once:
    """One micro-batch of one query."""

    query: str
    """Stable over restarts, and another one for every checkpoint."""
    batch: int

    def __post_init__(self) -> None:
        if not _QUERY.fullmatch(self.query) or self.batch < 0:
            message = (
                f"batch {self.batch} of query {self.query!r} is no name for a micro-batch: a query "
                "is named by letters, digits and . : _ -, a batch by a number from 0"
            )
            raise InvalidRequest(message)

    def committed_in(self, properties: Mapping[str, str]) -> int | None:
        """Return the version that this batch, or a later one, got; None if it is new."""
        text = properties.get(STREAM + self.query)
        if text is None:
            return None
        try:
            batch, version = (int(part) for part in text.split(" "))
        except ValueError:
            message = f"property {STREAM}{self.query} = {text!r} cannot be read; run verify()"
            raise CorruptData(message) from None
        return version if batch >= self.batch else None


def summary_of(once: Once | None) -> dict[str, str]:
    """Return what a snapshot says of its batch; nothing where rows come from no stream."""
    return {} if once is None else {STREAM_QUERY: once.query, STREAM_BATCH: str(once.batch)}


def properties_of(once: Once | None, version: int) -> dict[str, str]:
    """Return what the table remembers of a batch that is committed as this version."""
    return {} if once is None else {STREAM + once.query: f"{once.batch} {version}"}
