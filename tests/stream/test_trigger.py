"""Triggers as users type them."""

from __future__ import annotations

import pytest

from arcticlake.errors import InvalidRequest
from arcticlake.stream.trigger import Trigger, parse_trigger


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (None, Trigger()),
        ("1 minute", Trigger(pause="1 minute")),
        ("  10   Seconds ", Trigger(pause="10 seconds")),
        ("500milliseconds", Trigger(pause="500 milliseconds")),
        ("available-now", Trigger(available_now=True)),
        ("Available-Now", Trigger(available_now=True)),
    ],
)
def test_a_trigger_is_a_pause_or_a_word(text: str | None, wanted: Trigger) -> None:
    assert parse_trigger(text, table="shop.orders") == wanted


@pytest.mark.parametrize("text", ["", "once", "often", "10", "-1 seconds", "1 fortnight", 10, True])
def test_what_is_no_trigger_is_refused_by_name(text: object) -> None:
    with pytest.raises(InvalidRequest, match=r"table shop.orders: trigger .* is not known"):
        parse_trigger(text, table="shop.orders")
