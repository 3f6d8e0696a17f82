"""Where rows go: batches cut by (partition, leaf), and the folder of each.

Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from arcticlake.tree.forest import Partition, Tree
from arcticlake.tree.hash import PlaceTerm, key_hash, partition_values
from arcticlake.tree.node import ROOT, Node

_EPOCH = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Placed:
    """Rows of one batch that belong to one leaf of one partition."""

    partition: Partition
    node: Node
    rows: pa.Table


def place_rows(
    rows: pa.Table,
    terms: Sequence[PlaceTerm],
    bucket: str | None,
    tree_of: Callable[[Partition], Tree],
) -> Iterator[Placed]:
    """Yield the rows of a batch by partition and leaf; order inside each is kept."""
    for partition, chosen in _by_partition(rows, terms):
        if bucket is None:
            yield Placed(partition, ROOT, chosen)
            continue
        tree = tree_of(partition)
        numbers = tree.route(key_hash(chosen.column(bucket)))
        for number, part in _by_number(chosen, numbers):
            yield Placed(partition, tree.leaves[number], part)


def place_among(
    rows: pa.Table, partition: Partition, nodes: Sequence[Node], bucket: str | None
) -> Iterator[Placed]:
    """Yield rows of one partition by the node that holds them; the nodes hold all of them."""
    numbers = number_among(rows, nodes, bucket)
    if numbers is None:
        yield Placed(partition, nodes[0], rows)
        return
    for number, part in _by_number(rows, numbers):
        yield Placed(partition, nodes[number], part)


def number_among(
    rows: pa.Table, nodes: Sequence[Node], bucket: str | None
) -> npt.NDArray[np.int32] | None:
    """Return the number of the node that holds each row; None where one node holds all."""
    if len(nodes) == 1 or bucket is None:
        return None
    mask = max(node.mask for node in nodes)
    table = np.full(mask + 1, -1, dtype=np.int32)
    for number, node in enumerate(nodes):
        table[node.index :: node.buckets] = number
    numbers: npt.NDArray[np.int32] = table[key_hash(rows.column(bucket)) & np.int32(mask)]
    assert (numbers >= 0).all(), "a row lies outside the nodes that its files lie in"
    return numbers


PLACE = "__place_"
"""Before the names of partition fields, where they stand beside the columns of rows."""


def with_places(rows: pa.Table, terms: Sequence[PlaceTerm]) -> pl.DataFrame:
    """Return rows with the value of each partition field: a row moves when one of these changes."""
    values = [pl.Series(PLACE + term.name, partition_values(rows, term)) for term in terms]
    frame = pl.from_arrow(rows)
    assert isinstance(frame, pl.DataFrame)
    return frame.with_columns(values)


def sort_rows(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return rows in the order of a sort key."""
    return rows.take(pa.array(sort_order(rows, columns)))


def sort_order(rows: pa.Table, columns: Sequence[str]) -> npt.NDArray[np.uint32]:
    """Return row numbers in the order of a sort key: NULL first, NaN last, equal rows as they came.

    Arrow's own sort puts NaN beside NULL, where no engine looks for it.
    """
    keys = pl.from_arrow(rows.select(list(columns)))
    assert isinstance(keys, pl.DataFrame)
    names = [str(number) for number in range(len(columns))]
    places = keys.rename(dict(zip(keys.columns, names, strict=True))).with_row_index("row")
    return places.sort(names, nulls_last=False, maintain_order=True)["row"].to_numpy()


def _by_partition(
    rows: pa.Table, terms: Sequence[PlaceTerm]
) -> Iterator[tuple[Partition, pa.Table]]:
    if not terms:
        yield (), rows
        return
    values = pl.DataFrame(
        {
            str(number): pl.from_arrow(partition_values(rows, term))
            for number, term in enumerate(terms)
        }
    )
    groups = values.with_row_index("row").group_by(values.columns, maintain_order=True)
    chosen = groups.agg(pl.col("row"))
    if chosen.height == 1:
        yield chosen.drop("row").row(0), rows
        return
    for *partition, indices in chosen.iter_rows():
        yield tuple(partition), rows.take(pa.array(indices, pa.int64()))


def _by_number(rows: pa.Table, numbers: npt.NDArray[np.int32]) -> Iterator[tuple[int, pa.Table]]:
    """Yield the rows by their leaf's number: one stable sort, then slices."""
    first = int(numbers[0])
    if (numbers == first).all():
        yield first, rows
        return
    # A stable sort of small unsigned numbers is a radix sort: several times as fast.
    small = numbers.astype(np.uint16) if numbers.max() < 2**16 else numbers
    order = np.argsort(small, kind="stable")
    sorted_numbers = numbers[order]
    taken = rows.take(pa.array(order))
    starts = np.flatnonzero(np.diff(sorted_numbers, prepend=-1))
    ends = np.append(starts[1:], len(order))
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        yield int(sorted_numbers[start]), taken.slice(start, end - start)


def directory_of(
    terms: Sequence[PlaceTerm], partition: Partition, bucket: str | None, node: Node
) -> list[str]:
    """Return the folders of a file, Hive style, so that a partition is a directory (KEY-02)."""
    folders = [
        f"{quote(term.name)}={quote(readable(term, value), safe='')}"
        for term, value in zip(terms, partition, strict=True)
    ]
    if bucket is not None:
        folders.append(f"{quote(bucket)}_bucket_{node.buckets}={node.index}")
    return folders


def readable(term: PlaceTerm, value: object) -> str:
    """Return a partition value as people write it."""
    if value is None:
        return "null"
    match term.transform, value:
        case "year", int(years):
            return str(1970 + years)
        case "month", int(months):
            return f"{1970 + months // 12:04d}-{months % 12 + 1:02d}"
        case "day", int(days):
            return (_EPOCH + timedelta(days=days)).isoformat()
        case "hour", int(hours):
            moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(hours=hours)
            return moment.strftime("%Y-%m-%d-%H")
        case _, bytes(raw):
            return raw.hex()
    return str(value)
