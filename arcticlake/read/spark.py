"""A plan as a DataFrame: the JVM scans Parquet, Python sends it nothing but dead rows.

    files without dead rows   one plain scan, with all of Catalyst's pruning and push-down
    files with dead rows      the same scan plus the file's identity and the row's index in it;
                              one bit for each row tells which to drop

Row index is the true position in the file whatever a pushed-down filter skips, so value filters
may sink into the scan: the resolution was done before, on keys alone. What a scan knows of its
file is its size and its name: sizes are compared where they are all different (`read/bits.py`),
names elsewhere.

Where the JVM cannot open the warehouse's store (`scan = tasks`), Python workers read the files
instead and hand over Arrow.

Touches Spark.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import cast

import pyarrow as pa
from py4j.java_gateway import JVMView
from pyiceberg.schema import Schema
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, LongType, StructField, StructType
from pyspark.sql.utils import is_remote

from arcticlake.read.arrow import base_version, file_to_scan
from arcticlake.read.bits import (
    SizeTable,
    escape_glob,
    flatten_words,
    spark_file_name,
    split_by_size,
)
from arcticlake.read.parquet import VERSION, file_rows, out_schema, run_resolve
from arcticlake.read.plan import ScanPlan
from arcticlake.resolve.bitmap import Mask, Words, mask_of, words_of
from arcticlake.resolve.job import ResolveJob
from arcticlake.table.change import ACTION, ORDER, SEQ
from arcticlake.table.hidden import HIDDEN_FIELDS
from arcticlake.table.storage import Storage
from arcticlake.table.types import arrow_schema, spark_json
from arcticlake.tree.files import FileEntry

_FILE, _SIZE = "__arctic_file", "__arctic_size"
_ROW, _WORDS = "__arctic_row", "__arctic_words"
FLAT_WORDS_MAX = 4 * 2**20
"""Words that travel with the plan, 32 MB: the bits of 268 M rows; more are broadcast."""
MANY_FILES = 500
"""Paths from which on handing them over one by one is felt."""

_HIDDEN_READ = tuple(field for field in HIDDEN_FIELDS if field.name in {ACTION, ORDER, SEQ})
_TASKS_PER_CORE = 4


@dataclass(frozen=True, slots=True)
class SparkScan:
    """What the scan of a plan needs beside the plan."""

    schema: Schema
    """The columns to read, as Iceberg knows them."""
    storage: Storage
    dead: Mapping[str, Mask]
    extra: tuple[str, ...]


def frame_of(spark: SparkSession, plan: ScanPlan, scan: SparkScan, *, by_tasks: bool) -> DataFrame:
    """Return the live rows of a plan as a DataFrame."""
    live = [file for file in (*plan.bases, *plan.changes) if not _all_dead(file, scan.dead)]
    if not live:
        return spark.createDataFrame([], _spark_schema(scan))
    if by_tasks:
        return _scan_by_tasks(spark, plan, scan, live)
    if scan.extra:
        return _scan_with_extra(spark, plan, scan, live)
    return _scan(spark, _struct(scan.schema), live, scan.dead)


def _all_dead(file: FileEntry, dead: Mapping[str, Mask]) -> bool:
    mask = dead.get(file.path)
    return mask is not None and bool(mask.all())


def _struct(schema: Schema) -> StructType:
    struct: StructType = StructType.fromJson(spark_json(schema))
    for field in struct.fields:
        field.nullable = True
    return struct


def _spark_schema(scan: SparkScan) -> StructType:
    struct = _struct(scan.schema)
    kinds = {ACTION: "string", VERSION: "long", ORDER: "long"}
    for name in scan.extra:
        struct = struct.add(name, kinds[name])
    return struct


def _scan(
    spark: SparkSession,
    struct: StructType,
    files: Sequence[FileEntry],
    dead: Mapping[str, Mask],
) -> DataFrame:
    """Return the live rows of files: those without dead rows pass, the others are filtered."""
    touched = [file for file in files if _has_dead(file, dead)]
    names = {file.path for file in touched}
    clean = [file for file in files if file.path not in names]
    frames = []
    if clean:
        frames.append(_read(spark, struct, clean))
    if touched:
        frames.extend(_without_dead(spark, struct, touched, dead))
    return reduce(DataFrame.unionAll, frames)


def _has_dead(file: FileEntry, dead: Mapping[str, Mask]) -> bool:
    mask = dead.get(file.path)
    return mask is not None and bool(mask.any())


def _read(spark: SparkSession, struct: StructType, files: Sequence[FileEntry]) -> DataFrame:
    reader = spark.read.schema(struct)
    paths = [escape_glob(file.path) for file in files]
    if len(paths) < MANY_FILES or is_remote() or any("\n" in path for path in paths):
        return reader.parquet(*paths)
    # The classic session hands a list to the JVM element by element, 0.2 ms each: 2 s for 10,000
    # files. One text that the JVM splits takes none of it (decisions/0004).
    jvm = cast("JVMView", spark._jvm)  # noqa: SLF001
    lines = jvm.java.util.regex.Pattern.compile("\n").split("\n".join(paths))
    return reader._df(reader._jreader.parquet(lines))  # noqa: SLF001


def _without_dead(
    spark: SparkSession,
    struct: StructType,
    files: Sequence[FileEntry],
    dead: Mapping[str, Mask],
) -> list[DataFrame]:
    """Return scans without the dead rows; files are told apart by size where that is possible."""
    by_size, by_name = split_by_size([(file.path, file.bytes) for file in files])
    words = {file.path: words_of(dead[file.path]) for file in files}
    frames = []
    if by_size is not None and sum(len(words[path]) for path in by_size.paths) <= FLAT_WORDS_MAX:
        mine = [file for file in files if file.path in by_size.paths]
        frames.append(_tested_by_size(spark, _read(spark, struct, mine), by_size, words))
    else:
        by_name = tuple(file.path for file in files)
    if by_name:
        rest = [file for file in files if file.path in set(by_name)]
        frames.append(_tested_by_name(spark, _read(spark, struct, rest), rest, words))
    return frames


def _tested_by_size(
    spark: SparkSession, frame: DataFrame, sizes: SizeTable, words: Mapping[str, Words]
) -> DataFrame:
    """Drop dead rows by one look-up in one array, which a scalar subquery hands to the scan.

    The array begins with an offset for every slot of the size table; the words follow. No join, no
    text is touched for a row: that costs half of what a join on file names does.
    """
    flat = flatten_words(sizes, words)
    element = pa.field("element", pa.int64(), nullable=False)
    array = ArrayType(LongType(), containsNull=False)
    one = spark.createDataFrame(
        pa.table({_WORDS: pa.array([flat], pa.list_(element))}),
        StructType([StructField(_WORDS, array, nullable=False)]),
    )
    bits = one.scalar()
    columns = [F.col(f"`{name}`") for name in frame.columns]
    placed = frame.select(
        *columns,
        F.col("_metadata.file_size").alias(_SIZE),
        F.col("_metadata.row_index").alias(_ROW),
    )
    slot = F.shiftright(F.col(_SIZE), sizes.shift).bitwiseAND(F.lit(sizes.slots - 1))
    offset = F.get(bits, slot.cast("int"))
    word = F.get(bits, (offset + F.shiftright(F.col(_ROW), 6)).cast("int"))
    return placed.where(_bit(word, F.col(_ROW)) == 0).select(*columns)


def _tested_by_name(
    spark: SparkSession,
    frame: DataFrame,
    files: Sequence[FileEntry],
    words: Mapping[str, Words],
) -> DataFrame:
    """Drop dead rows by a broadcast join on the file name."""
    rows = pa.table(
        {
            _FILE: pa.array([_name(file) for file in files], pa.string()),
            _WORDS: pa.array([words[file.path] for file in files], pa.list_(pa.int64())),
        }
    )
    columns = [F.col(f"`{name}`") for name in frame.columns]
    placed = frame.select(
        *columns,
        F.col("_metadata.file_name").alias(_FILE),
        F.col("_metadata.row_index").alias(_ROW),
    )
    joined = placed.join(F.broadcast(spark.createDataFrame(rows)), _FILE)
    word = F.get(F.col(_WORDS), F.shiftright(F.col(_ROW), 6).cast("int"))
    return joined.where(_bit(word, F.col(_ROW)) == 0).select(*columns)


def _bit(word: Column, row: Column) -> Column:
    shift = row.bitwiseAND(F.lit(63)).cast("int")
    return F.call_function("shiftright", word, shift).bitwiseAND(F.lit(1))


def _name(file: FileEntry) -> str:
    return spark_file_name(file.path)


def _scan_with_extra(
    spark: SparkSession, plan: ScanPlan, scan: SparkScan, files: Sequence[FileEntry]
) -> DataFrame:
    """Return the live rows with hidden columns: versions by file, action and order by row."""
    known = {file.path for file in files}
    bases = [file for file in plan.bases if file.path in known]
    changes = [file for file in plan.changes if file.path in known]
    columns = [F.col(f"`{field.name}`") for field in scan.schema.fields]
    frames = []
    if bases:
        shown = {_name(file): base_version(plan, file) for file in bases}
        frame = _with_version(spark, _struct(scan.schema), bases, scan.dead, shown)
        frames.append(frame.select(*columns, *_base_extra(scan.extra)))
    if changes:
        shown = {_name(file): file.sequence for file in changes}
        struct = _struct(Schema(*scan.schema.fields, *_HIDDEN_READ))
        frame = _with_version(spark, struct, changes, scan.dead, shown)
        inherited = F.coalesce(F.col(SEQ), F.col(VERSION)).alias(VERSION)
        extra = [inherited if name == VERSION else F.col(name) for name in scan.extra]
        frames.append(frame.select(*columns, *extra))
    return frames[0] if len(frames) == 1 else frames[0].unionAll(frames[1])


def _base_extra(extra: Sequence[str]) -> list[Column]:
    absent = {ACTION: F.lit(None).cast("string"), ORDER: F.lit(None).cast("bigint")}
    return [F.col(VERSION) if name == VERSION else absent[name].alias(name) for name in extra]


def _with_version(
    spark: SparkSession,
    struct: StructType,
    files: Sequence[FileEntry],
    dead: Mapping[str, Mask],
    shown: Mapping[str, int | None],
) -> DataFrame:
    """Return live rows with the version of their file."""
    rows = pa.table(
        {
            _FILE: pa.array([_name(file) for file in files], pa.string()),
            VERSION: pa.array([shown[_name(file)] for file in files], pa.int64()),
            _WORDS: pa.array([_words(file, dead) for file in files], pa.list_(pa.int64())),
        }
    )
    frame = _read(spark, struct, files)
    placed = frame.select(
        *(F.col(f"`{name}`") for name in frame.columns),
        F.col("_metadata.file_name").alias(_FILE),
        F.col("_metadata.row_index").alias(_ROW),
    )
    joined = placed.join(F.broadcast(spark.createDataFrame(rows)), _FILE)
    word = F.get(F.col(_WORDS), F.shiftright(F.col(_ROW), 6).cast("int"))
    alive = F.col(_WORDS).isNull() | (_bit(word, F.col(_ROW)) == 0)
    return joined.where(alive).drop(_FILE, _ROW, _WORDS)


def _words(file: FileEntry, dead: Mapping[str, Mask]) -> object:
    return words_of(dead[file.path]) if _has_dead(file, dead) else None


def _scan_by_tasks(
    spark: SparkSession, plan: ScanPlan, scan: SparkScan, files: Sequence[FileEntry]
) -> DataFrame:
    """Return the live rows read by Python workers, one task for some files each."""
    schema = arrow_schema(scan.schema)
    packed = {
        file.path: words_of(scan.dead[file.path]) for file in files if _has_dead(file, scan.dead)
    }
    tasks = [pickle.dumps((file_to_scan(plan, file), packed.get(file.path))) for file in files]
    storage, extra = scan.storage, scan.extra
    wanted = out_schema(schema, extra)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for raw in batch.column(0).to_pylist():
                file, words = pickle.loads(raw)  # noqa: S301 - made a few lines above
                mask = None if words is None else mask_of(words, file.rows)
                for rows in file_rows(storage, file, schema, mask, extra):
                    yield rows.cast(wanted)

    frame = spark.createDataFrame(pa.table({"task": pa.array(tasks, pa.binary())}))
    spread = frame.repartition(min(len(tasks), _TASKS_PER_CORE * _parallelism(spark)))
    return spread.mapInArrow(run, _spark_schema(scan))


def _parallelism(spark: SparkSession) -> int:
    return int(str(spark.conf.get("spark.sql.shuffle.partitions", "4")))


def run_jobs_on_spark(spark: SparkSession, jobs: Sequence[ResolveJob]) -> dict[str, Mask]:
    """Resolve large groups by Spark tasks, one group each; only bits come back."""
    tasks = pa.table({"job": pa.array([pickle.dumps(job) for job in jobs], pa.binary())})

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for raw in batch.column(0).to_pylist():
                dead = run_resolve(pickle.loads(raw))  # noqa: S301 - made by the line above
                answer = {path: (words_of(mask), len(mask)) for path, mask in dead.items()}
                yield pa.RecordBatch.from_pydict({"dead": [pickle.dumps(answer)]})

    frame = spark.createDataFrame(tasks).repartition(len(jobs))
    found: dict[str, Mask] = {}
    for row in frame.mapInArrow(run, "dead binary").collect():
        answer: dict[str, tuple[Words, int]] = pickle.loads(row[0])  # noqa: S301 - our tasks
        found |= {path: mask_of(words, rows) for path, (words, rows) in answer.items()}
    return found
