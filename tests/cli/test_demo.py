"""The demo checks itself: right answers pass, and a wrong one would not."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from pyspark.sql import SparkSession

from arcticlake.cli.demo import Different, Truth, _same
from arcticlake.lake import Lake
from tests.cli.conftest import Arctic


def test_the_recomputation_keeps_the_last_change_of_each_key() -> None:
    truth = Truth(pl.DataFrame({"order_id": [1, 2, 3], "status": ["a", "b", "c"]}))

    truth.apply(
        pl.DataFrame(
            {
                "order_id": [2, 1, 1, 4],
                "status": ["x", "new", "old", "d"],
                "op": ["D", "U", "U", "I"],
                "lsn": [5, 9, 8, 1],
            }
        )
    )

    assert sorted(truth.rows.rows()) == [(1, "new"), (3, "c"), (4, "d")]
    assert truth.before[0].height == 3


def test_a_difference_is_told_and_not_passed_over() -> None:
    frame = pl.DataFrame({"a": [1]})

    _same(frame, frame, "it")
    with pytest.raises(Different, match="it differs"):
        _same(frame, pl.DataFrame({"a": [2]}), "it")
    with pytest.raises(Different):
        _same(frame, pl.DataFrame({"b": [1]}), "it")
    with pytest.raises(Different):
        _same(1, 2, "it")


def test_the_demo_never_plays_in_a_folder_that_is_used(arctic: Arctic, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep me")

    assert arctic("demo", "--keep", str(tmp_path)).code == 2


@pytest.mark.spark
def test_the_demo_ends_well_and_says_what_to_type_next(
    arctic: Arctic, spark: SparkSession, tmp_path: Path
) -> None:
    assert spark.version

    answer = arctic("demo", "--rows", "2000", "--keep", "kept")

    assert answer.code == 0, answer.out
    assert "Every answer equals a plain recomputation" in answer.out
    assert "arctic --help" in answer.out
    assert Lake.open(str(tmp_path / "kept")).table("shop.orders").verify().ok
