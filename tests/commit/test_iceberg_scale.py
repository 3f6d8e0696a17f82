"""Many commits and many files: manifests stay few, and reading them stays quick."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from itertools import count

from pyiceberg.table import Table

from arcticlake.commit.iceberg import ensure_spec
from tests.commit.lab import append, bucket, head, live, paths, put, stand_in, summary, swap


def manifests(table: Table) -> int:
    return len(head(table).manifests(table.io))


def test_dead_manifests_are_dropped_by_the_next_commit(table: Table) -> None:
    """Finding: pyiceberg keeps 184 dead manifests of 200 in this workload."""
    files = [stand_in(table, node % 4) for node in range(64)]
    table = put(table, append(*files))
    at, most = count(), 0
    for _ in range(200):
        gone = [files[next(at) % 64] for _ in range(4)]
        new = [stand_in(table, node) for node in range(4)]
        table = put(table, swap([file.file_path for file in gone], *new))
        for old, fresh in zip(gone, new, strict=True):
            files[files.index(old)] = fresh
        most = max(most, manifests(table))
        if len(table.metadata.snapshots) > 20:  # keeps the test quick, as a real table would be
            table.maintenance.expire_snapshots().older_than(datetime.now(UTC)).commit()
            table = table.refresh()

    assert paths(table) == {file.file_path for file in files}
    assert most <= 20
    assert summary(table)["total-data-files"] == "64"


def test_merging_many_small_manifests_keeps_sequence_numbers_and_snapshot_ids(
    table: Table,
) -> None:
    expected = {}
    most = 0
    for number in range(1, 76):
        file = stand_in(table, number % 4)
        table = put(table, append(file))
        expected[file.file_path] = (number, number, head(table).snapshot_id)
        most = max(most, manifests(table))

    found = {
        entry.data_file.file_path: (
            entry.sequence_number,
            entry.file_sequence_number,
            entry.snapshot_id,
        )
        for entry in live(table)
    }
    assert found == expected
    assert most <= 66
    assert manifests(table) < 20


def test_ten_thousand_files_make_several_manifests_that_prune_by_partition(table: Table) -> None:
    """Target: first decode ≤ 0.6 s, again ≤ 20 ms; here with room for a busy machine."""
    table, spec = ensure_spec(table, bucket(1024))
    files = [stand_in(table, number % 1024, spec_id=spec) for number in range(10_000)]

    table = put(table, append(*files))
    written = head(table).manifests(table.io)
    started = time.perf_counter()
    first = live(table)
    decoded = time.perf_counter()
    again = live(table)
    cached = time.perf_counter()

    assert len(written) == 5
    bounds = sorted((m.partitions or [])[0].lower_bound or b"" for m in written)
    assert len(set(bounds)) == 5, "each manifest covers its own stretch of buckets"
    assert len(first) == 10_000
    assert again == first
    assert decoded - started < 6.0
    assert cached - decoded < 0.2
