"""The counters of a snapshot summary: what came, what went, and what there is in all.

Engines show them and some plan by them, so they follow Iceberg's own names and rules: a counter of
zero is left out, a total is always there, and a total whose predecessor is unknown stays unknown.
They are right for files of several specs and for every operation (pyiceberg's own code knows no
`replace`).

Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from pyiceberg.manifest import DataFile, DataFileContent

_TOTALS = {
    "total-data-files": ("added-data-files", "deleted-data-files"),
    "total-delete-files": ("added-delete-files", "removed-delete-files"),
    "total-records": ("added-records", "deleted-records"),
    "total-files-size": ("added-files-size", "removed-files-size"),
    "total-position-deletes": ("added-position-deletes", "removed-position-deletes"),
    "total-equality-deletes": ("added-equality-deletes", "removed-equality-deletes"),
}


def count_switch(
    here: Iterable[DataFile], there: Iterable[DataFile]
) -> tuple[list[DataFile], list[DataFile]]:
    """Return the files that come and go when one set of files takes the place of another."""
    old, new = ({file.file_path: file for file in files} for files in (here, there))
    came = [file for path, file in new.items() if path not in old]
    return came, [file for path, file in old.items() if path not in new]


def count_files(added: Iterable[DataFile], removed: Iterable[DataFile]) -> dict[str, str]:
    """Return the counters of files that came and went."""
    counts: Counter[str] = Counter()
    partitions = set()
    for verb, files in (("added", added), ("removed", removed)):
        for file in files:
            counts.update(_count(verb, file))
            partitions.add((file.spec_id, str(file.partition)))
    counts["changed-partition-count"] = len(partitions)
    return {name: str(number) for name, number in counts.items() if number > 0}


def count_totals(before: Mapping[str, str] | None, counters: Mapping[str, str]) -> dict[str, str]:
    """Return the totals after a snapshot; `before` is the summary of the one it was made from."""
    totals = {}
    for name, (plus, minus) in _TOTALS.items():
        old = "0" if before is None else before.get(name)
        if old is not None:
            total = int(old) + int(counters.get(plus, "0")) - int(counters.get(minus, "0"))
            totals[name] = str(max(total, 0))
    return totals


def _count(verb: str, file: DataFile) -> dict[str, int]:
    sizes = {f"{verb}-files-size": file.file_size_in_bytes}
    if file.content == DataFileContent.DATA:
        gone = "deleted" if verb == "removed" else verb  # Iceberg's word for data files
        return {**sizes, f"{gone}-data-files": 1, f"{gone}-records": file.record_count}
    kind = "position" if file.content == DataFileContent.POSITION_DELETES else "equality"
    return {
        **sizes,
        f"{verb}-delete-files": 1,
        f"{verb}-{kind}-delete-files": 1,
        f"{verb}-{kind}-deletes": file.record_count,
    }
