from __future__ import annotations

from pyiceberg.manifest import DataFile, DataFileContent
from pyiceberg.typedef import Record

from arcticlake.commit.summary import count_files, count_switch, count_totals


def file(path: str, rows: int, content: DataFileContent = DataFileContent.DATA) -> DataFile:
    made = DataFile.from_args(
        content=content,
        file_path=path,
        partition=Record(1),
        record_count=rows,
        file_size_in_bytes=rows * 10,
    )
    made.spec_id = 0
    return made


def test_a_counter_of_zero_is_left_out_and_a_total_is_not() -> None:
    counters = count_files([file("a", 3)], [])

    assert counters == {
        "added-data-files": "1",
        "added-records": "3",
        "added-files-size": "30",
        "changed-partition-count": "1",
    }
    assert count_totals(None, counters)["total-records"] == "3"
    assert count_totals(None, {})["total-delete-files"] == "0"


def test_row_deletes_have_counters_of_their_own() -> None:
    gone = [file("d", 2, DataFileContent.POSITION_DELETES)]
    counters = count_files([], gone)

    assert counters["removed-delete-files"] == counters["removed-position-delete-files"] == "1"
    assert counters["removed-position-deletes"] == "2"
    assert "deleted-records" not in counters


def test_a_total_whose_predecessor_is_unknown_stays_unknown() -> None:
    totals = count_totals({"total-records": "5"}, {"added-records": "2", "deleted-records": "4"})

    assert totals == {"total-records": "3"}


def test_switching_to_other_files_counts_the_difference_only() -> None:
    a, b, c = file("a", 1), file("b", 1), file("c", 1)

    assert count_switch([a, b], [b, c]) == ([c], [a])
