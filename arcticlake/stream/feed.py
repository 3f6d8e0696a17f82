"""What `readStream.format("arctic")` is asked for: its options, read and checked.

    since              absent: everything first, then changes; a version or moment: changes after it
    order              true: a column `_change_order`, see `change_order.py`
    maxFilesPerTrigger, maxRowsPerTrigger    how much one batch takes
    pollInterval       how often the catalog is asked, 10 seconds by default (INC-13)
    consumer           a name under which the stream says how far it is

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from difflib import get_close_matches

from arcticlake.errors import InvalidRequest
from arcticlake.pull.range import Moment
from arcticlake.stream.consumers import check_consumer_name
from arcticlake.stream.offset import NO_LIMIT, Limit

POLL_SECONDS = 10.0

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
