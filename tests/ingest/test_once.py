"""A batch has a name, and the table remembers the last one of each query."""

from __future__ import annotations

import pickle

import pytest

from arcticlake.errors import CorruptData, InvalidRequest
from arcticlake.ingest.once import (
    STREAM,
    STREAM_BATCH,
    STREAM_QUERY,
    Once,
    properties_of,
    summary_of,
)

QUERY = "6a1c9f7e-0c1d-4a7e-9d55-000000000001"


def test_a_batch_that_nobody_committed_is_new() -> None:
    assert Once(QUERY, 0).committed_in({}) is None
    assert Once(QUERY, 4).committed_in(properties_of(Once(QUERY, 3), 9)) is None


def test_a_batch_and_all_before_it_are_known_by_the_version_of_the_last() -> None:
    """RTI-20."""
    remembered = properties_of(Once(QUERY, 3), 9)

    assert [Once(QUERY, batch).committed_in(remembered) for batch in range(4)] == [9] * 4


def test_batches_of_another_query_are_not_taken_for_ours() -> None:
    remembered = properties_of(Once(QUERY, 3), 9)

    assert Once("another", 3).committed_in(remembered) is None
    assert properties_of(Once("another", 0), 1).keys().isdisjoint(remembered)


def test_the_snapshot_names_query_and_batch_for_people() -> None:
    assert summary_of(Once(QUERY, 3)) == {STREAM_QUERY: QUERY, STREAM_BATCH: "3"}
    assert summary_of(None) == properties_of(None, 1) == {}


@pytest.mark.parametrize(("query", "batch"), [("", 0), ("a b", 0), ("q", -1)])
def test_what_is_no_name_is_refused(query: str, batch: int) -> None:
    with pytest.raises(InvalidRequest, match="no name for a micro-batch"):
        Once(query, batch)


@pytest.mark.parametrize("text", ["", "3", "3 x", "3 4 5"])
def test_a_property_that_cannot_be_read_stops_the_stream(text: str) -> None:
    with pytest.raises(CorruptData, match="cannot be read"):
        Once(QUERY, 1).committed_in({STREAM + QUERY: text})


def test_a_name_crosses_process_borders() -> None:
    assert pickle.loads(pickle.dumps(Once(QUERY, 7))) == Once(QUERY, 7)
