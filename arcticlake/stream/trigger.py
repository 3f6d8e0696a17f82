"""When a stream takes its next micro-batch, as users type it.

    None              at once when the last batch is done
    "10 seconds"      every ten seconds
    "available-now"   all that is there now, in as many batches as the source makes; then it ends

Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from arcticlake.errors import InvalidRequest

AVAILABLE_NOW = "available-now"

_PAUSE = re.compile(
    r"(?P<number>\d{1,9}) ?(?P<unit>(milli)?seconds?|minutes?|hours?|days?)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Trigger:
    """Spark's words for it; both empty: as fast as possible."""

    pause: str | None = None
    available_now: bool = False


def parse_trigger(text: object, *, table: str) -> Trigger:
    """Return the trigger that a text names, or refuse it."""
    if text is None:
        return Trigger()
    words = " ".join(text.split()) if isinstance(text, str) else ""
    if words.lower() == AVAILABLE_NOW:
        return Trigger(available_now=True)
    found = _PAUSE.fullmatch(words)
    if found is None:
        message = (
            f"table {table}: trigger {text!r} is not known; give a pause such as '10 seconds' or "
            f"'1 minute', '{AVAILABLE_NOW}' to take what is there and end, or nothing"
        )
        raise InvalidRequest(message)
    return Trigger(pause=f"{int(found['number'])} {found['unit'].lower()}")
