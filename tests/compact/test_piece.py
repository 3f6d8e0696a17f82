from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from arcticlake.compact.piece import (
    Cluster,
    Piece,
    join_clusters,
    pack,
    plan_pieces,
    run_files,
    small_runs,
)
from arcticlake.tree.files import Role
from arcticlake.tree.node import ROOT, Node
from tests.compact.layout import MB, entry


def cluster(name: str, size: int, *, changes: int = 0) -> Cluster:
    news = [entry(f"{name}c{n}", role=Role.CHANGE, size=MB) for n in range(changes)]
    return Cluster((entry(name, size=size * MB),), tuple(news))


def names(pieces: list[Piece]) -> list[str]:
    return [" ".join(f.path for f in piece.files) for piece in pieces]


def test_chosen_neighbours_share_a_piece_up_to_the_target() -> None:
    clusters = [cluster(name, 40) for name in "abcd"]

    assert names(plan_pieces(clusters, [True] * 4, [], (ROOT,), 100 * MB)) == ["a b", "c d"]


def test_a_piece_never_spans_a_file_that_stays() -> None:
    """CMP-10."""
    clusters = [cluster(name, 10) for name in "abc"]

    pieces = plan_pieces(clusters, [True, False, True], [], (ROOT,), 100 * MB)

    assert names(pieces) == ["a", "c"]


def test_a_run_of_small_clusters_is_one_piece_with_its_changes() -> None:
    clusters = [cluster("a", 90), *(cluster(name, 10, changes=1) for name in "bcd")]

    runs = small_runs(clusters, 100 * MB, 25 * MB)
    pieces = plan_pieces(clusters, [False] * 4, runs, (ROOT,), 100 * MB)

    assert runs == [[1, 2, 3]]
    assert run_files(clusters, runs[0]) == 3
    assert names(pieces) == ["b c d bc0 cc0 dc0"]


def test_a_piece_goes_only_to_outputs_that_its_files_touch() -> None:
    found = Cluster((entry("a", Node(3, 1)),), ())

    piece = join_clusters([found], (Node(1, 0), Node(7, 1), Node(7, 5), Node(3, 3)))

    assert piece.outputs == (Node(7, 1), Node(7, 5))


def test_a_piece_knows_what_it_reads_and_about_what_it_writes() -> None:
    old, new = entry("b", size=240 * MB), entry("c", role=Role.CHANGE, size=60 * MB)

    merged = Piece((old,), (new,), (Node(1, 0), Node(1, 1)))
    fresh = Piece((), (new,), (ROOT,))

    assert merged.files == (old, new)
    assert (merged.bytes, merged.rows) == (300 * MB, 300 * 1024)
    assert merged.live_bytes == 240 * MB
    assert merged.output_files(100 * MB) == 2
    assert fresh.live_bytes == 60 * MB
    assert fresh.output_files(100 * MB) == 1


@settings(max_examples=50)
@given(sizes=st.lists(st.integers(1, 150), max_size=30))
def test_all_runs_between_large_items_but_the_last_are_at_least_half_full(
    sizes: list[int],
) -> None:
    """So a second run has nothing to pack but the last one of each."""
    runs = pack(sizes, 100, small=lambda number: sizes[number] < 50)

    assert [n for run in runs for n in run] == [n for n, size in enumerate(sizes) if size < 50]
    for run, following in pairwise(runs):
        assert run == list(range(run[0], run[-1] + 1))
        if following[0] == run[-1] + 1:
            assert sum(sizes[n] for n in run) >= 50
    assert all(sum(sizes[n] for n in run) <= 100 for run in runs)
