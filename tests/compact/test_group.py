from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from arcticlake.compact.group import find_clusters
from arcticlake.compact.piece import Cluster
from arcticlake.tree.files import FileEntry, Role
from arcticlake.tree.node import ROOT, Node
from tests.compact.layout import entry

Range = tuple[object, object]


def base(
    name: str, keys: Range, *, lines: Range | None = None, sort: Range | None = None
) -> FileEntry:
    return entry(name, keys=keys, lines=lines, sort=sort)


def change(
    name: str, keys: Range, *, lines: Range | None = None, sort: Range | None = None
) -> FileEntry:
    return entry(name, role=Role.CHANGE, keys=keys, lines=lines, sort=sort)


def names(clusters: list[Cluster]) -> list[str]:
    return [" ".join(f.path for f in (*c.bases, *c.changes)) for c in clusters]


def clusters_of(*files: FileEntry, by_sort: bool = False) -> list[Cluster]:
    bases = [f for f in files if f.role is Role.BASE]
    changes = [f for f in files if f.role is Role.CHANGE]
    return find_clusters(bases, changes, (ROOT,), by_sort=by_sort)


def test_files_that_share_no_key_stay_apart_in_the_order_of_keys() -> None:
    """CMP-13, KEY-10."""
    found = clusters_of(base("b2", (5, 9)), base("b1", (1, 4)), change("c", (8, 8)))

    assert names(found) == ["b1", "b2 c"]


def test_a_single_key_column_joins_files_that_touch() -> None:
    assert names(clusters_of(base("b1", (1, 4)), base("b2", (4, 9)))) == ["b1 b2"]


def test_two_key_columns_need_both_to_meet() -> None:
    """KEY-14: the second column of the key keeps old files out."""
    found = clusters_of(
        base("b1", (1, 1), lines=(1, 5)),
        base("b2", (1, 1), lines=(6, 9)),
        change("c", (1, 1), lines=(7, 7)),
    )

    assert names(found) == ["b1", "b2 c"]


def test_base_files_that_touch_in_the_first_of_two_columns_are_in_order_already() -> None:
    found = clusters_of(base("b1", (1, 4), lines=(1, 9)), base("b2", (4, 9), lines=(1, 9)))

    assert names(found) == ["b1", "b2"]


def test_a_sort_key_joins_by_key_or_by_sort_range() -> None:
    """KEY-16: for uniqueness the one, for order the other."""
    found = clusters_of(
        base("b1", (1, 9), sort=(1, 3)),
        base("b2", (10, 19), sort=(3, 6)),
        base("b3", (20, 29), sort=(7, 9)),
        change("c", (2, 2), sort=(5, 5)),
        by_sort=True,
    )

    assert names(found) == ["b1 b2 c", "b3"]


def test_base_files_inside_the_span_of_a_cluster_join_it() -> None:
    """What is written may lie anywhere in the span, and must not overlap what stays."""
    found = clusters_of(
        base("b1", (1, 9), sort=(1, 3)),
        base("b2", (100, 109), sort=(4, 5)),
        base("b3", (20, 29), sort=(6, 9)),
        change("c", (9, 20), sort=(2, 2)),
        by_sort=True,
    )

    assert names(found) == ["b1 b2 b3 c"]


def test_unknown_bounds_meet_everything() -> None:
    files = (base("b1", (1, 2)), base("b2", (5, 6)), change("c", (None, None)))

    assert names(clusters_of(*files)) == ["b1 b2 c"]


def test_a_bound_that_is_not_a_number_is_unknown() -> None:
    nan = float("nan")
    files = (base("b1", (1, 2), sort=(nan, nan)), base("b2", (5, 6), sort=(1.0, 2.0)))

    assert names(clusters_of(*files, by_sort=True)) == ["b1 b2"]


def test_a_crowd_counts_base_files_that_overlap_without_the_changes() -> None:
    found = clusters_of(
        base("b1", (1, 4)), base("b2", (3, 6)), base("b3", (8, 9)), change("c", (5, 8))
    )

    assert names(found) == ["b1 b2 b3 c"]
    assert found[0].crowd == 2


def test_files_of_separate_leaves_meet_only_through_a_file_above_them() -> None:
    left, right = Node(1, 0), Node(1, 1)
    bases = [
        entry("b1", left, keys=(1, 9)),
        entry("b2", right, keys=(1, 9)),
        entry("b3", right, keys=(20, 29)),
    ]
    above = entry("c", ROOT, role=Role.CHANGE, keys=(5, 6))

    apart = find_clusters(bases, [], (left, right), by_sort=False)
    joined = find_clusters(bases, [above], (left, right), by_sort=False)

    assert names(apart) == ["b1", "b2", "b3"]
    assert names(joined) == ["b1 b2 c", "b3"]


RANGES = st.tuples(st.integers(0, 12), st.integers(0, 4)).map(lambda s: (s[0], s[0] + s[1]))
FILES = st.lists(st.tuples(st.sampled_from(Role), RANGES, RANGES, RANGES), max_size=9)


@settings(max_examples=50, deadline=None)
@given(drawn=FILES, by_sort=st.booleans(), pair=st.booleans())
def test_clusters_are_the_connected_parts_of_the_pairwise_rule(
    drawn: list[tuple[Role, Range, Range, Range]], by_sort: bool, pair: bool
) -> None:
    """KEY-16, CMP-13: the obvious slow answer agrees with the sweep."""
    files = [
        entry(
            f"f{n}",
            role=role,
            keys=keys,
            lines=lines if pair else None,
            sort=sort if by_sort else None,
        )
        for n, (role, keys, lines, sort) in enumerate(drawn)
    ]

    found = clusters_of(*files, by_sort=by_sort)

    parts = [{f.path for f in (*c.bases, *c.changes)} for c in found]
    assert sorted(map(sorted, parts)) == sorted(map(sorted, slow_parts(files, by_sort, pair)))


def order(part: list[FileEntry], by_sort: bool) -> tuple[int, int]:
    lows = [(f.sort_lower if by_sort else f.key_lower)[0] for f in part]
    highs = [(f.sort_upper if by_sort else f.key_upper)[0] for f in part]
    return min(lows), max(highs)  # type: ignore[type-var,return-value]


def overlap(a: list[FileEntry], b: list[FileEntry], *, by_sort: bool, touching: bool) -> bool:
    (low, high), (other_low, other_high) = order(a, by_sort), order(b, by_sort)
    if touching:
        return low <= other_high and other_low <= high
    return low < other_high and other_low < high


def linked(a: FileEntry, b: FileEntry, *, by_sort: bool) -> bool:
    if a.role is Role.BASE and b.role is Role.BASE:
        return False
    sides = zip(a.key_lower, a.key_upper, b.key_lower, b.key_upper, strict=True)
    if all(low <= up and lo <= high for low, high, lo, up in sides):  # type: ignore[operator]
        return True
    return by_sort and overlap([a], [b], by_sort=True, touching=True)


def slow_parts(files: list[FileEntry], by_sort: bool, pair: bool) -> list[set[str]]:
    """Join parts until no two of them are linked or overlap as a whole."""
    parts = [[file] for file in files]
    touching = not by_sort and not pair

    def joined(a: list[FileEntry], b: list[FileEntry]) -> bool:
        if overlap(a, b, by_sort=by_sort, touching=touching):
            return True
        return any(linked(one, other, by_sort=by_sort) for one in a for other in b)

    while True:
        pairs = combinations(range(len(parts)), 2)
        found = next(((i, j) for i, j in pairs if joined(parts[i], parts[j])), None)
        if found is None:
            return [{f.path for f in part} for part in parts]
        parts[found[0]] += parts.pop(found[1])
