"""What tests of compaction look at: which files there are, and whether three answers agree."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

import pyarrow as pa

from arcticlake import Table
from tests.verbs.shop import rows, statuses


def live_files(table: Table, role: str = "base") -> set[str]:
    return {str(file["path"]) for file in table.files() if file["role"] == role}


def heavy(ids: Iterable[int], status: str = "new") -> pa.Table:
    """Return orders that do not compress away: some 20 bytes each."""
    numbers = list(ids)
    texts = [f"{status}-{hashlib.sha1(str(n).encode()).hexdigest()[:24]}" for n in numbers]
    return rows(numbers).set_column(1, "status", pa.array(texts))


def told(batch: pa.Table) -> dict[int, str]:
    return dict(zip(batch["order_id"].to_pylist(), batch["status"].to_pylist(), strict=True))


def check(table: Table, expected: Mapping[int, str]) -> None:
    """The three answers: merged, base after a major compaction, and a dict."""
    assert statuses(table) == expected
    found = table.verify()
    assert found.ok, found.problems
