from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    YearTransform,
)
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
)

from arcticlake.tree.hash import HASH_BUCKETS, PlaceTerm, key_hash, partition_values

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))  # noqa: DTZ001 - zone-less keys
ZONED = st.datetimes(
    datetime(1, 1, 2),  # noqa: DTZ001 - hypothesis adds the zone
    datetime(9999, 12, 30),  # noqa: DTZ001 - hypothesis adds the zone
    timezones=st.just(UTC),
)


def decimals(precision: int, scale: int) -> SearchStrategy[Decimal]:
    most = 10**precision - 1
    return st.integers(-most, most).map(lambda unscaled: Decimal(f"{unscaled}E-{scale}"))


def keys_of(*kinds: tuple[str, IcebergType, pa.DataType, SearchStrategy[object]]) -> object:
    return pytest.mark.parametrize(
        ("iceberg", "arrow", "values"), [kind[1:] for kind in kinds], ids=[k[0] for k in kinds]
    )


@keys_of(  # type: ignore[operator]
    ("int", IntegerType(), pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    ("tinyint", IntegerType(), pa.int8(), st.integers(-128, 127)),
    ("smallint", IntegerType(), pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    ("bigint", LongType(), pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    ("string", StringType(), pa.string(), TEXT),
    ("large string", StringType(), pa.large_string(), TEXT),
    ("string view", StringType(), pa.string_view(), TEXT),
    ("binary", BinaryType(), pa.binary(), st.binary(max_size=20)),
    ("large binary", BinaryType(), pa.large_binary(), st.binary(max_size=20)),
    ("date", DateType(), pa.date32(), st.dates()),
    ("timestamp", TimestampType(), pa.timestamp("us"), MOMENTS),
    ("timestamptz", TimestamptzType(), pa.timestamp("us", "UTC"), ZONED),
    ("decimal(4,2)", DecimalType(4, 2), pa.decimal128(4, 2), decimals(4, 2)),
    ("decimal(9,0)", DecimalType(9, 0), pa.decimal128(9, 0), decimals(9, 0)),
    ("decimal(18,4)", DecimalType(18, 4), pa.decimal128(18, 4), decimals(18, 4)),
    ("decimal(38,10)", DecimalType(38, 10), pa.decimal128(38, 10), decimals(38, 10)),
)
@settings(max_examples=15)
@given(data=st.data())
def test_the_hash_is_the_one_that_every_iceberg_writer_uses(
    data: st.DataObject, iceberg: IcebergType, arrow: pa.DataType, values: SearchStrategy[object]
) -> None:
    """IDX-02, IDX-11: index = hash(key) & mask is Iceberg's bucket value."""
    keys = data.draw(st.lists(values, min_size=1, max_size=20))

    hashes = key_hash(pa.array(keys, arrow))

    oracle = BucketTransform(HASH_BUCKETS).transform(iceberg)
    assert hashes.tolist() == [oracle(key) for key in keys]
    for buckets in (1, 2, 8, 1024):
        bucket = BucketTransform(buckets).transform(iceberg)
        assert (hashes & (buckets - 1)).tolist() == [bucket(key) for key in keys]


@pytest.mark.parametrize("text", ["", "\0", "é", "日本", "😀", "a\U0010ffffb", "x" * 300])
def test_empty_long_and_four_byte_text_hashes_as_iceberg_does(text: str) -> None:
    oracle = BucketTransform(HASH_BUCKETS).transform(StringType())

    assert key_hash(pa.array([text])).tolist() == [oracle(text)]


@pytest.mark.parametrize("offset", [1, 3, 5])
def test_decimals_in_memory_that_is_not_aligned_do_not_panic(offset: int) -> None:
    """Spark hands over decimals at any 8-byte address; the hash library wants 16."""
    values = [Decimal(number).scaleb(-2) for number in range(-20, 20)]
    whole = pa.array(values, pa.decimal128(38, 2))
    raw = np.frombuffer(whole.buffers()[1], dtype=np.uint8)
    shifted = np.empty(len(raw) + 8, dtype=np.uint8)
    shifted[8:] = raw
    buffer = pa.py_buffer(shifted).slice(8)
    unaligned = pa.Array.from_buffers(whole.type, len(whole), [None, buffer]).slice(offset)

    assert key_hash(unaligned).tolist() == key_hash(whole)[offset:].tolist()


def test_chunks_and_dictionaries_hash_as_plain_values_and_nothing_hashes_to_nothing() -> None:
    plain = pa.array(["a", "b", "a", "c"])
    chunked = pa.chunked_array([["a", "b"], [], ["a", "c"]], pa.string())

    assert key_hash(chunked).tolist() == key_hash(plain).tolist()
    assert key_hash(plain.dictionary_encode()).tolist() == key_hash(plain).tolist()
    assert key_hash(pa.array([], pa.int64())).tolist() == []
    assert key_hash(pa.chunked_array([], pa.string())).tolist() == []


def test_timestamps_of_other_units_hash_as_microseconds() -> None:
    moments = [datetime(1969, 12, 31, 23, 59), datetime(2026, 1, 1)]  # noqa: DTZ001 - zone-less

    for unit in ("s", "ms", "ns"):
        assert (
            key_hash(pa.array(moments, pa.timestamp(unit))).tolist()
            == key_hash(pa.array(moments, pa.timestamp("us"))).tolist()
        )


@pytest.mark.parametrize(
    ("transform", "iceberg", "arrow", "values"),
    [
        (DayTransform(), TimestampType(), pa.timestamp("us"), MOMENTS),
        (HourTransform(), TimestamptzType(), pa.timestamp("us", "UTC"), ZONED),
        (MonthTransform(), DateType(), pa.date32(), st.dates()),
        (YearTransform(), DateType(), pa.date32(), st.dates()),
        (DayTransform(), DateType(), pa.date32(), st.dates()),
        (TruncateTransform(3), StringType(), pa.string(), TEXT),
        (TruncateTransform(3), IntegerType(), pa.int32(), st.integers(-1000, 1000)),
        (TruncateTransform(3), LongType(), pa.int64(), st.integers(-(2**60), 2**60)),
        (
            TruncateTransform(3),
            DecimalType(9, 2),
            pa.decimal128(9, 2),
            decimals(9, 2),
        ),
    ],
)
@settings(max_examples=15)
@given(data=st.data())
def test_partition_values_are_those_of_every_iceberg_writer(
    data: st.DataObject,
    transform: Transform,  # type: ignore[type-arg]
    iceberg: IcebergType,
    arrow: pa.DataType,
    values: SearchStrategy[object],
) -> None:
    """KEY-02: the same partition is the same directory, whoever writes."""
    term = str(transform).partition("[")[0]
    column = data.draw(st.lists(st.none() | values, min_size=1, max_size=10))
    width = transform.width if isinstance(transform, TruncateTransform) else 0
    rows = pa.table({"c": pa.array(column, arrow)})

    found = partition_values(rows, PlaceTerm("c", term, width, "c")).to_pylist()

    oracle = transform.transform(iceberg)
    assert found == [oracle(value) for value in column]


def test_identity_values_leave_as_days_and_microseconds() -> None:
    rows = pa.table(
        {
            "d": pa.array([date(1970, 1, 3), None]),
            "t": pa.array([1_000_000, None], pa.int64()).cast(pa.timestamp("us")),
            "s": ["x", None],
        }
    )

    def values(column: str) -> list[object]:
        found: list[object] = partition_values(rows, PlaceTerm(column, "identity")).to_pylist()
        return found

    assert values("d") == [2, None]
    assert values("t") == [1_000_000, None]
    assert values("s") == ["x", None]


def test_an_unknown_transform_is_our_own_mistake() -> None:
    with pytest.raises(AssertionError, match="no transform zigzag"):
        partition_values(pa.table({"c": [1]}), PlaceTerm("c", "zigzag"))
