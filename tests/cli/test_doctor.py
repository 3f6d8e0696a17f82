"""The doctor names what is wrong and what to do, and never stumbles over it."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from arcticlake.cli.doctor import (
    PYICEBERG_SERIES,
    Health,
    check_clock,
    check_free,
    check_java,
    check_pyiceberg,
    check_python,
    check_spark_version,
)
from arcticlake.spark import Java, SessionReport
from tests.cli.conftest import Arctic

ROOT = Path(__file__).resolve().parents[2]
NOW = datetime(2026, 11, 15, tzinfo=UTC)


def report(*, java: bool = True, spark: str = "4.2.0") -> SessionReport:
    found = Java(Path("java"), 17, "PATH") if java else None
    return SessionReport("python", "3.11.0", spark, found)


def test_an_old_python_is_a_problem() -> None:
    assert check_python((3, 10, 0)).health is Health.PROBLEM
    assert check_python((3, 13, 0)).health is Health.OK


def test_missing_java_is_a_problem_with_a_way_out() -> None:
    finding = check_java(report(java=False))

    assert finding.health is Health.PROBLEM
    assert "pip install 'arcticlake[java]'" in finding.advice
    assert "found by PATH" in check_java(report()).found


def test_an_old_spark_is_a_problem() -> None:
    assert check_spark_version(report(spark="4.1.0")).health is Health.PROBLEM
    assert check_spark_version(report()).health is Health.OK


def test_pyiceberg_must_be_of_the_series_that_the_package_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert any(f"=={PYICEBERG_SERIES}.*" in needed for needed in project["dependencies"])
    assert check_pyiceberg(f"{PYICEBERG_SERIES}.3").health is Health.OK
    assert check_pyiceberg("0.120.0").health is Health.PROBLEM
    assert check_pyiceberg(None).health is Health.PROBLEM


def test_little_room_is_a_problem() -> None:
    assert check_free("disk", 10**6, Path(), "tests").health is Health.PROBLEM
    assert check_free("disk", 10**12, Path(), "tests").health is Health.OK


def test_a_clock_behind_the_commits_is_a_problem() -> None:
    assert check_clock(NOW.timestamp(), None).health is Health.OK
    assert check_clock(NOW.timestamp() - 3600, NOW).health is Health.PROBLEM
    assert check_clock(0.0, None).health is Health.PROBLEM


def test_a_healthy_lake_is_exit_code_zero_and_nothing_is_left_behind(
    orders: Arctic, tmp_path: Path
) -> None:
    before = sorted(tmp_path.rglob("*"))

    answer = orders("doctor", "--no-spark", "--output", "json")

    assert answer.code == 0, answer.out
    assert isinstance(answer.json, dict)
    assert answer.json["ok"] is True
    healthy = {check["check"] for check in answer.json["checks"] if check["health"] == "ok"}
    assert {"java", "spark", "pyiceberg", "catalog", "storage", "disk", "clock"} <= healthy
    assert sorted(tmp_path.rglob("*")) == before


def test_a_catalog_that_does_not_answer_is_exit_code_three(arctic: Arctic, tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("a file, not a folder")

    answer = arctic("doctor", "--no-spark")

    assert answer.code == 3
    assert "problem  catalog" in answer.out


@pytest.mark.spark
def test_a_session_runs_a_python_worker(arctic: Arctic, spark: SparkSession) -> None:
    assert spark.version

    answer = arctic("doctor")

    assert answer.code == 0, answer.out
    assert "ok       session    started" in answer.out
