from __future__ import annotations

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField, UUIDType

from arcticlake.errors import InvalidRequest
from arcticlake.table.ddl import schema_from_ddl
from arcticlake.table.spec import TableSpec, check_name, plan_table

DDL = (
    "id bigint, day date, at timestamp, name string, price decimal(9,2), raw binary, n int, "
    "flag boolean, f float, d double, s struct<a:int>, l array<int>, m map<string,int>"
)


def plan(**settings: object) -> TableSpec:
    given: dict[str, object] = {
        "primary_key": ["id"],
        "partition_by": [],
        "sort_by": [],
        "bucket_by": None,
        "options": {},
    }
    given |= settings
    return plan_table("shop.orders", schema_from_ddl(DDL), **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("key", ["id", "day", "at", "name", "price", "raw", "n"])
def test_every_plain_type_may_be_a_key(key: str) -> None:
    spec = plan(primary_key=[key])

    assert spec.key == (key,)
    assert spec.schema.find_field(key).required
    assert spec.keyed


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("flag", "two values"),
        ("f", "bits"),
        ("d", "bits"),
        ("s", "plain columns"),
        ("l", "plain columns"),
        ("m", "plain columns"),
    ],
)
def test_other_types_are_refused_as_keys_with_the_reason(key: str, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=rf"shop\.orders: {key} .*{reason}"):
        plan(primary_key=[key])


def test_a_uuid_key_is_refused_because_readers_disagree() -> None:
    schema = Schema(NestedField(1, "u", UUIDType(), required=True))

    with pytest.raises(InvalidRequest, match=r"u uuid.*store them as string"):
        plan_table(
            "shop.orders",
            schema,
            primary_key=["u"],
            partition_by=[],
            sort_by=[],
            bucket_by=None,
            options={},
        )


def test_names_are_found_without_case_and_unknown_ones_with_the_nearest() -> None:
    assert plan(primary_key=["ID", "`Day`"]).key == ("id", "day")
    with pytest.raises(InvalidRequest, match=r"no column 'nam'; did you mean name\?"):
        plan(primary_key=["nam"])
    with pytest.raises(InvalidRequest, match="twice in the primary key"):
        plan(primary_key=["id", "ID"])


def test_the_bucket_key_is_the_first_key_column_outside_the_partition() -> None:
    """KEY-01."""

    def bucket(**settings: object) -> str:
        spec = plan(**settings)
        assert spec.bucket_id is not None
        return spec.schema.find_field(spec.bucket_id).name

    assert bucket() == "id"
    assert bucket(primary_key=["day", "id"], partition_by=["day"]) == "id"
    assert bucket(primary_key=["day"], partition_by=["day"]) == "day"
    assert bucket(primary_key=["id", "name"], bucket_by="Name") == "name"
    with pytest.raises(InvalidRequest, match="bucket_by 'n' must be a primary key column"):
        plan(bucket_by="n")
    assert plan(primary_key=[]).bucket_id is None


@pytest.mark.parametrize(
    ("text", "name", "transform"),
    [
        ("name", "name", "identity"),
        ("`name`", "name", "identity"),
        ("day(at)", "at_day", "day"),
        ("Days( AT )", "at_day", "day"),
        ("hour(at)", "at_hour", "hour"),
        ("month(day)", "day_month", "month"),
        ("years(`at`)", "at_year", "year"),
        ("truncate(name, 3)", "name_trunc_3", "truncate[3]"),
        ("truncate(id,10)", "id_trunc_10", "truncate[10]"),
    ],
)
def test_partition_fields_are_columns_or_transforms(text: str, name: str, transform: str) -> None:
    (term,) = plan(partition_by=[text]).partition

    assert (term.name, str(term.transform)) == (name, transform)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("bucket(id, 4)", "buckets come from the primary key"),
        ("week(at)", "not understood"),
        ("truncate(name)", "not understood"),
        ("truncate(name, 0)", "not understood"),
        ("day(at, 3)", "not understood"),
        ("day(at", "not understood"),
        ("", "not understood"),
        ("day(name)", "name is string"),
        ("hour(day)", "day is date"),
        ("truncate(at, 3)", "at is timestamp"),
        ("f", "f is float"),
        ("s", "s is struct"),
        ("nope", "no column 'nope'"),
    ],
)
def test_partition_fields_that_cannot_work_are_refused(text: str, words: str) -> None:
    with pytest.raises(InvalidRequest, match=rf"(?s)shop\.orders.*{words}"):
        plan(partition_by=[text])


def test_a_partition_field_may_stand_once() -> None:
    with pytest.raises(InvalidRequest, match="name is given twice"):
        plan(partition_by=["name", "NAME"])
    assert len(plan(partition_by=["day(at)", "hour(at)"]).partition) == 2


def test_sort_columns_must_have_an_order() -> None:
    assert plan(sort_by=["AT", "name"]).sort == ("at", "name")
    for column in ("s", "l", "m"):
        with pytest.raises(InvalidRequest, match=f"cannot sort by {column}"):
            plan(sort_by=[column])


@pytest.mark.parametrize(
    "name", ["orders", "a.b.c", "a.", ".b", "a b.c", "a.b-c", "shop.orders__changes", ""]
)
def test_a_table_name_is_database_and_table(name: str) -> None:
    with pytest.raises(InvalidRequest, match="table name"):
        check_name(name)


def test_a_key_decides_the_partition_when_it_holds_all_its_columns() -> None:
    assert plan().key_decides_partition
    assert plan(primary_key=["id", "at"], partition_by=["day(at)"]).key_decides_partition
    assert not plan(partition_by=["day(at)"]).key_decides_partition


def test_the_spec_of_a_depth_ends_with_the_bucket_of_that_depth() -> None:
    spec = plan(partition_by=["day(at)"])

    terms = spec.spec_terms(8)

    assert [(term.name, str(term.transform)) for term in terms] == [
        ("at_day", "day"),
        ("id_bucket_8", "bucket[8]"),
    ]
    assert (
        plan(primary_key=[], partition_by=["name"]).spec_terms(8)
        == plan(primary_key=[], partition_by=["name"]).partition
    )


@pytest.mark.parametrize("column", ["day_month", "ID_BUCKET_4", "id_bucket_1024"])
def test_a_column_may_not_have_the_name_of_a_partition_field(column: str) -> None:
    """Iceberg refuses it, at the latest when the tree grows to that depth."""
    with pytest.raises(InvalidRequest, match=rf"shop\.orders: column {column} has the name"):
        plan_table(
            "shop.orders",
            schema_from_ddl(f"id bigint, day date, {column} int"),
            primary_key=["id"],
            partition_by=["month(day)", "day"],
            sort_by=[],
            bucket_by=None,
            options={},
        )
