from __future__ import annotations

import pytest

from arcticlake.compact.explain import (
    BYTES_PER_SECOND,
    estimated_seconds,
    partition_label,
    piece_cost,
    readable_bytes,
    readable_seconds,
    spread,
)
from arcticlake.compact.piece import Piece
from arcticlake.compact.plan import plan_compaction
from arcticlake.ingest.plan import place_terms
from arcticlake.tree.files import Role
from arcticlake.tree.node import ROOT, Node
from tests.compact.layout import MB, entry, facts_of, table


def test_a_plan_tells_for_every_group_what_is_done_and_why_or_why_not() -> None:
    """CMP-14, SPL-10: files, rows and bytes in and out, seconds, events."""
    files = [
        entry("b1", Node(1, 0), size=90 * MB),
        entry("b2", Node(1, 1), size=380 * MB),
        entry("c1", Node(1, 1), role=Role.CHANGE, size=30 * MB, sequence=5),
    ]

    text = plan_compaction(facts_of(table(), files), "auto", parallelism=2).explain()

    assert text.splitlines() == [
        "db.t: auto compaction up to version 9, 1 of 2 groups",
        "  reads 1 base + 1 change files, 419,840 rows, 410 MB; writes about 4 files, 380 MB",
        "  1 task, about 7.4 s",
        "1/0 keep: no change waits; 1 base file, 92,160 rows, 90.0 MB",
        "1/1 major: leaf 1/1 holds 410 MB, its limit is 400 MB",
        "  1 base + 1 change files, 419,840 rows, 410 MB → 4 files, 380 MB, 7.4 s",
        "  split 1/1 into 3/1 3/3",
    ]


def test_changes_weigh_twice_beside_base_and_every_file_costs_a_little() -> None:
    old, new = entry("b", size=10 * MB), entry("c", role=Role.CHANGE, size=3 * MB)

    assert piece_cost(Piece((old,), (new,), (ROOT,))) == 18 * MB
    assert piece_cost(Piece((), (new,), (ROOT,))) == 4 * MB


def test_costs_are_spread_heaviest_first_to_the_least_loaded() -> None:
    """CMP-14."""
    assert spread([1, 5, 3, 3], 2) == [0, 0, 1, 1]
    assert estimated_seconds([6 * BYTES_PER_SECOND, 2 * BYTES_PER_SECOND], 2) == 6
    assert estimated_seconds([], 2) == 0


def test_partitions_are_labelled_as_people_write_them() -> None:
    terms = place_terms(table(days=True))

    assert partition_label(terms, (20758,)) == "day=2026-11-01"
    assert partition_label(terms, (None,)) == "day=null"
    assert partition_label((), ()) == ""


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1,023 B"), (1536, "1.5 KB"), (130 * MB, "130 MB"), (2**60, "1,024 PB")],
)
def test_sizes_are_readable_in_powers_of_1024(size: int, text: str) -> None:
    assert readable_bytes(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.04, "0.0 s"), (9.94, "9.9 s"), (33.3, "33 s"), (300, "5 min")]
)
def test_durations_are_readable_in_seconds_or_minutes(seconds: float, text: str) -> None:
    assert readable_seconds(seconds) == text
