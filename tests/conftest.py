"""What all tests share: one Spark session, an empty warehouse, the budget of property tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import SparkSession

from arcticlake import Lake
from arcticlake.spark import make_session

# Machines that share their cores are slow now and then: time decides no test. In CI the examples
# are the same in every run, so a red run can be repeated; at home they are new each time.
settings.register_profile("home", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("home"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "home")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that uses the session, so that `-m "not spark"` leaves Spark out."""
    for item in items:
        if isinstance(item, pytest.Function) and "spark" in item.fixturenames:
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One session on two cores for the whole run; starting one costs seconds."""
    place = tmp_path_factory.mktemp("spark")
    session = make_session(
        "arctic-tests",
        "local[2]",
        {
            "spark.driver.memory": "2g",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(place / "warehouse"),
            "spark.local.dir": str(place / "scratch"),
        },
    )
    yield session
    session.stop()


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """A path for a warehouse that does not exist yet."""
    return tmp_path / "warehouse"


@pytest.fixture
def lake(warehouse: Path) -> Iterator[Lake]:
    """An empty lake; tests on Spark have their own, on the shared session."""
    opened = Lake.open(str(warehouse))
    yield opened
    assert isinstance(opened.catalog, SqlCatalog)
    opened.catalog.close()
