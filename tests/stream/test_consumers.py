"""Consumers as properties of a table."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from arcticlake.errors import InvalidRequest
from arcticlake.stream.consumers import (
    Consumer,
    check_consumer_name,
    decode_consumers,
    encode_consumer,
)

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def test_consumers_survive_as_properties() -> None:
    consumers = (Consumer("billing", 7, NOON), Consumer("search.v2", 0, NOON))
    properties = dict(map(encode_consumer, consumers)) | {"owner": "me"}
    assert properties["arctic.consumer.billing"] == "7 2026-11-15T12:00:00.000+00:00"
    assert decode_consumers(properties) == consumers


def test_a_line_that_nobody_understands_is_left_out() -> None:
    properties = {"arctic.consumer.a": "x", "arctic.consumer.b": "7 noon", "arctic.consumer.c": ""}
    assert decode_consumers(properties) == ()


@pytest.mark.parametrize("name", ["", "two words", "a/b", None])
def test_a_name_that_is_not_plain_is_refused(name: object) -> None:
    with pytest.raises(InvalidRequest, match="table t: consumer"):
        check_consumer_name(name, table="t")
