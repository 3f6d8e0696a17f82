"""What Spark does with a reading stream, without Spark."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from pathlib import Path

from arcticlake.stream.spark_feed import feed_struct
from arcticlake.stream.spark_reader import StreamReader
from tests.verbs.shop import NAME

Row = tuple[str, int, int, str | None]


class Query:
    """What Spark does: it keeps offsets as JSON, and may ask for the last batch again."""

    def __init__(self, warehouse: Path, **options: str) -> None:
        self.options = {"path": NAME, "warehouse": str(warehouse), "pollInterval": "0"} | options
        if "catalog" in options:
            del self.options["warehouse"]
        self.offsets: list[str] = []
        self.start()

    def start(self, **options: str) -> None:
        """Start, or start again from the checkpoint."""
        self.options |= options
        struct = feed_struct(self.options)
        self.reader = StreamReader(self.options, struct)
        self.worker: StreamReader = pickle.loads(pickle.dumps(self.reader))

    @property
    def end(self) -> dict[str, int | str]:
        if not self.offsets:
            return self.reader.initialOffset()
        return dict(json.loads(self.offsets[-1]))

    def batch(self) -> list[dict[str, object]] | None:
        """Run one batch; None if there is nothing to read."""
        start = self.end
        end = self.reader.latestOffset(start, self.reader.getDefaultReadLimit())
        if end == start:
            return None
        found = self.between(start, end)
        self.offsets.append(json.dumps(end))
        self.reader.commit(end)
        return found

    def between(
        self, start: Mapping[str, object], end: Mapping[str, object]
    ) -> list[dict[str, object]]:
        found = []
        for share in pickle.loads(pickle.dumps(self.reader.partitions(start, end))):
            for batch in self.worker.read(share):
                found += batch.to_pylist()
        return found

    def all(self) -> list[list[dict[str, object]]]:
        batches = []
        while (found := self.batch()) is not None:
            batches.append(found)
        return batches


def told(found: list[dict[str, object]]) -> list[Row]:
    return sorted(
        (
            str(r["_change_type"]),
            int(str(r["_commit_version"])),
            int(str(r["order_id"])),
            r["status"],
        )  # type: ignore[misc]
        for r in found
    )


def flat(batches: list[list[dict[str, object]]]) -> list[dict[str, object]]:
    return [row for batch in batches for row in batch]


def copied(found: list[dict[str, object]]) -> dict[object, object]:
    """What a table holds that applies changes by `_change_order` alone: status by order."""
    copy: dict[object, object] = {}
    for row in sorted(found, key=lambda row: int(str(row["_change_order"]))):
        if row["_change_type"] == "delete":
            copy.pop(row["order_id"], None)
        else:
            copy[row["order_id"]] = row["status"]
    return copy
