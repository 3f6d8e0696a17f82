"""The table of rejects: made on first need, and every batch of a stream in it once."""

from __future__ import annotations

import pyarrow as pa

from arcticlake import Lake
from arcticlake.ingest.once import Once
from arcticlake.verbs.rejects import REJECTS_SUFFIX, keep_rejects


def rejects(*reasons: str) -> pa.Table:
    count = len(reasons)
    return pa.table(
        {
            "raw": pa.array(["junk"] * count, pa.string()),
            "reason": pa.array(reasons, pa.string()),
            "position": pa.array([None] * count, pa.int64()),
        }
    )


def test_the_table_is_made_on_first_need_and_keeps_every_call(lake: Lake) -> None:
    table = lake.create_table("db.t", "id bigint", primary_key="id")

    keep_rejects(table._opened, rejects("one", "two"), None)
    keep_rejects(table._opened, rejects("one"), None)

    kept = lake.table(f"db.t{REJECTS_SUFFIX}").to_arrow().to_pylist()
    assert sorted(row["reason"] for row in kept) == ["one", "one", "two"]
    assert len({row["batch"] for row in kept}) == 2
    assert all(row["rejected_at"] is not None for row in kept)


def test_a_batch_that_comes_again_is_kept_once(lake: Lake) -> None:
    table = lake.create_table("db.t", "id bigint", primary_key="id")

    for batch in (0, 1, 1, 0):
        keep_rejects(table._opened, rejects(f"of {batch}"), Once("query", batch))

    kept = lake.table(f"db.t{REJECTS_SUFFIX}").to_arrow().to_pylist()
    assert sorted(str(row["batch"]) for row in kept) == ["query:0", "query:1"]


def test_a_batch_that_is_understood_worse_the_second_time_loses_nothing(lake: Lake) -> None:
    """Its changes were not committed at first, and it is parsed again under other options."""
    table = lake.create_table("db.t", "id bigint", primary_key="id")
    first, once = rejects("one"), Once("query", 7)
    second = pa.concat_tables([first, first.set_column(0, "raw", pa.array(["more junk"]))])

    for came in (first, second, second):
        keep_rejects(table._opened, came, once)

    kept = lake.table(f"db.t{REJECTS_SUFFIX}").to_arrow().to_pylist()
    assert sorted(str(row["raw"]) for row in kept) == ["junk", "more junk"]
