"""Bits of dead rows, found by the size or the name of a file."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arcticlake.read.bits import escape_glob, flatten_words, spark_file_name, split_by_size


@given(st.lists(st.integers(1, 2**40), max_size=200))
def test_every_file_has_a_slot_of_its_own_or_goes_by_name(sizes: list[int]) -> None:
    files = [(f"f{number}", size) for number, size in enumerate(sizes)]

    table, rest = split_by_size(files)

    tabled = table.paths if table else frozenset()
    assert tabled | set(rest) == {path for path, _ in files}
    assert not tabled & set(rest)
    if table:
        assert len({table.slot(path) for path in tabled}) == len(tabled)


def test_files_of_one_size_are_told_apart_by_name() -> None:
    table, rest = split_by_size([("a", 5), ("b", 5), ("c", 9)])

    assert table is not None
    assert table.paths == {"c"}
    assert rest == ("a", "b")


def test_the_words_of_a_file_lie_at_the_offset_of_its_slot() -> None:
    words = {"a": np.array([1, 2], np.int64), "b": np.array([3], np.int64)}
    table, _ = split_by_size([("a", 1000), ("b", 1001)])
    assert table is not None

    flat = flatten_words(table, words)

    for path, expected in words.items():
        start = flat[table.slot(path)]
        assert flat[start : start + len(expected)].tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("name", "spelled"),
    [
        ("a b.parquet", "a%20b.parquet"),
        ("x%20y", "x%2520y"),
        ("q?#h", "q%3F%23h"),
        ("ü+=,", "ü+=,"),
    ],
)
def test_names_are_spelled_as_spark_does(name: str, spelled: str) -> None:
    assert spark_file_name(f"/some where/{name}") == spelled


def test_patterns_in_a_path_are_escaped() -> None:
    assert escape_glob("/a{b}[c]*?.parquet") == r"/a\{b\}\[c\]\*\?.parquet"
