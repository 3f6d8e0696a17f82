"""How much a leaf group needs work.

Pure.
"""

from __future__ import annotations

from enum import StrEnum


class Work(StrEnum):
    """What is done to one group of files."""

    KEEP = "keep"
    MINOR = "minor"
    MAJOR = "major"
    FULL = "full"
