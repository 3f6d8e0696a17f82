"""Survey: what must be known of a parsed batch before any of it is written.

Rejects are counted against their limit, columns that the table lacks are named, and rows without
a position or without a known partition are found, so that everything that stops a batch stops it
before anything is visible.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from arcticlake.stream.cdc_plan import (
    EXTRA,
    PLACED,
    POSITION,
    RAW,
    REASON,
    REJECT,
    SPLIT,
    TRUNCATE,
)
from arcticlake.table.change import ACTION, ORDER

_SHOWN_REASONS = 3
_SHOWN_TEXT = 120


@dataclass(frozen=True, slots=True)
class Survey:
    """What is in a parsed batch."""

    rejects: int
    homeless: int
    """Rows without a position."""
    unplaced: int
    """Changes whose old partition is not known."""
    splits: int
    """Deletes that updates of a key or a partition were split into."""
    truncated: int | None
    """Order of the last truncate."""
    extra: tuple[str, ...]
    """Columns that the table does not have."""


def survey_rows(rows: pa.Table) -> Survey:
    """Return what is in a parsed batch that came to the driver."""
    action = rows.column(ACTION)
    reject, cut = pc.equal(action, REJECT), pc.equal(action, TRUNCATE)
    good = pc.invert(pc.or_(reject, cut))
    homeless = pc.and_(pc.invert(reject), pc.is_null(rows.column(ORDER)))
    unplaced = pc.and_(good, pc.invert(rows.column(PLACED)))
    names = pc.unique(pc.list_flatten(rows.column(EXTRA))).to_pylist()
    return Survey(
        rejects=_count(reject),
        homeless=_count(homeless),
        unplaced=_count(unplaced),
        splits=_count(pc.and_(rows.column(SPLIT), pc.starts_with(action, "-"))),
        truncated=pc.max(rows.filter(cut).column(ORDER)).as_py(),
        extra=tuple(sorted(names)),
    )


def _count(marks: pa.ChunkedArray) -> int:
    return int(pc.sum(marks).as_py() or 0)


def rejects_of(rows: pa.Table) -> pa.Table:
    """Return raw text, reason and position of what was not understood."""
    bad = rows.filter(pc.equal(rows.column(ACTION), REJECT))
    return pa.table(
        {
            "raw": bad.column(RAW).cast(pa.string()),
            "reason": bad.column(REASON).cast(pa.string()),
            "position": bad.column(POSITION).cast(pa.int64()),
        }
    )


def show_rejects(rejects: pa.Table) -> str:
    """Return the first reasons, for an error."""
    shown = [
        f"position {row['position']}: {row['reason']} in {str(row['raw'])[:_SHOWN_TEXT]!r}"
        for row in rejects.slice(0, _SHOWN_REASONS).to_pylist()
    ]
    return "; ".join(shown)


def kind_of(seen: Iterable[str]) -> str | None:
    """Return the type of a new column by the kinds of its JSON values; None if all are null."""
    values = set(seen) - {"VOID"}
    if not values:
        return None
    if values == {"BIGINT"}:
        return "bigint"
    if values <= {"BIGINT", "DECIMAL", "DOUBLE", "FLOAT"}:
        return "double"
    return "boolean" if values == {"BOOLEAN"} else "string"
