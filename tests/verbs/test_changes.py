"""Pulling the changes between two versions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from arcticlake import Lake, Table
from arcticlake.errors import CorruptData, InvalidRequest, NotFound
from arcticlake.verbs.changes import ChangesRequest, plan_changes
from tests.commit.test_marks import expire
from tests.verbs.days import by_day, of_day
from tests.verbs.shop import NAME, base_of, data_files, keys, orders, rows

META = ["_change_type", "_commit_version", "_commit_timestamp"]
SHORT = {"update_postimage": "post", "update_preimage": "pre"}


@pytest.fixture
def table(lake: Lake) -> Table:
    return orders(lake)


def told(table: Table, *asked: object, **request: object) -> list[tuple[object, ...]]:
    """(key, status, type, version) of every row."""
    found = table.changes_to_arrow(*asked, **request).to_pylist()  # type: ignore[arg-type]
    return [
        (
            row["order_id"],
            row.get("status"),
            SHORT.get(row["_change_type"], row["_change_type"]),
            row["_commit_version"],
        )
        for row in found
    ]


def test_every_change_comes_in_order_with_its_commit(table: Table) -> None:
    """INC-10..12, INC-26: replayed in the order of the source."""
    source = rows([3, 1, 3, 2], "x").set_column(1, "status", pa.array(["a", "b", "c", "d"]))
    source = source.append_column("lsn", pa.array([30, 10, 5, 20]))
    first = table.upsert(source, order_by="lsn").version
    second = table.delete(keys(2, 1)).version

    assert told(table) == [
        (3, "c", "post", first),
        (1, "b", "post", first),
        (2, "d", "post", first),
        (3, "a", "post", first),
        (2, None, "delete", second),
        (1, None, "delete", second),
    ]
    assert told(table, first) == told(table, first, second) == told(table)[4:]
    assert told(table, 0, first) == told(table)[:4]
    assert told(table, mode="net") == [
        *((3, "a", "post", first), (1, None, "delete", second), (2, None, "delete", second))
    ]


def test_the_answer_has_business_columns_and_three_more(table: Table) -> None:
    before = datetime.now(UTC) - timedelta(seconds=2)
    table.upsert(rows([1]))

    found = table.changes_to_arrow()

    assert found.column_names == ["order_id", "status", "amount", "qty", *META]
    assert found.schema.field("_commit_timestamp").type == pa.timestamp("us", "UTC")
    assert before < found["_commit_timestamp"][0].as_py() <= datetime.now(UTC)
    assert table.changes_to_arrow(1, 1).schema == found.schema
    assert table.changes_to_arrow(1, 1).num_rows == 0


def test_a_table_without_commits_has_no_changes(table: Table) -> None:
    for mode in ("raw", "net", "base"):
        assert table.changes_to_arrow(mode=mode).num_rows == 0
    with pytest.raises(NotFound, match="no version 1 yet"):
        table.changes_to_arrow(until=1)


@pytest.mark.parametrize("kind", ["minor", "major", "full"])
def test_compaction_is_invisible_in_raw_and_net(table: Table, kind: str) -> None:
    table.insert(rows([1, 2]))
    table.upsert(rows([2, 3], "paid"))
    table.upsert(rows([3], "sent"))
    before = {mode: told(table, mode=mode) for mode in ("raw", "net")}

    table.compact(kind)
    table.compact("minor")

    assert {mode: told(table, mode=mode) for mode in ("raw", "net")} == before
    table.upsert(rows([9]))
    assert told(table)[:-1] == before["raw"]


def test_moments_stand_for_the_newest_version_at_or_before_them(table: Table) -> None:
    """INC-08, INC-09."""
    table.upsert(rows([1]))
    first = table.changes_to_arrow()["_commit_timestamp"][0].as_py()
    while datetime.now(UTC) - first < timedelta(milliseconds=5):
        pass
    table.upsert(rows([2]))

    assert [row[0] for row in told(table, first)] == [2]
    assert [row[0] for row in told(table, str(first))] == [2]
    assert [row[0] for row in told(table, None, first)] == [1]
    with pytest.raises(NotFound, match=r"shop\.orders has no version at or before 1999"):
        table.changes_to_arrow("1999-01-01T00:00:00Z")
    with pytest.raises(InvalidRequest, match="ISO 8601"):
        table.changes_to_arrow("yesterday")


def test_late_data_is_pulled_by_arrival(lake: Lake) -> None:
    """INC-35: rows of an old partition that come late."""
    table = by_day(lake)
    table.upsert(of_day("10:00", [1]))
    now = table.upsert(of_day("10:10", [2])).version
    table.upsert(of_day("09:00", [3]))

    assert table.changes_to_arrow(now)["day"].to_pylist() == ["09:00"]


def test_an_overwrite_is_told_by_one_row_and_its_new_rows(table: Table) -> None:
    table.upsert(rows([1, 2]))
    over = table.overwrite(rows([2, 3], "over")).version
    last = table.upsert(rows([3], "top")).version

    assert told(table, 1) == [
        (None, None, "overwrite", over),
        (2, "over", "insert", over),
        (3, "over", "insert", over),
        (3, "top", "post", last),
    ]
    assert told(table, 1, mode="net") == [
        *((None, None, "overwrite", over), (2, "over", "insert", over), (3, "top", "post", last))
    ]
    assert told(table, 1, over, difference=True) == [
        *((1, "new", "delete", over), (3, "over", "insert", over), (2, "over", "post", over))
    ]


def test_changes_that_stay_on_top_of_an_overwrite_are_not_lost(table: Table) -> None:
    """The frame stands for version 1; what came after it is still there, and was told already."""
    first = table.upsert(rows([1, 2])).version
    table.upsert(rows([2], "paid"))
    table.compact("major")
    over = table.overwrite(rows([1, 2], "over"), change_version=first).version

    assert told(table, over - 1) == [(1, "over", "post", over)]


def test_a_partition_that_is_overwritten_is_compared_alone(lake: Lake) -> None:
    table = by_day(lake)
    table.upsert(of_day("mon", [1, 2]))
    table.upsert(of_day("tue", [1, 2]))
    over = table.overwrite(of_day("mon", [2, 3]), where="day = 'mon'").version

    found = table.changes_to_arrow(over - 1, difference=True).to_pylist()

    assert [(row["day"], row["order_id"], row["_change_type"]) for row in found] == [
        *(("mon", 1, "delete"), ("mon", 3, "insert"))
    ]


def test_rows_that_another_engine_appends_are_inserts(table: Table) -> None:
    table.upsert(rows([1]))
    base = base_of(table)
    base.append(rows([7]).cast(base.schema().as_arrow()))
    assert [row[0] for row in told(table)] == [1]  # it gets its version from the next writer
    table.upsert(rows([2]))

    assert [(row[0], row[2]) for row in told(table)] == [*((1, "post"), (7, "insert"), (2, "post"))]


def test_what_another_engine_deletes_is_compared(table: Table) -> None:
    table.insert(rows([1, 2, 3]))
    base_of(table).delete("order_id = 2")
    last = table.upsert(rows([9])).version

    assert [(row[0], row[2]) for row in told(table, 1)] == [(2, "delete"), (9, "post")]
    assert [(row[0], row[2]) for row in told(table, 1, mode="net")] == [(2, "delete"), (9, "post")]
    assert told(table, last, mode="base") == []


def test_base_shows_what_changed_in_base_and_nothing_that_waits(table: Table) -> None:
    """INC-31."""
    first = table.insert(rows([1, 2])).version
    second = table.upsert(rows([2], "paid")).version
    assert told(table, first, mode="base") == []
    third = table.delete(keys(1)).version
    table.compact("major")

    assert told(table, first, third, "base") == [
        *((2, "paid", "post", second), (1, None, "delete", third))
    ]
    assert told(table, 0, first, "base") == [
        *((1, "new", "insert", first), (2, "new", "insert", first))
    ]
    last = table.upsert(rows([5])).version
    assert told(table, third, last, "base") == []


def test_a_key_that_moves_between_partitions_is_one_row(lake: Lake) -> None:
    table = lake.create_table(
        NAME,
        "order_id bigint, day string, status string",
        primary_key="order_id",
        partition_by="day",
        options={"locate": True},
    )
    first = table.upsert(of_day("mon", [1, 2])).version
    second = table.upsert(of_day("tue", [1], "moved")).version

    raw = table.changes_to_arrow(first).to_pylist()
    net = table.changes_to_arrow(mode="net").to_pylist()

    assert [(row["day"], row["_change_type"]) for row in raw] == [
        *(("mon", "delete"), ("tue", "update_postimage"))
    ]
    assert [(row["order_id"], row["day"], row["_commit_version"]) for row in net] == [
        *((2, "mon", first), (1, "tue", second))
    ]
    assert table.changes_to_arrow(mode="net", where="day = 'mon'").num_rows == 1
    assert table.changes_to_arrow(mode="net", where="status = 'new'").num_rows == 1


def test_columns_and_conditions_choose_rows(table: Table) -> None:
    first = table.upsert(rows([1, 2, 3])).version
    second = table.upsert(rows([2], "paid")).version

    assert table.changes_to_arrow(columns=["STATUS"]).column_names == ["status", *META]
    assert table.changes_to_arrow(columns=[]).column_names == META
    assert table.changes_to_arrow(columns=["_change_type", "qty"]).column_names == ["qty", *META]
    assert told(table, where="status = 'paid'") == [(2, "paid", "post", second)]
    assert told(table, where=f"_commit_version > {first} or order_id = 3") == [
        *((3, "new", "post", first), (2, "paid", "post", second))
    ]
    assert told(table, where="_change_type = 'delete'") == []
    assert told(table, mode="net", where="status = 'new'") == [
        *((1, "new", "post", first), (3, "new", "post", first))
    ]


def test_a_condition_on_values_passes_overwrites_by(table: Table) -> None:
    table.upsert(rows([1]))
    over = table.overwrite(rows([2], "over")).version

    assert told(table, where="status = 'new'")[1:] == [(None, None, "overwrite", over)]
    assert len(told(table, where="status = 'new' and _change_type <> 'overwrite'")) == 1
    assert told(table, where=f"_commit_version < {over}") == [(1, "new", "post", 1)]


def test_files_that_cannot_match_are_not_read(lake: Lake) -> None:
    """INC-20."""
    table = by_day(lake)
    table.upsert(of_day("mon", [1]))
    table.upsert(of_day("tue", [2], "paid"))

    def files(**request: object) -> tuple[int, int]:
        plan = plan_changes(table._opened, ChangesRequest(**request)).plan  # type: ignore[arg-type]
        return len(plan.files), sum(len(group.changes) for group in plan.groups)

    assert files() == (2, 0)
    assert files(where="day = 'tue'") == (1, 0)
    assert files(where="status = 'paid'") == (1, 0)
    assert files(mode="net") == (2, 2)
    assert files(mode="net", where="day = 'tue'") == (1, 1)
    assert files(mode="net", where="status = 'nobody'") == (0, 0)
    table.upsert(of_day("tue", [2], "sent"))
    assert files(mode="net", where="status = 'paid'") == (1, 2)
    assert table.changes_to_arrow(mode="net", where="status = 'paid'").num_rows == 0


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"columns": ["statu"]}, "no column 'statu'; did you mean status?"),
        ({"where": "statu = 1"}, "column statu does not exist; the nearest known one is status"),
        ({"mode": "all"}, "unknown mode 'all'"),
        ({"since": True}, "since must be a version"),
        ({"until": 1.5}, "until must be a version"),
        ({"since": 2, "until": 1}, "since 2 comes after until 1"),
        ({"where": "status ="}, "not valid SQL"),
    ],
)
def test_a_request_that_cannot_be_is_refused(
    table: Table, request_: dict[str, object], words: str
) -> None:
    table.upsert(rows([1]))
    table.upsert(rows([1]))

    with pytest.raises(InvalidRequest) as caught:
        table.changes_to_arrow(**request_)  # type: ignore[arg-type]
    assert words in caught.value.message


def test_columns_follow_the_present_schema(table: Table) -> None:
    """Matched by field id: renamed, widened, dropped and added columns."""
    table.upsert(rows([1], qty=5))
    table.rename_column("status", "state")
    table.widen_column("qty", "bigint")
    table.drop_column("amount")
    table.add_column("note", "string")

    found = table.changes_to_arrow()

    assert found.column_names == ["order_id", "state", "qty", "note", *META]
    row = found.to_pylist()[0]
    assert [row[name] for name in found.column_names[:-1]] == [
        *(1, "new", 5, None, "update_postimage", 1)
    ]


def test_an_expired_range_is_an_error_and_never_empty(lake: Lake, table: Table) -> None:
    """INC-36."""
    table.upsert(rows([1]))
    table.upsert(rows([2]))
    last = table.upsert(rows([3])).version
    expire(lake, f"{NAME}__changes")

    assert [row[0] for row in told(table, last - 1)] == [3]
    for mode in ("raw", "net", "base"):
        with pytest.raises(NotFound, match=f"{NAME}.*use since={last - 1}"):
            table.changes_to_arrow(0, mode=mode)


def test_a_batch_whose_files_have_expired_is_an_error(lake: Lake, table: Table) -> None:
    first = table.insert(rows([1])).version
    table.insert(rows([2]))
    expire(lake, NAME)

    with pytest.raises(NotFound, match=f"use since={first}"):
        table.changes_to_arrow()
    assert [row[0] for row in told(table, first)] == [2]


def test_a_file_that_is_missing_is_named(lake: Lake, table: Table) -> None:
    table.upsert(rows([1]))
    for path in data_files(lake):
        path.unlink()

    with pytest.raises(CorruptData, match="is missing"):
        table.changes_to_arrow()


def test_a_table_without_a_key_shows_the_rows_of_its_commits(lake: Lake) -> None:
    table = lake.create_table("a.log", "order_id bigint, status string")
    batch = rows([1, 1]).select(["order_id", "status"])
    first = table.insert(batch).version
    second = table.insert(batch).version
    table.compact("full")
    third = table.overwrite(batch.slice(1)).version

    for mode in ("raw", "net", "base"):
        assert [row[2:] for row in told(table, mode=mode)] == [
            *[("insert", first)] * 2,
            *[("insert", second)] * 2,
            *(("overwrite", third), ("insert", third)),
        ]
    with pytest.raises(InvalidRequest, match=r"a\.log has no primary key"):
        table.changes_to_arrow(difference=True)
