"""A writer that never stops: upserts and compactions in turn, until somebody kills it.

    python -m tests.compact.worker WAREHOUSE ACKNOWLEDGED FIRST

Each line of the file ACKNOWLEDGED is the number of a batch whose commit was confirmed.
"""

from __future__ import annotations

import sys
from itertools import count, cycle
from pathlib import Path

import pyarrow as pa

from arcticlake import Lake

IDS = 300
SIZE = 60
KINDS = ("minor", "auto", "major", "full")


def rows(number: int) -> pa.Table:
    """Return batch `number`: some keys, in turn over all of them."""
    ids = [(number * 37 + place * 7) % IDS for place in range(SIZE)]
    unique = list(dict.fromkeys(ids))
    return pa.table({"id": unique, "batch": [number] * len(unique)})


def main(warehouse: str, acknowledged: str, first: str) -> None:
    """Write and compact for ever."""
    table = Lake.open(warehouse).table("a.b")
    kinds = cycle(KINDS)
    with Path(acknowledged).open("a", encoding="utf-8") as told:
        for number in count(int(first)):
            table.upsert(rows(number))
            told.write(f"{number}\n")
            told.flush()
            table.compact(next(kinds))


if __name__ == "__main__":
    main(*sys.argv[1:])
