"""Claims: each is one line of output, and the first word says whether it holds.

Touches standard output.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

from story import Row, difference

CLAIM_FAILED = 9
_FAILED: list[str] = []
_TOLD: set[str] = set()


def claim(act: int, holds: bool, text: str, seen: object = "") -> None:
    """Print one claim; a failed one is remembered for the exit code."""
    told = f" [{seen}]" if seen != "" else ""
    print(f"{'ok    ' if holds else 'FAILED'} {act}  {text}{told}", flush=True)
    if not holds:
        _FAILED.append(text)


def claim_rows(act: int, found: Iterable[Row], wanted: Iterable[Row], text: str) -> None:
    """Claim that rows are exactly those wanted."""
    rows = list(found)
    problem = difference(rows, wanted)
    claim(act, not problem, text, problem or f"{len(rows)} rows")


def claim_refused(act: int, call: Callable[[], object], kind: type, word: str, text: str) -> None:
    """Claim that a call is refused with an error of a kind that names what to do."""
    try:
        call()
    except kind as error:
        message = str(error)
        fresh = message not in _TOLD
        _TOLD.add(message)
        claim(act, word in message, text, message if fresh else "the same")
    except Exception as error:  # noqa: BLE001 - any other error fails the claim, and is shown
        claim(act, False, text, f"{type(error).__name__}: {error}")
    else:
        claim(act, False, text, "it was not refused")


def finish() -> None:
    """End the turn; a failed claim is told by an exit code of its own."""
    sys.exit(CLAIM_FAILED if _FAILED else 0)
