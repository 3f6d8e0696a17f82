from __future__ import annotations

import json

from arcticlake.compact.result import (
    NUMBERS,
    CompactionResult,
    Numbers,
    Skipped,
    decode_numbers,
    encode_numbers,
)

SOME = Numbers(
    files_removed=7,
    files_added=2,
    rows_read=110,
    rows_written=100,
    bytes_read=1100,
    bytes_written=900,
    change_bytes=300,
    seconds=1.25,
    events=("split 3/1 into 7/1 7/5",),
)


def test_numbers_survive_the_summary_of_a_snapshot() -> None:
    """CMP-03."""
    assert decode_numbers(encode_numbers(SOME)) == SOME


def test_the_summary_tells_write_amplification_to_other_tools() -> None:
    told = json.loads(encode_numbers(SOME)[NUMBERS])

    assert told["write_amplification"] == 3.0
    assert json.loads(encode_numbers(Numbers())[NUMBERS])["write_amplification"] is None


def test_a_snapshot_of_another_kind_has_no_numbers() -> None:
    assert decode_numbers({"arctic.kind": "upsert"}) is None


def test_a_result_says_what_was_done_and_what_was_not() -> None:
    lost = Skipped("node 3/2", "2 of 5 input files are gone")
    result = CompactionResult("shop.orders", "major", 9, SOME, (lost,))

    assert str(result).splitlines() == [
        (
            "table shop.orders: major compaction up to version 9, 7 files became 2, "
            "900 bytes written in 1.2 s"
        ),
        "  split 3/1 into 7/1 7/5",
        "  skipped node 3/2: 2 of 5 input files are gone",
    ]
    assert json.loads(json.dumps(result.to_dict()))["skipped"] == [
        {"group": "node 3/2", "reason": "2 of 5 input files are gone"}
    ]
    assert (result.files_removed, result.files_added, result.bytes_written) == (7, 2, 900)
    assert (result.seconds, result.write_amplification) == (1.25, 3.0)


def test_a_result_without_work_says_so() -> None:
    assert str(CompactionResult("a.b", "none", 3, Numbers())) == "table a.b: nothing to do"
