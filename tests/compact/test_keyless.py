from __future__ import annotations

from arcticlake.compact.keyless import plan_keyless_pieces, score_keyless
from arcticlake.compact.nodes import limits_of
from arcticlake.compact.piece import Piece
from arcticlake.compact.score import Work
from arcticlake.tree.files import FileEntry
from tests.compact.layout import MB, entry, table

LIMITS = limits_of(table(key=()))


def pieces_of(files: list[FileEntry], kind: str, *, by_sort: bool = False) -> list[Piece]:
    return plan_keyless_pieces(
        files, kind, target=LIMITS.target, memory=LIMITS.memory, by_sort=by_sort
    )


def names(pieces: list[Piece]) -> list[str]:
    return [" ".join(f.path for f in piece.files) for piece in pieces]


def files_of(*sizes: int) -> list[FileEntry]:
    return [entry(f"f{n}", size=size * MB, sequence=n) for n, size in enumerate(sizes)]


def test_small_files_are_packed_in_order_of_arrival() -> None:
    """NPK-03: large ones are not touched."""
    assert names(pieces_of(files_of(40, 40, 90, 40, 10), "major")) == ["f0 f1", "f3 f4"]


def test_auto_waits_for_four_files_or_half_a_file() -> None:
    assert names(pieces_of(files_of(1, 1, 1), "auto")) == []
    assert names(pieces_of(files_of(1, 1, 1, 1), "auto")) == ["f0 f1 f2 f3"]
    assert names(pieces_of(files_of(30, 30), "auto")) == ["f0 f1"]


def test_a_lone_small_file_is_left_alone() -> None:
    assert pieces_of(files_of(1, 90), "major") == []


def test_a_file_with_deleted_rows_is_rewritten_whatever_its_size() -> None:
    deleted = entry("d", size=90 * MB, deletes=True)

    pieces = pieces_of([deleted], "auto")

    assert names(pieces) == ["d"]
    assert "row deletes" in score_keyless([deleted], pieces, "auto", LIMITS).reason


def test_full_takes_every_file_and_is_cut_by_the_memory_of_a_task() -> None:
    files = files_of(*[300] * 6)

    assert names(pieces_of(files, "full")) == ["f0 f1 f2", "f3 f4 f5"]
    assert score_keyless(files, pieces_of(files, "full"), "full", LIMITS).work is Work.FULL


def test_with_a_sort_key_files_that_overlap_stay_together() -> None:
    """KEY-11: what one compaction writes is in order."""
    spans = {"a": (1, 5), "b": (20, 30), "c": (4, 9), "d": (25, 40)}
    files = [entry(name, size=30 * MB, sort=span) for name, span in spans.items()]

    assert names(pieces_of(files, "major", by_sort=True)) == ["a c", "b d"]


def test_the_verdict_says_what_it_waits_for() -> None:
    files = files_of(1, 1, 90)

    assert score_keyless(files, [], "auto", LIMITS).reason == (
        "2 small files, 2.0 MB; waits for 4 of them or 50.0 MB"
    )
    assert score_keyless(files[:1], [], "major", LIMITS).reason == (
        "1 small file, 1.0 MB; waits for 2 of them"
    )
    assert score_keyless(files[2:], [], "auto", LIMITS).reason == "no small file"
    done = score_keyless(files, pieces_of(files, "major"), "major", LIMITS)
    assert (done.work, done.reason, done.score) == (Work.MAJOR, "2 small files become 1", 0.5)
