"""Options of a reading stream."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from arcticlake.errors import InvalidRequest
from arcticlake.pull.range import Moment
from arcticlake.stream.feed import FeedRequest, parse_feed
from arcticlake.stream.offset import Limit

PATH = {"path": "shop.orders"}


def test_options_without_values_have_defaults() -> None:
    """INC-13: ten seconds."""
    assert parse_feed(PATH) == FeedRequest("shop.orders")
    assert parse_feed(PATH).poll_seconds == 10


def test_options_are_read_whatever_their_case() -> None:
    asked = parse_feed(
        PATH
        | {"warehouse": "w", "SINCE": "7", "Order": "TRUE", "maxfilespertrigger": "3"}
        | {"maxRowsPerTrigger": "100", "pollInterval": "500 ms", "consumer": "billing"}
    )
    assert asked == FeedRequest("shop.orders", "w", None, 7, True, Limit(3, 100), 0.5, "billing")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10", 10), ("2 seconds", 2), ("1 minute", 60), ("0s", 0), ("1.5s", 1.5), ("250ms", 0.25)],
)
def test_a_pause_is_read_as_people_write_it(text: str, seconds: float) -> None:
    assert parse_feed(PATH | {"pollInterval": text}).poll_seconds == pytest.approx(seconds)


def test_since_may_be_a_moment() -> None:
    """INC-08; without a zone it stands in UTC."""
    noon = int(datetime(2026, 11, 15, 12, tzinfo=UTC).timestamp() * 1000)
    assert parse_feed(PATH | {"since": "2026-11-15T12:00:00"}).since == Moment(
        noon, "2026-11-15T12:00:00"
    )


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"until": "7"}, "does not end"),
        ({"version": "7"}, "does not end"),
        ({"sinc": "7"}, "did you mean since"),
        ({"since": "soon"}, "neither a version"),
        ({"since": "-1"}, "neither a version"),
        ({"order": "yes"}, "true or false"),
        ({"maxRowsPerTrigger": "0"}, "whole number from 1"),
        ({"maxFilesPerTrigger": "many"}, "whole number from 1"),
        ({"pollInterval": "often"}, "is not a pause"),
        ({"consumer": "two words"}, "letters"),
        ({"path": ""}, "name the table"),
    ],
)
def test_what_a_stream_cannot_do_is_refused(options: dict[str, str], told: str) -> None:
    """INC-07, INC-11."""
    with pytest.raises(InvalidRequest, match=told):
        parse_feed(PATH | options)
