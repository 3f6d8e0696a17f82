"""What `readStream.format("arctic")` is asked for, and the number that orders changes of a key.

    since              absent: everything first, then changes; a version or moment: changes after it
    order              true: a column `_change_order`
    maxFilesPerTrigger, maxRowsPerTrigger    how much one batch takes
    pollInterval       how often the catalog is asked, 10 seconds by default (INC-13)
    consumer           a name under which the stream says how far it is

Two changes of one key are ordered by version, then by their place in the commit, then an ending
before what replaces it. One number says it all:

    _change_order = version · 2^31 + 2 · rank of the place + (0 if the row ends the key, else 1)

The rank counts the places in the files that may hold the same key, from 1; no place has rank 0.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from difflib import get_close_matches

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from arcticlake.errors import InvalidRequest
from arcticlake.pull.columns import COMMIT_VERSION, ENDS
from arcticlake.pull.range import Moment
from arcticlake.stream.consumers import check_consumer_name
from arcticlake.stream.offset import NO_LIMIT, Limit
from arcticlake.table.change import ORDER

CHANGE_ORDER = "_change_order"
POLL_SECONDS = 10.0
VERSION_STEP = 2**31

Places = npt.NDArray[np.int64]

_OPTIONS = (
    *("path", "warehouse", "catalog", "since", "order", "consumer"),
    *("maxFilesPerTrigger", "maxRowsPerTrigger", "pollInterval"),
)
_NOT_FOR_STREAMS = {"until", "version", "timestamp", "tag", "mode"}
_UNITS = {"ms": 0.001, "millisecond": 0.001, "second": 1.0, "minute": 60.0, "hour": 3600.0}
_PAUSE = re.compile(
    r"(?P<number>\d{1,9}(\.\d{1,9})?) ?((?P<unit>ms|millisecond|second|minute|hour)s?|s)?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class FeedRequest:
    """What the options of a reading stream ask for."""

    table: str
    warehouse: str | None = None
    catalog: str | None = None
    since: int | Moment | None = None
    ordered: bool = False
    limit: Limit = field(default_factory=Limit)
    poll_seconds: float = POLL_SECONDS
    consumer: str | None = None


def parse_feed(options: Mapping[str, str]) -> FeedRequest:
    """Return the request in the options of a stream, or refuse it."""
    given = {name.lower(): value for name, value in options.items()}
    table = given.get("path", "")
    if not table:
        message = "format arctic: name the table in load(), as in load('shop.orders')"
        raise InvalidRequest(message)
    _refuse_unknown(given, table)
    consumer = given.get("consumer")
    return FeedRequest(
        table=table,
        warehouse=given.get("warehouse"),
        catalog=given.get("catalog"),
        since=_since(given.get("since"), table),
        ordered=_flag(given.get("order"), table),
        limit=Limit(
            files=_count(given, "maxFilesPerTrigger", table),
            rows=_count(given, "maxRowsPerTrigger", table),
        ),
        poll_seconds=_seconds(given.get("pollinterval"), table),
        consumer=None if consumer is None else check_consumer_name(consumer, table=table),
    )


def _refuse_unknown(given: Mapping[str, str], table: str) -> None:
    known = {name.lower(): name for name in _OPTIONS}
    for name in given:
        if name in _NOT_FOR_STREAMS:
            message = (
                f"table {table}: a stream does not end and cannot take {name} (INC-07, INC-11); "
                "use since to choose its start, or changes() and read() for what is over"
            )
            raise InvalidRequest(message)
        if name not in known:
            near = get_close_matches(name, known, n=1)
            told = f"did you mean {known[near[0]]}?" if near else f"use {', '.join(_OPTIONS)}"
            message = f"table {table}: a reading stream has no option {name!r}; {told}"
            raise InvalidRequest(message)


def _since(text: str | None, table: str) -> int | Moment | None:
    if text is None:
        return None
    words = text.strip()
    if words.isdigit():
        return int(words)
    try:
        moment = datetime.fromisoformat(words)
    except ValueError:
        message = (
            f"table {table}: since {text!r} is neither a version, which is a whole number, nor a "
            "moment in ISO 8601, such as 2026-11-15T12:00:00Z"
        )
        raise InvalidRequest(message) from None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return Moment(int(moment.timestamp() * 1000), words)


def _flag(text: str | None, table: str) -> bool:
    word = (text or "false").strip().lower()
    if word not in {"true", "false"}:
        message = f"table {table}: option order is true or false, not {text!r}"
        raise InvalidRequest(message)
    return word == "true"


def _count(given: Mapping[str, str], name: str, table: str) -> int:
    text = given.get(name.lower())
    if text is None:
        return NO_LIMIT
    if not text.strip().isdigit() or int(text) == 0:
        message = f"table {table}: option {name} is a whole number from 1, not {text!r}"
        raise InvalidRequest(message)
    return int(text)


def _seconds(text: str | None, table: str) -> float:
    if text is None:
        return POLL_SECONDS
    found = _PAUSE.fullmatch(text.strip())
    if found is None:
        message = (
            f"table {table}: pollInterval {text!r} is not a pause such as '10 seconds' or '500 ms'"
        )
        raise InvalidRequest(message)
    return float(found["number"]) * _UNITS[(found["unit"] or "second").lower()]


def distinct_places(parts: list[pa.Array]) -> Places:
    """Return the places in a commit that rows have, each once and in order."""
    values = pa.chunked_array(parts, pa.int64()).drop_null()
    return np.unique(values.to_numpy())


def change_order(rows: pa.RecordBatch, places: Places) -> pa.Array:
    """Return the number of each travelling row that orders it among the changes of its key."""
    assert 2 * len(places) + 1 < VERSION_STEP - 1, "a commit has fewer places than fit a step"
    at = rows.column(ORDER)
    known = pc.fill_null(at, 0).to_numpy(zero_copy_only=False)
    ranks = np.where(at.is_null().to_numpy(zero_copy_only=False), 0, 1 + places.searchsorted(known))
    versions = rows.column(COMMIT_VERSION).to_numpy(zero_copy_only=False)
    lives = ~rows.column(ENDS).to_numpy(zero_copy_only=False)
    return pa.array(versions * VERSION_STEP + 2 * ranks + lives, pa.int64())
