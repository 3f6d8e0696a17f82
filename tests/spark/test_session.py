"""The session: Java is found or asked for, the settings that keep reads right are on."""

from __future__ import annotations

import pickle
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from arcticlake import spark as session_module
from arcticlake.errors import InvalidRequest, Unavailable
from arcticlake.spark import (
    Java,
    SessionReport,
    adopt_session,
    count_cores,
    find_java,
    make_session,
    plan_settings,
    probe_java,
    require_java,
    session_report,
    write_launcher,
)

FIELD_ID = "spark.sql.parquet.fieldId.read.enabled"
BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
TIME_ZONE = "spark.sql.session.timeZone"


def write_script(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def write_fake_java(home: Path, version: str) -> Path:
    lines = f"    java.home = {home}\n    java.specification.version = {version}"
    return write_script(home / "bin" / "java", f"cat >&2 <<'END'\n{lines}\nEND")


@pytest.fixture
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without Java; the path is its only directory of programs."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "cat").symlink_to("/bin/cat")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    return programs


def test_java_home_comes_before_the_path(
    bare_machine: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write_fake_java(tmp_path / "named", "21")
    (bare_machine / "java").symlink_to(write_fake_java(tmp_path / "other", "17"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "named"))

    assert find_java() == Java(tmp_path / "named", 21, "JAVA_HOME")


def test_an_old_java_home_is_passed_over_for_the_path(
    bare_machine: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write_fake_java(tmp_path / "old", "1.8")
    (bare_machine / "java").symlink_to(write_fake_java(tmp_path / "new", "17"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))

    assert find_java() == Java(tmp_path / "new", 17, "PATH")


@pytest.mark.parametrize("version", ["1.8", "11", "16"])
def test_a_java_below_17_does_not_count(tmp_path: Path, version: str) -> None:
    assert probe_java(write_fake_java(tmp_path, version), "PATH") is None


def test_a_stub_that_fails_does_not_count(tmp_path: Path) -> None:
    stub = write_script(tmp_path / "java", "echo 'Unable to locate a Java Runtime.' >&2; exit 1")

    assert probe_java(stub, "PATH") is None
    assert probe_java(tmp_path / "missing", "PATH") is None


@pytest.mark.usefixtures("bare_machine")
def test_without_java_the_error_says_what_to_install() -> None:
    with pytest.raises(Unavailable, match=r"pip install 'arcticlake\[java\]'"):
        require_java()


@pytest.mark.usefixtures("bare_machine")
def test_the_report_of_a_machine_without_java_names_the_problem() -> None:
    report = session_report()

    assert report.java is None
    assert report.problem is not None and "Java 17" in report.problem


def test_the_report_of_an_old_spark_names_both_versions() -> None:
    report = SessionReport("python", "3.11.7", "4.1.4", Java(Path("java"), 17, "PATH"))

    assert report.problem is not None and "4.1.4" in report.problem and "4.2" in report.problem


def test_this_machine_can_start_a_session() -> None:
    assert session_report().problem is None


def test_the_launcher_drops_only_the_module_that_the_wheel_lacks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    java = write_script(tmp_path / "it's a place" / "java", 'printf "%s\\n" "$@"')
    home = write_launcher(java)
    given = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Da=b c", "--add-modules=other", ""]

    answer = subprocess.run(
        [home / "bin" / "java", *given], capture_output=True, text=True, check=True
    )

    assert answer.stdout.split("\n")[:-1] == ["-Xmx1g", "-Da=b c", "--add-modules=other", ""]
    assert write_launcher(java) == home
    assert stat.S_IMODE((home / "bin" / "java").stat().st_mode) == 0o755


def test_a_cache_that_cannot_be_written_is_replaced(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no directory", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    monkeypatch.setenv("TMPDIR", str(tmp_path))

    assert (write_launcher(Path("java")) / "bin" / "java").is_file()


@pytest.mark.parametrize(
    ("master", "cores"), [("local", 1), ("local[3]", 3), ("local[4, 2]", 4), ("local[4,2]", 4)]
)
def test_the_cores_of_a_local_master_are_read_from_its_name(master: str, cores: int) -> None:
    assert count_cores(master) == cores
    assert plan_settings(master)["spark.sql.shuffle.partitions"] == str(2 * cores)


def test_driver_memory_can_be_set_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ARCTIC_DRIVER_MEMORY", raising=False)
    assert plan_settings("local")["spark.driver.memory"] == "4g"

    monkeypatch.setenv("ARCTIC_DRIVER_MEMORY", "9g")
    assert plan_settings("local")["spark.driver.memory"] == "9g"


@dataclass
class Conf:
    """The settings of a session that knows nothing but its settings, as on Connect."""

    values: dict[str, str] = field(default_factory=dict)

    def get(self, name: str) -> str:
        return self.values[name]

    def set(self, name: str, value: str) -> None:
        self.values[name] = value


@dataclass
class Session:
    version: str
    conf: Conf


def foreign_session(version: str, **values: str) -> Session:
    defaults = {name: default for name, default, _ in session_module.SETTINGS_TUNED}
    return Session(version, Conf(defaults | values))


@pytest.mark.parametrize("version", ["4.1.4", "3.5.3", "unreadable"])
def test_an_old_spark_is_refused_by_name(version: str) -> None:
    session = foreign_session(version)

    with pytest.raises(InvalidRequest, match=version):
        adopt_session(cast("SparkSession", session))


@pytest.mark.parametrize("version", ["4.2.0", "4.10.1", "5.0.0-preview1"])
def test_an_adopted_session_needs_only_its_settings(version: str) -> None:
    session = foreign_session(version)
    adopt_session(cast("SparkSession", session))

    assert session.conf.values[FIELD_ID] == "true"
    assert session.conf.values[BATCH_ROWS] == "65536"
    assert TIME_ZONE not in session.conf.values


def test_a_choice_of_the_user_stays() -> None:
    session = foreign_session("4.3.0")
    session.conf.values[BATCH_ROWS] = "500"
    adopt_session(cast("SparkSession", session))

    assert session.conf.values[BATCH_ROWS] == "500"


def test_an_error_about_java_crosses_a_process_border() -> None:
    error = pickle.loads(pickle.dumps(Unavailable("no Java")))

    assert (type(error), error.message) == (Unavailable, "no Java")


def keep_even(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch.filter(pa.array([value % 2 == 0 for value in batch["id"].to_pylist()]))


def test_rows_pass_through_parquet_and_python_workers(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "Zahlen größer als 1")
    spark.range(10).write.parquet(path)

    assert spark.sql("select 1 as one").collect()[0]["one"] == 1
    even = spark.read.parquet(path).mapInArrow(keep_even, "id long")
    assert sorted(row["id"] for row in even.collect()) == [0, 2, 4, 6, 8]
    assert spark.range(3).toArrow().num_rows == 3


def test_a_second_call_returns_the_running_session(spark: SparkSession) -> None:
    spark.conf.set(FIELD_ID, "false")
    again = make_session(master="local[2]")

    assert again.conf.get(FIELD_ID) == "true"
    assert again.conf.get(TIME_ZONE) == "UTC"
    assert again.range(4).count() == 4
