"""What the rows of one file must keep, checked batch by batch.

    rows lie in the file's node and partition, between the bounds of its manifest
    keys and NOT NULL columns have values; a delete needs its key only
    a base file of ours is sorted by the sort key
    change rows have a known action and a place in history at or before their commit

Only counts and one example for each broken rule are kept, so memory does not grow with the file.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from arcticlake.inspect.verdict import Findings, Rule
from arcticlake.table.change import ACTION, ORDER, SEQ, Action
from arcticlake.tree.files import FileEntry, Role
from arcticlake.tree.hash import PlaceTerm, key_hash, partition_values

Bounds: TypeAlias = Mapping[str, tuple[object, object]]
"""Plain lower and upper bound by column; None where one is not known."""

_ACTIONS = pa.array([str(action) for action in Action], pa.string())


@dataclass(frozen=True, slots=True)
class RowRules:
    """What every row of one file must keep."""

    file: FileEntry
    key: tuple[str, ...]
    bucket: str | None
    terms: tuple[PlaceTerm, ...]
    required: tuple[str, ...]
    """NOT NULL columns beside the key."""
    sort: tuple[str, ...]
    """Columns that the rows are sorted by; empty where the file promises no order."""
    bounds: Bounds
    """Bounds of the manifest."""


@dataclass(slots=True)
class RowTally:
    """What was seen of one file so far."""

    rules: RowRules
    rows: int = 0
    nulls: dict[str, int] = field(default_factory=dict)
    strays: int = 0
    strays_example: str = ""
    partitions_wrong: dict[str, object] = field(default_factory=dict)
    ranges: dict[str, tuple[object, object]] = field(default_factory=dict)
    unsorted: str = ""
    actions_unknown: set[object] = field(default_factory=set)
    places_wrong: int = 0
    last: pl.DataFrame | None = None

    def look(self, batch: pa.RecordBatch) -> None:
        """Look at the next rows of the file, in the types of the table."""
        if batch.num_rows == 0:
            return
        rows = pa.Table.from_batches([batch])
        self.rows += rows.num_rows
        self._look_at_nulls(rows)
        self._look_at_place(rows)
        self._look_at_bounds(rows)
        if self.rules.sort and not self.unsorted:
            self._look_at_order(rows)
        if self.rules.file.role is Role.CHANGE:
            self._look_at_changes(rows)

    def _look_at_nulls(self, rows: pa.Table) -> None:
        full = rows
        if self.rules.file.role is Role.CHANGE:
            full = rows.filter(pc.starts_with(rows.column(ACTION), "+"))
        for names, among in ((self.rules.key, rows), (self.rules.required, full)):
            for name in names:
                if name in among.column_names and (count := among.column(name).null_count):
                    self.nulls[name] = self.nulls.get(name, 0) + count

    def _look_at_place(self, rows: pa.Table) -> None:
        file = self.rules.file
        if self.rules.bucket is not None:
            keys = pc.drop_null(rows.column(self.rules.bucket))
            outside = key_hash(keys) & np.int32(file.node.mask) != file.node.index
            if outside.any():
                self.strays += int(outside.sum())
                first = keys[int(np.flatnonzero(outside)[0])].as_py()
                self.strays_example = self.strays_example or repr(first)
        for term, expected in zip(self.rules.terms, file.partition, strict=True):
            for value in pc.unique(partition_values(rows, term)).to_pylist():
                if value != expected:
                    self.partitions_wrong.setdefault(term.name, value)

    def _look_at_bounds(self, rows: pa.Table) -> None:
        for name in self.rules.bounds:
            if name not in rows.column_names:
                continue
            seen = _extremes(rows.column(name))
            if seen[0] is not None:
                self.ranges[name] = widest(seen, self.ranges.get(name, seen))

    def _look_at_order(self, rows: pa.Table) -> None:
        frame = pl.from_arrow(rows.select(list(self.rules.sort)))
        assert isinstance(frame, pl.DataFrame)
        joined = frame if self.last is None else pl.concat([self.last, frame])
        found = first_descent(joined)
        if found is not None:
            number = self.rows - rows.num_rows + found + (1 if self.last is None else 0)
            self.unsorted = f"row {number} comes before the row above it"
        self.last = frame.tail(1)

    def _look_at_changes(self, rows: pa.Table) -> None:
        actions = rows.column(ACTION)
        known = pc.is_in(actions, value_set=_ACTIONS)
        if not pc.all(known).as_py():
            self.actions_unknown.update(pc.unique(actions.filter(pc.invert(known))).to_pylist())
        sequences = rows.column(SEQ)
        wrong = pc.or_(
            pc.is_null(rows.column(ORDER)),
            pc.fill_null(
                pc.or_(pc.less(sequences, 1), pc.greater(sequences, self.rules.file.sequence)),
                False,
            ),
        )
        self.places_wrong += pc.sum(wrong).as_py() or 0

    def findings(self) -> Findings:
        """Return what is wrong with the file."""
        found = Findings()
        self._count(found)
        file, path = self.rules.file, self.rules.file.path
        for name, count in self.nulls.items():
            found.add(Rule.NOT_NULL, f"{count} rows have NULL in {name}", path)
        if self.strays:
            message = (
                f"{self.strays} of {self.rows} rows do not belong to node {file.node}, "
                f"{self.rules.bucket}={self.strays_example} for one"
            )
            found.add(Rule.NODES, message, path)
        for name, value in self.partitions_wrong.items():
            message = f"rows with {name}={value!r} lie in another partition, {file.partition!r}"
            found.add(Rule.PARTITIONS, message, path)
        for name, seen in self.ranges.items():
            self._judge_bounds(name, seen, found)
        if self.unsorted:
            by = ", ".join(self.rules.sort)
            found.add(Rule.SORT, f"rows are not sorted by {by}: {self.unsorted}", path)
        if self.actions_unknown:
            unknown = ", ".join(sorted(map(repr, self.actions_unknown)))
            found.add(Rule.CHANGES, f"unknown actions {unknown}", path)
        if self.places_wrong:
            message = f"{self.places_wrong} rows have no valid place in history"
            found.add(Rule.CHANGES, message, path)
        return found

    def _judge_bounds(self, name: str, seen: tuple[object, object], found: Findings) -> None:
        lower, upper = self.rules.bounds[name]
        low, high = seen
        if lower is not None and _below(low, lower):
            message = f"{name} goes down to {low!r}, the manifest says {lower!r}"
            found.add(Rule.BOUNDS, message, self.rules.file.path)
        if upper is not None and _below(upper, high):
            message = f"{name} goes up to {high!r}, the manifest says {upper!r}"
            found.add(Rule.BOUNDS, message, self.rules.file.path)

    def _count(self, found: Findings) -> None:
        rules = self.rules
        counted = {
            Rule.NOT_NULL: bool(rules.key or rules.required),
            Rule.NODES: rules.bucket is not None,
            Rule.PARTITIONS: bool(rules.terms),
            Rule.BOUNDS: bool(rules.bounds),
            Rule.SORT: bool(rules.sort),
            Rule.CHANGES: rules.file.role is Role.CHANGE,
        }
        for rule, applies in counted.items():
            if applies:
                found.count(rule, self.rows, "rows")


def first_descent(frame: pl.DataFrame) -> int | None:
    """Return the first row that is greater than the one after it; NULL is smallest.

    A row with NaN is not judged, because engines place it differently.
    """
    if frame.height < 2:
        return None
    equal = np.ones(frame.height - 1, dtype=bool)
    descends = np.zeros(frame.height - 1, dtype=bool)
    for column in frame:
        here, following = column.head(-1), column.tail(-1)
        higher = (here.is_not_null() & following.is_null()) | (here > following).fill_null(False)
        descends |= equal & _numpy(higher) & ~_unknown(here, following)
        equal &= _numpy(here.eq_missing(following)) & ~_unknown(here, following)
    found = np.flatnonzero(descends)
    return int(found[0]) if len(found) else None


def _numpy(truth: pl.Series) -> npt.NDArray[np.bool_]:
    return truth.to_numpy().astype(bool)


def _unknown(here: pl.Series, following: pl.Series) -> npt.NDArray[np.bool_]:
    if not here.dtype.is_float():
        return np.zeros(here.len(), dtype=bool)
    nan = here.is_nan().fill_null(False) | following.is_nan().fill_null(False)
    return _numpy(nan)


def widest(bounds: tuple[object, object], other: tuple[object, object]) -> tuple[object, object]:
    """Return the smallest range that holds two ranges."""
    (low, high), (other_low, other_high) = bounds, other
    return (
        low if _below(low, other_low) else other_low,
        high if _below(other_high, high) else other_high,
    )


def _extremes(column: pa.ChunkedArray) -> tuple[object, object]:
    """Return the smallest and greatest value in plain Iceberg form; None without values."""
    if pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    found = pc.min_max(column).as_py()
    return found["min"], found["max"]


def _below(value: object, other: object) -> bool:
    return bool(value < other)  # type: ignore[operator]
