from __future__ import annotations

import pytest
from pyiceberg.catalog import Catalog

from arcticlake.errors import Conflict, InvalidRequest
from arcticlake.table.iceberg import TablePair, load_pair
from arcticlake.table.iceberg_evolve import (
    METRICS_PROPERTY,
    add_column,
    drop_column,
    move_column,
    rename_column,
    set_options,
    widen_column,
)
from arcticlake.table.types import spark_type_name
from tests.table.test_iceberg import NAME, create


@pytest.fixture
def pair(catalog: Catalog) -> TablePair:
    return create(catalog)


def again(pair: TablePair) -> TablePair:
    return load_pair(pair.base.catalog, NAME)


def columns(pair: TablePair) -> list[tuple[int, str, str]]:
    loaded = again(pair)
    assert loaded.change is not None
    found = [(f.field_id, f.name, spark_type_name(f.field_type)) for f in loaded.spec.schema.fields]
    change = [(f.field_id, f.name) for f in loaded.change.schema().fields[:-4]]
    assert change == [(number, name) for number, name, _ in found], "the change table fell behind"
    return found


def test_a_new_column_gets_a_new_id_that_no_column_had_before(pair: TablePair) -> None:
    """SNP-06: ids are never used twice."""
    add_column(pair, "note", "string")
    (first,) = [number for number, name, _ in columns(pair) if name == "note"]
    drop_column(again(pair), "note")
    add_column(again(pair), "Note", "string comment 'second'")

    (second,) = [number for number, name, _ in columns(pair) if name == "Note"]
    assert second > first


def test_names_stay_unique_without_case(pair: TablePair) -> None:
    for name in ("id", "ID", "s.A"):
        with pytest.raises(InvalidRequest, match=rf"shop\.orders: column {name} exists already"):
            add_column(pair, name, "int")
    with pytest.raises(InvalidRequest, match=r"shop\.orders: column ID exists already"):
        rename_column(pair, "day", "ID")
    with pytest.raises(InvalidRequest, match=r"shop\.orders: column s\.A exists already"):
        rename_column(pair, "s.b", "A")
    rename_column(pair, "day", "Day")

    assert "Day" in again(pair).spec.columns


def test_names_of_partition_fields_are_refused(pair: TablePair) -> None:
    for name in ("day_month", "id_bucket_64"):
        with pytest.raises(InvalidRequest, match=f"{name} has the name of a partition field"):
            add_column(pair, name, "int")
        with pytest.raises(InvalidRequest, match=f"{name} has the name of a partition field"):
            rename_column(pair, "m", name)


def test_names_of_hidden_columns_are_refused(pair: TablePair) -> None:
    with pytest.raises(InvalidRequest, match="_action"):
        add_column(pair, "_action", "int")
    with pytest.raises(InvalidRequest, match="_version"):
        rename_column(pair, "day", "_version")


def test_a_new_column_is_never_required_and_its_type_must_be_known(pair: TablePair) -> None:
    with pytest.raises(InvalidRequest, match="cannot be NOT NULL"):
        add_column(pair, "x", "int not null")
    with pytest.raises(InvalidRequest, match="interval"):
        add_column(pair, "x", "interval year")


def test_a_rename_keeps_the_id_and_moves_the_exact_bounds(pair: TablePair) -> None:
    rename_column(pair, "ID", "order no")

    loaded = again(pair)
    assert loaded.spec.key == ("order no",)
    for table in (loaded.base, loaded.change):
        assert table is not None
        exact = {
            p.removeprefix(METRICS_PROPERTY) for p in table.properties if METRICS_PROPERTY in p
        }
        assert exact == {"order no", "day"}
    assert columns(pair)[0][:2] == (1, "order no")


def test_a_rename_takes_the_last_part_of_a_name_only(pair: TablePair) -> None:
    with pytest.raises(InvalidRequest, match="last part only"):
        rename_column(pair, "s.a", "s.c")
    rename_column(pair, "s.a", "c")

    assert again(pair).spec.schema.find_field("s.c").field_id == (
        pair.spec.schema.find_field("s.a").field_id
    )


def test_a_column_widens_and_never_narrows(pair: TablePair) -> None:
    add_column(pair, "n", "int")
    widen_column(again(pair), "n", "bigint")

    assert columns(pair)[-1][2] == "bigint"
    for kind in ("int", "string", "decimal(20,0)"):
        with pytest.raises(InvalidRequest, match=r"shop\.orders.*not possible"):
            widen_column(again(pair), "n", kind)


@pytest.mark.parametrize(("column", "role"), [("id", "primary key"), ("day", "partition")])
def test_columns_of_the_layout_stay(pair: TablePair, column: str, role: str) -> None:
    with pytest.raises(InvalidRequest, match=f"{column} is a {role} column and cannot be dropped"):
        drop_column(pair, column)


def test_an_unknown_column_is_refused_with_the_nearest(pair: TablePair) -> None:
    for change in (drop_column, lambda p, n: rename_column(p, n, "x")):
        with pytest.raises(InvalidRequest, match=r"no column 'dya'; did you mean day\?"):
            change(pair, "dya")


def test_columns_move_to_the_front_or_behind_another(pair: TablePair) -> None:
    move_column(pair, "m", after=None)
    move_column(again(pair), "id", after="S")

    assert [name for _, name, _ in columns(pair)] == ["m", "s", "id", "day"]


def test_two_changes_at_once_are_a_conflict_for_the_second(pair: TablePair) -> None:
    stale = again(pair)
    add_column(pair, "first", "int")

    with pytest.raises(Conflict, match=r"shop\.orders.*retry"):
        add_column(stale, "second", "int")

    assert "second" not in again(pair).spec.columns


def test_options_change_but_not_the_first_shape_of_the_tree(pair: TablePair) -> None:
    set_options(pair, {"target-file-size": "1MB"})

    assert again(pair).spec.options.target_file_size == 2**20
    with pytest.raises(InvalidRequest, match="initial-nodes is fixed"):
        set_options(pair, {"initial-nodes": 8})
    with pytest.raises(InvalidRequest, match="did you mean locate"):
        set_options(pair, {"lokate": "true"})
