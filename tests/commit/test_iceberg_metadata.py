"""Metadata files of old commits go away, the newest stay."""

from __future__ import annotations

from pathlib import Path

from arcticlake import Lake


def test_only_the_newest_metadata_files_are_kept(warehouse: Path) -> None:
    """TML-14: metadata is bounded; each commit would otherwise leave one more file."""
    table = Lake.open(str(warehouse)).create_table("a.b", "id bigint", primary_key="id")

    for number in range(25):
        table.upsert([{"id": number}])

    kept = list((warehouse / "a" / "b__changes" / "metadata").glob("*.metadata.json"))
    assert len(kept) <= 22
    assert table.to_arrow().num_rows == 25
