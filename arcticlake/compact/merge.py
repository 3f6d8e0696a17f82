"""Sorted streams → one sorted stream, holding a bounded part of each.

    stream a   1 4 6 ┆ 9 …        every stream has some rows at hand; nothing it still has to
    stream b   2 3 5 ┆ 7 …        show comes before its last row at hand. So all rows up to the
                   ▲              lowest of these last rows can go, and here that is 5.

How often a value repeats does not matter: at most the rows at hand go at once.

Pure: streams are iterators that somebody else opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from arcticlake.ingest.place import sort_order


class _Stream:
    """Tables in order, and the rows of them that are at hand."""

    def __init__(self, tables: Iterator[pa.Table]) -> None:
        self.tables = tables
        self.rows: pa.Table | None = None
        self.ended = False

    def fill(self, wanted: int) -> None:
        """Have so many bytes of rows at hand, one row at least, or all that there are."""
        while not self.ended and (
            self.rows is None or self.rows.num_rows == 0 or self.rows.nbytes < wanted
        ):
            more = next(self.tables, None)
            self.ended = more is None
            if more is not None:
                self.rows = more if self.rows is None else pa.concat_tables([self.rows, more])

    def drop(self, count: int) -> None:
        assert self.rows is not None
        self.rows = self.rows.slice(count) if count < self.rows.num_rows else None


def merge_sorted(
    streams: Sequence[Iterator[pa.Table]], sort: Sequence[str], bytes_at_hand: int
) -> Iterator[pa.Table]:
    """Yield all rows in the order of a sort key; every stream has this order itself.

    `bytes_at_hand` is how much of each stream is held, or one of its tables if that is more.
    """
    open_streams = [_Stream(tables) for tables in streams]
    while True:
        for stream in open_streams:
            stream.fill(bytes_at_hand)
        open_streams = [stream for stream in open_streams if stream.rows is not None]
        held = [stream.rows for stream in open_streams if stream.rows is not None]
        if not held:
            return
        rows, ends = pa.concat_tables(held), np.cumsum([table.num_rows for table in held])
        order = sort_order(rows, sort)
        lasts = [end - 1 for end, one in zip(ends, open_streams, strict=True) if not one.ended]
        if lasts:
            order = order[: int(np.isin(order, lasts).argmax()) + 1]
        yield rows.take(pa.array(order))
        gone = np.bincount(np.searchsorted(ends, order, side="right"), minlength=len(ends))
        for stream, count in zip(open_streams, gone, strict=True):
            stream.drop(int(count))
