"""Places in a stream: to and from a checkpoint, and how far one batch goes."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arcticlake.errors import InvalidRequest
from arcticlake.stream.offset import (
    BEGINNING,
    Limit,
    Offset,
    Pin,
    cut_changes,
    cut_state,
    decode_offset,
    encode_offset,
    is_before,
)

PIN = Pin(81, None)
sizes = st.lists(st.integers(0, 9), max_size=4)
limits = st.builds(Limit, files=st.integers(1, 5), rows=st.integers(1, 20))


@pytest.mark.parametrize(
    "offset", [BEGINNING, Offset(0), Offset(7, 3), Offset(7, 3, PIN), Offset(7, 0, Pin(1, 2))]
)
def test_an_offset_survives_its_checkpoint(offset: Offset) -> None:
    """INC-37: what is stored is what is resumed."""
    told = json.loads(json.dumps(encode_offset(offset)))
    assert decode_offset(told, table="t") == offset


@pytest.mark.parametrize(
    "told", [{}, {"version": 1}, {"version": "1", "unit": 0}, {"version": True, "unit": 0}]
)
def test_an_offset_of_another_source_is_refused(told: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest, match="start with a new one"):
        decode_offset(told, table="t")


def test_a_state_comes_before_its_own_version() -> None:
    """INC-02: everything first, then changes."""
    line = [BEGINNING, Offset(7, 0, PIN), Offset(7, 9, PIN), Offset(7), Offset(7, 1), Offset(9)]
    for first, second in pairwise(line):
        assert is_before(first, second)
        assert not is_before(second, first)
        assert not is_before(first, first)


def test_without_limits_a_batch_takes_everything() -> None:
    assert cut_changes(Offset(3), [(4, [5, 5]), (6, [1])], Limit()) == Offset(6)
    assert cut_state(BEGINNING, 7, PIN, [5, 5], Limit()) == Offset(7, 2, PIN)


def test_a_batch_ends_inside_a_version_when_it_must() -> None:
    assert cut_changes(Offset(3), [(4, [5, 5]), (6, [1])], Limit(files=1)) == Offset(3, 1)
    assert cut_changes(Offset(3, 1), [(4, [5, 5]), (6, [1, 1])], Limit(files=2)) == Offset(4, 1)
    assert cut_changes(Offset(3), [(4, [5, 5]), (6, [1])], Limit(rows=10)) == Offset(4)


def test_a_single_file_is_never_cut() -> None:
    assert cut_changes(Offset(3), [(4, [500, 5])], Limit(rows=10)) == Offset(3, 1)


def test_a_stream_that_has_read_everything_stays() -> None:
    """INC-14."""
    done = Offset(7, 2, PIN)
    assert cut_changes(done, [], Limit()) == done


def test_no_more_versions_are_asked_for_than_needed() -> None:
    asked = iter([(4, [5]), (5, [5]), (6, [5])])
    assert cut_changes(Offset(3), asked, Limit(files=2)) == Offset(5)
    assert next(asked) == (6, [5])


@given(st.lists(sizes, max_size=6), limits)
def test_batches_together_read_every_unit_once(history: list[list[int]], limit: Limit) -> None:
    """INC-15, INC-18: nothing is left out and nothing comes twice, whatever the limits."""
    known = list(enumerate(history, start=1))
    offset, read = Offset(0), []
    for _ in range(100):
        rest = [(version, units) for version, units in known if version > offset.version]
        end = cut_changes(offset, rest, limit)
        if end == offset:
            break
        assert is_before(offset, end)
        batch = _between(known, offset, end)
        assert len(batch) <= limit.files
        assert len(batch) <= 1 or sum(size for _, _, size in batch) <= limit.rows
        read += batch
        offset = end
    assert offset == Offset(len(history))
    assert read == [(v, n, size) for v, units in known for n, size in enumerate(units)]


@given(sizes, limits)
def test_batches_together_read_a_state_once(units: list[int], limit: Limit) -> None:
    offset, ends = BEGINNING, []
    while offset.unit < len(units):
        offset = cut_state(offset, 7, PIN, units, limit)
        ends.append(offset.unit)
    assert ends == sorted(set(ends))


def _between(
    known: list[tuple[int, list[int]]], start: Offset, end: Offset
) -> list[tuple[int, int, int]]:
    """Return the units after `start`, up to `end`."""
    first, last = (start.version + 1, start.unit), (end.version + 1, end.unit)
    units = [(v, n, size) for v, sizes in known for n, size in enumerate(sizes)]
    return [unit for unit in units if first <= unit[:2] < last]
