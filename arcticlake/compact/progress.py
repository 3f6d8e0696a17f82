"""How far a long work is: rows, rows a second and the time that is left.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """Rows done of rows to do, after some seconds."""

    rows_done: int
    rows_total: int
    seconds: float

    @property
    def speed(self) -> float:
        """Rows a second so far."""
        return self.rows_done / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """Estimated time to the end; None as long as nothing is done."""
        if self.rows_done == 0:
            return None
        return self.seconds * (self.rows_total - self.rows_done) / self.rows_done

    def __str__(self) -> str:
        left = self.seconds_left
        share = 100 * self.rows_done / self.rows_total if self.rows_total else 100
        end = "" if left is None else f", {left:.0f} s left"
        done = f"{self.rows_done:,} of {self.rows_total:,} rows ({share:.0f} %)"
        return f"{done}, {self.speed:,.0f} rows/s{end}"
