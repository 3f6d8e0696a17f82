from __future__ import annotations

from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from pyiceberg.typedef import Record

from arcticlake.commit.change import Operation, SnapshotChange
from arcticlake.commit.manifests import (
    ENTRIES_MAX,
    SMALL_COUNT_MAX,
    WeightedCache,
    in_parts,
    new_entries,
    plan_manifests,
)


def entry(path: str, *partition: object, sequence: int = 1) -> ManifestEntry:
    file = DataFile.from_args(
        content=DataFileContent.DATA, file_path=path, partition=Record(*partition), record_count=1
    )
    file.spec_id = 0
    return ManifestEntry.from_args(
        status=ManifestEntryStatus.ADDED,
        snapshot_id=7,
        sequence_number=sequence,
        file_sequence_number=sequence,
        data_file=file,
    )


def manifest(
    path: str, live: int, *, spec: int = 0, deletes: bool = False, sequence: int = 1
) -> ManifestFile:
    return ManifestFile.from_args(
        manifest_path=path,
        partition_spec_id=spec,
        content=ManifestContent.DELETES if deletes else ManifestContent.DATA,
        sequence_number=sequence,
        min_sequence_number=sequence,
        added_files_count=live,
        existing_files_count=0,
        deleted_files_count=0,
    )


def never(_: ManifestFile) -> list[ManifestEntry]:
    raise AssertionError("an append reads no manifest")


def test_an_append_keeps_live_manifests_unread_and_drops_dead_ones() -> None:
    live, dead = manifest("live", 3), manifest("dead", 0)

    plan = plan_manifests([live, dead], frozenset(), sequence=2, read=never)

    assert (plan.kept, plan.piles, plan.missing) == ((live,), (), frozenset())


def test_only_manifests_that_name_a_removed_file_are_rewritten() -> None:
    contents = {"one": [entry("a", 1), entry("b", 1)], "two": [entry("c", 1)]}
    parents = [manifest("one", 2), manifest("two", 1)]

    plan = plan_manifests(
        parents, frozenset({"a", "x"}), sequence=2, read=lambda m: contents[m.manifest_path]
    )

    assert plan.kept == (parents[1],)
    assert [e.data_file.file_path for e in plan.piles[0].survivors] == ["b"]
    assert [file.file_path for file in plan.removed] == ["a"]
    assert plan.missing == {"x"}


def test_small_manifests_are_merged_when_there_are_too_many_of_one_spec() -> None:
    crowd = [manifest(f"m{n}", 1) for n in range(SMALL_COUNT_MAX + 1)]
    few = [manifest(f"other{n}", 1, spec=1) for n in range(SMALL_COUNT_MAX)]
    large = manifest("large", ENTRIES_MAX)

    plan = plan_manifests(
        [*crowd, *few, large],
        frozenset(),
        sequence=2,
        read=lambda m: [entry(f"{m.manifest_path}.parquet", 1)],
    )

    assert plan.kept == (*few, large)
    assert [len(pile.survivors) for pile in plan.piles] == [len(crowd)]
    assert plan.removed == []


def test_row_deletes_older_than_every_data_file_are_dropped() -> None:
    data, idle = manifest("data", 1, sequence=5), manifest("idle", 1, deletes=True, sequence=4)
    busy = manifest("busy", 1, deletes=True, sequence=5)

    plan = plan_manifests(
        [data, idle, busy], frozenset(), sequence=6, read=lambda _: [entry("d", 1)]
    )

    assert plan.kept == (data, busy)
    assert [file.file_path for file in plan.removed] == ["d"]


def test_entries_are_cut_into_parts_of_neighbouring_partitions() -> None:
    entries = [entry(f"{n}", None if n % 7 == 0 else n % 5) for n in range(ENTRIES_MAX + 10)]

    parts = list(in_parts(entries))

    values = [[e.data_file.partition[0] for e in part] for part in parts]
    assert [len(part) for part in parts] == [ENTRIES_MAX, 10]
    assert values[0][0] is None
    assert set(values[1]) == {4}


def test_rewritten_entries_keep_their_history_and_cached_ones_are_not_touched() -> None:
    stays, goes = entry("stays", 1, sequence=3), entry("goes", 1, sequence=4)
    plan = plan_manifests(
        [manifest("m", 2)], frozenset({"goes"}), sequence=9, read=lambda _: [stays, goes]
    )

    new = [entry(path, 1).data_file for path in ("new", "older")]
    change = SnapshotChange(Operation.APPEND, added=tuple(new), sequences={"older": 2})
    written = new_entries(change, plan, snapshot_id=99)
    ((_, added), (_, rewritten)) = sorted(written.items(), key=lambda item: not item[0][1])

    assert [(e.status.name, e.snapshot_id, e.sequence_number) for e in added] == [
        ("ADDED", 99, None),
        ("ADDED", 99, 2),
    ]
    assert [(e.status.name, e.snapshot_id, e.sequence_number) for e in rewritten] == [
        ("EXISTING", 7, 3),
        ("DELETED", 99, 4),
    ]
    assert (stays.status, goes.snapshot_id) == (ManifestEntryStatus.ADDED, 7)


def test_the_cache_forgets_what_was_used_longest_ago() -> None:
    cache = WeightedCache[int](10)
    cache.keep("a", [1] * 4)
    cache.keep("b", [2] * 4)
    assert cache.find("a") == [1] * 4

    cache.keep("c", [3] * 4)

    assert cache.find("b") is None
    assert cache.find("a") is not None
    assert len(cache) == 8
    cache.keep("a", [1] * 2)
    assert len(cache) == 6
    cache.keep("huge", [0] * 50)
    assert cache.find("huge") is not None
    assert len(cache) == 50
