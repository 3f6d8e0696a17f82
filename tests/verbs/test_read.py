"""Reads without Spark: modes, filters, versions, evolution, and what other readers see."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from arcticlake import Lake
from arcticlake.errors import CorruptData, InvalidRequest, NotFound
from arcticlake.lake import Table
from tests.verbs.shop import (
    NAME,
    base_of,
    change_of,
    data_files,
    keys,
    orders,
    partition_paths,
    rows,
    statuses,
)


def test_one_file_for_each_leaf_and_commit(lake: Lake) -> None:
    """RTI-13."""
    table = orders(lake)

    first = table.insert(rows(range(100)))
    second = table.upsert(rows(range(50, 150)))

    assert (first.files, second.files) == (4, 4)
    assert len(data_files(lake)) == 8


def test_a_leaf_over_its_size_is_split_in_its_commit_and_reads_right(lake: Lake) -> None:
    """SPL-09, RTI-14."""
    table = orders(lake, options={"leaf-commit-size": "4KB", "initial-nodes": 1})
    table.insert(rows(range(3000)))

    done = table.upsert(rows(range(1000, 4000), "upd"))
    table.upsert(rows([1500, 3999], "again"))

    assert done.files > 2
    specs = {task.file.spec_id for task in change_of(table).scan().plan_files()}
    assert len(specs) > 1
    expected = dict.fromkeys(range(1000), "new") | dict.fromkeys(range(1000, 4000), "upd")
    assert statuses(table) == expected | {1500: "again", 3999: "again"}
    assert statuses(table, where="order_id = 1500") == {1500: "again"}
    assert statuses(table, version=done.version) == expected


def test_a_full_base_file_is_followed_by_another_and_reads_right(lake: Lake) -> None:
    """SPL-05, SPL-06, SPL-07."""
    small = {"target-file-size": "4KB", "initial-nodes": 1}
    by_hash = orders(lake, options=small)
    by_range = lake.create_table(
        "shop.sorted", "id bigint, v string", primary_key="id", sort_by="v", options=small
    )

    by_hash.insert(rows(range(4000)))
    by_range.insert([{"id": n, "v": f"{7919 * n % 4000:09d}"} for n in range(4000)])

    assert len({task.file.spec_id for task in base_of(by_hash).scan().plan_files()}) > 1
    assert len(statuses(by_hash)) == 4000
    files = [
        pq.read_table(task.file.file_path)["v"].to_pylist()
        for task in base_of(by_range).scan().plan_files()
    ]
    assert len(files) > 2
    assert all(values == sorted(values) for values in files)
    ordered = sorted(files)
    assert [value for values in ordered for value in values] == sorted(
        value for values in files for value in values
    )


def test_the_manifest_knows_whole_keys_and_sort_values(lake: Lake) -> None:
    """IDX-04: bounds of key columns are not cut at 16 characters."""
    table = lake.create_table(
        NAME,
        "k string, s string, v string",
        primary_key="k",
        sort_by="s",
        options={"initial-nodes": 1},
    )
    long = "abcdefghijklmnopqrstuvwxyz" * 3
    table.insert([{"k": long + "1", "s": long, "v": long}, {"k": long + "9", "s": "a", "v": "b"}])
    table.upsert([{"k": long + "5", "s": long, "v": long}])

    state = table._opened.state()

    (base,), (change,) = state.files.bases, state.files.changes
    assert (base.key_lower, base.key_upper) == ((long + "1",), (long + "9",))
    assert (change.key_lower, change.key_upper) == ((long + "5",), (long + "5",))
    assert (base.sort_lower, base.sort_upper) == (("a",), (long,))
    value_id = base_of(table).schema().find_field("v").field_id
    assert len(base.data_file.upper_bounds[value_id]) <= 16


@pytest.mark.parametrize("value", ["\U0010ffff" * 20, "\ud7ff" * 20, "a" * 15 + "\ud7ff" * 5])
def test_long_text_at_the_ends_of_unicode_is_written_and_filtered(lake: Lake, value: str) -> None:
    table = lake.create_table(NAME, "k bigint, v string", primary_key="k")

    table.insert([{"k": 1, "v": value}, {"k": 2, "v": "a"}])
    table.upsert([{"k": 3, "v": value}])

    assert table.to_arrow(where=f"v = '{value}'").num_rows == 2


def test_every_mode_shows_what_it_says(lake: Lake) -> None:
    """MOR-01: merged; read-optimized; side by side."""
    table = orders(lake)
    first = table.insert(rows([1, 2, 3]))
    second = table.upsert(rows([2, 4], "upd"))
    third = table.delete(keys(3))

    assert statuses(table) == {1: "new", 2: "upd", 4: "upd"}
    assert statuses(table, mode="base") == {1: "new", 2: "new", 3: "new"}
    unmerged = table.to_arrow(mode="unmerged").to_pylist()
    found = {(r["order_id"], r["_action"], r["_version"]) for r in unmerged}
    assert found == {
        *((number, None, first.version) for number in (1, 2, 3)),
        (2, "+U", second.version),
        (4, "+U", second.version),
        (3, "-D", third.version),
    }
    versions = table.to_arrow(metadata=True).to_pylist()
    assert {r["order_id"]: r["_version"] for r in versions} == {
        1: first.version,
        2: second.version,
        4: second.version,
    }


def test_a_filter_never_revives_what_a_newer_version_hid(lake: Lake) -> None:
    """A change moves a row out of a filter: the older version inside it must stay hidden."""
    table = orders(lake, options={"initial-nodes": 1})
    table.insert(rows([1, 2, 3], "open", qty=1))
    table.upsert(rows([1], "done", qty=100))
    table.upsert(rows([4], "open", qty=1))
    table.delete(keys(3))

    assert statuses(table, where="qty < 50") == {2: "open", 4: "open"}
    assert statuses(table, where="status = 'open'") == {2: "open", 4: "open"}
    assert statuses(table, where="qty = 100 and order_id = 1") == {1: "done"}
    assert statuses(table, where="status is null") == {}


def test_a_filter_on_the_key_opens_only_files_of_its_node(lake: Lake) -> None:
    """IDX-11, IDX-12: one leaf of each table, by hash and by range."""
    table = orders(lake, options={"initial-nodes": 8})
    table.insert(rows(range(800)))
    table.upsert(rows(range(0, 800, 2), "upd"))
    kept = {
        task.file.file_path
        for one in (base_of(table), change_of(table))
        for task in one.scan(row_filter="order_id = 44").plan_files()
    }
    assert len(kept) == 2
    for path in data_files(lake):
        if str(path) not in kept:
            path.unlink()

    assert statuses(table, where="order_id = 44") == {44: "upd"}
    with pytest.raises(CorruptData, match=r"missing.*verify"):
        statuses(table)


def test_columns_may_be_chosen_and_a_filter_may_use_others(lake: Lake) -> None:
    table = orders(lake)
    table.insert(rows([1, 2], qty=3))

    found = table.to_arrow(columns=["STATUS", "order_id"], where="QTY = 3")

    assert found.column_names == ["status", "order_id"]
    assert found.num_rows == 2
    with pytest.raises(InvalidRequest, match=r"shop\.orders.*did you mean status"):
        table.to_arrow(columns=["statsu"])
    with pytest.raises(InvalidRequest, match="statsu"):
        table.to_arrow(where="statsu = 1")


def test_an_empty_table_has_columns_and_no_rows(lake: Lake) -> None:
    table = orders(lake)

    for mode in ("merged", "base"):
        assert table.to_arrow(mode=mode).column_names == ["order_id", "status", "amount", "qty"]
    assert table.to_arrow(mode="unmerged").num_rows == 0
    assert table.to_arrow(where="qty = 1", metadata=True).num_rows == 0
    assert table.to_arrow(version=0).num_rows == 0


def test_a_version_that_is_not_there_is_named_with_those_that_are(lake: Lake) -> None:
    table = orders(lake)

    with pytest.raises(NotFound, match=r"shop\.orders has no version 7.*no commits"):
        table.to_arrow(version=7)
    first, last = table.insert(rows([1])), table.upsert(rows([2]))

    with pytest.raises(NotFound, match=f"from {first.version} to {last.version}"):
        table.to_arrow(version=99)
    for wrong in (True, "1", 1.0):
        with pytest.raises(InvalidRequest, match="whole number"):
            table.to_arrow(version=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match="only one of version and timestamp"):
        table.to_arrow(version=1, timestamp="2026-01-01")
    with pytest.raises(InvalidRequest, match=r"mode 'odd'.*merged, base or unmerged"):
        table.to_arrow(mode="odd")


def test_a_moment_shows_the_newest_version_at_or_before_it(lake: Lake) -> None:
    """INC-08, INC-09."""
    table = orders(lake)
    table.insert(rows([1]))
    moment = datetime.now(UTC) + timedelta(milliseconds=2)
    while datetime.now(UTC) <= moment + timedelta(milliseconds=2):
        pass
    table.upsert(rows([2]))

    assert statuses(table, timestamp=moment).keys() == {1}
    assert statuses(table, timestamp=moment.isoformat()).keys() == {1}
    assert statuses(table, timestamp=datetime.now(UTC) + timedelta(days=1)).keys() == {1, 2}
    with pytest.raises(NotFound, match=r"shop\.orders.*before 2001"):
        statuses(table, timestamp="2001-01-01")
    with pytest.raises(InvalidRequest, match="ISO 8601"):
        statuses(table, timestamp="yesterday")


def test_columns_evolve_by_id_and_old_versions_keep_their_own(lake: Lake) -> None:
    """SNP-05, SNP-06."""
    table = orders(lake)
    first = table.insert(rows([1, 2], qty=5))
    table.add_column("note", "string")
    table.rename_column("status", "state")
    table.widen_column("qty", "bigint")
    second = table.upsert(
        [{"order_id": 2, "state": "upd", "amount": Decimal(1), "qty": 2**40, "note": "n"}]
    )
    table.drop_column("note")
    table.add_column("note", "string")
    table.move_column("note")

    now = table.to_arrow().sort_by("order_id").to_pylist()
    assert [list(row) for row in now] == [["note", "order_id", "state", "amount", "qty"]] * 2
    assert [(r["note"], r["state"], r["qty"]) for r in now] == [
        (None, "new", 5),
        (None, "upd", 2**40),
    ]
    then = table.to_arrow(version=second.version).sort_by("order_id").to_pylist()
    assert [r["note"] for r in then] == [None, "n"]
    assert statuses(table, version=first.version) == {1: "new", 2: "new"}
    assert table.to_arrow(version=first.version).schema.field("qty").type == pa.int32()
    assert table.to_arrow(where=f"qty = {2**40}").num_rows == 1
    assert table.to_arrow(where="qty < 100").num_rows == 1


def test_a_renamed_key_keeps_working(lake: Lake) -> None:
    table = lake.create_table(
        NAME, "k string, v int", primary_key="k", sort_by="k", options={"initial-nodes": 1}
    )
    long = "x" * 40
    table.insert([{"k": long + "a", "v": 1}])
    table.rename_column("k", "name")
    table.upsert([{"name": long + "a", "v": 2}, {"name": long + "b", "v": 3}])
    table.insert([{"name": long + "c", "v": 4}])
    table.delete(pa.table({"NAME": [long + "b"]}))

    found = {row["name"][-1]: row["v"] for row in table.to_arrow().to_pylist()}
    assert found == {"a": 2, "c": 4}
    assert table.to_arrow(where=f"name = '{long}a'").num_rows == 1
    newest = max(table._opened.state().files.changes, key=lambda file: file.sequence)
    assert newest.key_lower == (long + "b",)
    with pytest.raises(InvalidRequest, match=r"exists already"):
        table.insert([{"name": long + "a", "v": 9}])


def test_key_and_partition_columns_widen(lake: Lake) -> None:
    table = lake.create_table(
        NAME,
        "k int, p int, f float, v decimal(5,2)",
        primary_key=["k", "p"],
        partition_by=["p"],
        sort_by=["f"],
    )
    table.insert([{"k": n, "p": n % 2, "f": n / 2, "v": Decimal(n)} for n in range(20)])
    for column, kind in {"k": "bigint", "p": "bigint", "f": "double", "v": "decimal(20,2)"}.items():
        table.widen_column(column, kind)
    table.upsert([{"k": n, "p": n % 2, "f": 0.1, "v": Decimal(10**12)} for n in (3, 2**40)])

    assert table.to_arrow().num_rows == 21
    assert table.to_arrow(where="k = 3").to_pylist() == [
        {"k": 3, "p": 1, "f": 0.1, "v": Decimal("1000000000000.00")}
    ]
    assert table.to_arrow(where="k > 15 and p = 0 and f > 0.5").num_rows == 2
    assert table.to_arrow(where="f < 0.2").num_rows == 3
    assert table.to_arrow(where="v < 3").num_rows == 3


def test_fields_inside_structs_evolve_too(lake: Lake) -> None:
    table = lake.create_table(
        NAME, "id bigint, s struct<a:int,b:string>, l array<struct<x:int>>", primary_key="id"
    )
    first = table.insert([{"id": 1, "s": {"a": 1, "b": "x"}, "l": [{"x": 1}]}])
    table.add_column("s.c", "double")
    table.rename_column("s.b", "beta")
    table.widen_column("s.a", "bigint")
    table.drop_column("s.a")
    table.add_column("s.a", "string")
    table.upsert([{"id": 2, "s": {"beta": "y", "c": 0.5, "a": "new"}, "l": [{"x": 2}]}])

    found = {row["id"]: row["s"] for row in table.to_arrow().to_pylist()}
    assert found == {
        1: {"beta": "x", "c": None, "a": None},
        2: {"beta": "y", "c": 0.5, "a": "new"},
    }
    old = table.to_arrow(version=first.version).to_pylist()
    assert old == [{"id": 1, "s": {"a": 1, "b": "x"}, "l": [{"x": 1}]}]


def test_columns_that_hold_the_layout_cannot_be_dropped(lake: Lake) -> None:
    table = lake.create_table(
        NAME, "k int, p string, s int, v int", primary_key=["k", "p"], partition_by="p", sort_by="s"
    )

    for column, role in {"k": "primary key", "P": "primary key", "s": "sort key"}.items():
        with pytest.raises(InvalidRequest, match=rf"shop\.orders.*{role}.*cannot be dropped"):
            table.drop_column(column)
    table.drop_column("v")
    assert table.to_arrow().column_names == ["k", "p", "s"]


def check_other_readers(table: Table) -> None:
    """Compare both tables as plain pyiceberg and Polars read them with our own reads."""
    ours = {
        "base": table.to_arrow(mode="base"),
        "change": table.to_arrow(mode="unmerged").filter(pa.compute.field("_action").is_valid()),
    }
    for role, plain in (("base", base_of(table)), ("change", change_of(table))):
        wanted = ours[role]
        names = [name for name in wanted.column_names if name != "_version"]
        by_pyiceberg = plain.scan(selected_fields=tuple(names)).to_arrow().select(names)
        by_polars = pl.scan_iceberg(plain, reader_override="pyiceberg").select(names).collect()
        expected = sorted(map(repr, wanted.select(names).to_pylist()))
        assert sorted(map(repr, by_pyiceberg.to_pylist())) == expected
        assert sorted(map(repr, by_polars.to_dicts())) == expected


def test_plain_pyiceberg_and_polars_read_both_tables_the_same(lake: Lake) -> None:
    """Issue 3 point 10: open tables; also of mixed depth, after a rename, with odd partitions."""
    table = lake.create_table(
        NAME,
        "id bigint, day date, name string, l array<string>",
        primary_key=["id", "day"],
        partition_by=["day"],
        options={"initial-nodes": 2, "leaf-commit-size": "4KB", "target-file-size": "4KB"},
    )
    days = [datetime(2026, 1, 1 + n % 2).date() for n in range(1500)]  # noqa: DTZ001 - a date
    batch = [{"id": n, "day": days[n], "name": f"n{n}", "l": ["x", None]} for n in range(1500)]
    table.insert(batch[:1000])
    table.rename_column("name", "label")
    table.add_column("extra", "int")
    for row in batch:
        row["label"], row["extra"] = row.pop("name"), 7
    table.upsert(batch[500:])
    table.delete(pa.table({"id": [1, 2], "day": days[1:3]}))

    check_other_readers(table)
    assert len(table.to_arrow()) == 1498


def test_files_lie_where_the_partition_says(lake: Lake) -> None:
    """KEY-02: the same partition is the same directory in both tables."""
    table = lake.create_table(
        NAME, "id bigint, p string", primary_key=["id", "p"], partition_by="p"
    )
    table.insert([{"id": n, "p": f"p {n % 2}"} for n in range(20)])
    table.upsert([{"id": n, "p": f"p {n % 2}"} for n in range(20)])

    folders = {path.split("/data/")[1].split("/")[0] for path in partition_paths(table)}
    assert folders == {"p=p%200", "p=p%201"}
