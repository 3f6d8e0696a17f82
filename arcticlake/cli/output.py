"""Text or JSON: the one place that writes results, notes and errors.

    stdout   the result, and nothing else: text for people, or one JSON object or array
    stderr   notes and progress (text only), and errors in the form of the results

JSON holds dates and timestamps as ISO 8601, decimals as strings, bytes as base64, and the floats
that JSON lacks as the strings NaN, Infinity and -Infinity. There is no colour.

Touches stdout and stderr.
"""

from __future__ import annotations

import json
import math
import re
import sys
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from enum import StrEnum
from typing import TextIO

MISSING = "NULL"
# Rows may hold anything, also sequences that would move the cursor of a terminal.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\\]")


class Form(StrEnum):
    """How results are written."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Failure:
    """An error as the terminal shows it."""

    kind: str
    message: str
    exit_code: int


@dataclass(frozen=True, slots=True)
class Screen:
    """Where a call writes."""

    form: Form

    def show(self, value: object, text: str) -> None:
        """Write a result: the value as JSON, or the text."""
        if self.form is Form.JSON:
            text = encode(value)
        if text:
            _write(sys.stdout, text)

    def note(self, text: str) -> None:
        """Tell a person what happens; programs that ask for JSON are left alone."""
        if self.form is Form.TEXT:
            _write(sys.stderr, text)

    def fail(self, failure: Failure) -> None:
        """Write an error: one line of text, or one JSON object on a line."""
        if self.form is Form.JSON:
            told = {"kind": failure.kind, "message": failure.message}
            _write(sys.stderr, json.dumps({"error": told}, ensure_ascii=False))
        else:
            _write(sys.stderr, f"error: {failure.message}")


def _write(stream: TextIO, text: str) -> None:
    stream.write(text + "\n")
    stream.flush()


def encode(value: object) -> str:
    """Return a value as JSON; an array has one element a line, so that tools can cut it."""
    ready = plain(value)
    if isinstance(ready, list):
        lines = [json.dumps(element, ensure_ascii=False, allow_nan=False) for element in ready]
        return "[\n" + ",\n".join(lines) + "\n]" if lines else "[]"
    return json.dumps(ready, ensure_ascii=False, allow_nan=False, indent=2)


def plain(value: object) -> object:
    """Return a value in the words of JSON."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else _unlimited(value)
        case Decimal():
            return str(value)
        case bytes():
            return b64encode(value).decode()
        case date() | time():
            return value.isoformat()
        case Mapping():
            return {str(plain(name)): plain(inner) for name, inner in value.items()}
        case Sequence() | set() | frozenset():
            return [plain(inner) for inner in value]
    return str(value)


def _unlimited(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def table_text(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return rows under a header, in columns; numbers stand on the right."""
    if not rows:
        return ""
    cells = [[cell_text(value) for value in row] for row in rows]
    lines = [[*columns], *cells]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
    right = [
        all(isinstance(row[place], int | float | Decimal | None) for row in rows)
        for place in range(len(columns))
    ]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if is_number else cell.ljust(width)
            for cell, width, is_number in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    )


def cell_text(value: object) -> str:
    """Return a value as it stands in a cell, on one line."""
    match value:
        case None:
            return MISSING
        case bool():
            return str(value).lower()
        case datetime():
            return value.isoformat(sep=" ")
        case str():
            return _CONTROL.sub(lambda found: repr(found.group())[1:-1], value)
        case Mapping() | list() | tuple():
            return json.dumps(plain(value), ensure_ascii=False)
    shown = plain(value)
    return shown if isinstance(shown, str) else str(shown)


def count_text(count: int, noun: str) -> str:
    """Return a number with its noun: 1 row, 2,000 rows."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
