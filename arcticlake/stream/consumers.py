"""Named consumers: streams that say how far they have read, so that others can wait for them.

    arctic.consumer.<name> = "<version> <moment>"

The line is a property of the change table, or of base where there is no key. The version is done,
what comes after it is still needed.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from arcticlake.errors import InvalidRequest

CONSUMER = "arctic.consumer."

_NAME = re.compile(r"[A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True)
class Consumer:
    """A stream by its name, how far it has read, and when it said so."""

    name: str
    version: int
    timestamp: datetime


def check_consumer_name(name: object, *, table: str) -> str:
    """Return a name, or refuse one that is not plain letters."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        message = f"table {table}: consumer {name!r} must be made of letters, digits, _, - and ."
        raise InvalidRequest(message)
    return name


def encode_consumer(consumer: Consumer) -> tuple[str, str]:
    """Return the property that tells of a consumer."""
    moment = consumer.timestamp.astimezone(UTC).isoformat(timespec="milliseconds")
    return CONSUMER + consumer.name, f"{consumer.version} {moment}"


def decode_consumers(properties: Mapping[str, str]) -> tuple[Consumer, ...]:
    """Return the consumers among properties, by name; a line that nobody understands is left."""
    found = []
    for key, value in sorted(properties.items()):
        version, _, moment = value.partition(" ")
        if not key.startswith(CONSUMER) or not version.isdigit():
            continue
        try:
            timestamp = datetime.fromisoformat(moment)
        except ValueError:
            continue
        found.append(Consumer(key.removeprefix(CONSUMER), int(version), timestamp))
    return tuple(found)
