"""A reading stream while its table lives: compaction, splits, new columns, overwrites, moves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from arcticlake import Lake, Table
from arcticlake.errors import InvalidRequest
from tests.stream.drive import Query, copied, flat, told
from tests.verbs.shop import keys, orders, rows


@pytest.fixture
def table(lake: Lake) -> Table:
    return orders(lake)


@pytest.mark.parametrize("kind", ["minor", "major", "full"])
@pytest.mark.parametrize("limit", [{}, {"maxFilesPerTrigger": "1"}, {"maxRowsPerTrigger": "2"}])
def test_compaction_between_batches_changes_nothing(
    kind: str, limit: dict[str, str], lake: Lake, warehouse: Path
) -> None:
    """INC-15..18, INC-37: in the middle of the state and of a version, with a restart each time."""
    table = orders(lake, options={"initial-nodes": 4})
    table.insert(rows(range(20)))
    table.upsert(rows(range(0, 20, 2), "paid"))
    table.delete(keys(1, 2))
    query = Query(warehouse, **limit)
    found = query.batch() or []
    table.compact(kind)
    query.start()
    sent = table.upsert(rows(range(5), "sent")).version
    while (more := query.batch()) is not None:
        found += more
        table.compact(kind)
        query.start()
    late = table.upsert(rows([7], "late")).version
    table.compact(kind)
    query.start()
    found += flat(query.all())

    first = [("insert", 3, n, "new" if n % 2 else "paid") for n in range(20) if n not in {1, 2}]
    then = [("update_postimage", sent, n, "sent") for n in range(5)]
    assert told(found) == sorted([*first, *then, ("update_postimage", late, 7, "late")])


def test_a_batch_that_is_asked_for_again_is_the_same(lake: Lake, warehouse: Path) -> None:
    """INC-19: also the very first one, whose start says nothing, after commits and compaction."""
    table = orders(lake, options={"initial-nodes": 4})
    table.insert(rows(range(20)))
    table.upsert(rows(range(0, 20, 2), "paid"))
    query = Query(warehouse, maxFilesPerTrigger="2")
    starts, found, ends = [query.end], [query.batch()], [query.end]
    for _ in range(12):
        table.upsert(rows([3], "more"))
        table.compact("major")
        starts.append(query.end)
        found.append(query.batch())
        ends.append(query.end)
    query.start()
    for start, rows_of_batch, end in zip(starts, found, ends, strict=True):
        assert told(query.between(start, end)) == told(rows_of_batch or [])
    assert json.loads(query.offsets[0])["initial"] is True


def test_a_split_between_batches_changes_nothing(lake: Lake, warehouse: Path) -> None:
    """SPL-07, INC-37: leaves that split in the middle of the state and of a version."""
    table = orders(lake, options={"initial-nodes": 1, "leaf-size": "3KB"})
    table.upsert(rows(range(1000)))
    query = Query(warehouse, maxFilesPerTrigger="1", order="true")
    found = query.batch() or []
    splits = [*table.compact("auto").events]
    sent = table.upsert(rows(range(0, 1000, 3), "sent")).version
    found += query.batch() or []
    splits += table.compact("auto").events
    query.start()
    late = table.upsert(rows(range(5), "late")).version
    found += flat(query.all())

    assert any(event.startswith("split") for event in splits)
    assert len(table.tree().leaves) > 1
    assert told(found) == sorted(
        [
            *(("insert", 1, n, "new") for n in range(1000)),
            *(("update_postimage", sent, n, "sent") for n in range(0, 1000, 3)),
            *(("update_postimage", late, n, "late") for n in range(5)),
        ]
    )


def test_a_column_that_is_widened_asks_for_a_restart(table: Table, warehouse: Path) -> None:
    """Spark fixes the types of a query at its start, and no value is ever cut to fit them."""
    table.upsert(rows([1]))
    query = Query(warehouse)
    assert query.batch() is not None
    table.widen_column("qty", "bigint")
    table.upsert([{"order_id": 3, "status": "new", "amount": None, "qty": 2**40}])
    with pytest.raises(InvalidRequest, match=r"qty was int when.* is long now; restart"):
        query.all()
    query.start()
    assert [row["qty"] for row in flat(query.all())] == [2**40]


def test_a_new_column_shows_after_a_restart(table: Table, warehouse: Path) -> None:
    """A running query keeps its columns, by field id."""
    table.upsert(rows([1]))
    query = Query(warehouse)
    assert query.batch() is not None
    table.add_column("note", "string")
    table.rename_column("qty", "quantity")
    renamed = {"order_id": 2, "status": "new", "amount": None, "quantity": 5, "note": None}
    table.upsert([renamed])
    found = flat(query.all())
    assert "note" not in found[0]
    assert found[0]["qty"] == 5, "the same column under its old name"
    query.start()
    table.upsert([renamed | {"order_id": 3, "note": "hello"}])
    assert [row["note"] for row in flat(query.all())] == ["hello"]


def test_an_overwrite_is_told_and_its_rows_follow(table: Table, warehouse: Path) -> None:
    table.insert(rows([1, 2]))
    query = Query(warehouse)
    query.all()
    table.overwrite(rows([5]))
    found = flat(query.all())
    assert [(r["_change_type"], r["order_id"]) for r in found] == [
        ("overwrite", None),
        ("insert", 5),
    ]


def test_an_overwrite_with_changes_on_top_is_compared(table: Table, warehouse: Path) -> None:
    """BAT-04: one row could not tell which of the older changes came back."""
    table.insert(rows([1, 2, 3]))
    paid = table.upsert(rows([2], "paid")).version
    table.upsert(rows([3], "sent"))
    query = Query(warehouse)
    query.all()
    table.overwrite(rows([1, 2], "fresh"), change_version=paid)
    found = flat(query.all())

    state = {r["order_id"]: r["status"] for r in table.to_arrow().to_pylist()}
    copy: dict[object, object] = {1: "new", 2: "paid", 3: "sent"}
    for row in found:
        if row["_change_type"] == "delete":
            del copy[row["order_id"]]
        else:
            copy[row["order_id"]] = row["status"]
    assert copy == state == {1: "fresh", 2: "fresh", 3: "sent"}
    assert "overwrite" not in {row["_change_type"] for row in found}


def test_a_copy_in_the_order_of_changes_equals_the_table(lake: Lake, warehouse: Path) -> None:
    """`_change_order` alone decides, over batches that cut versions."""
    table = orders(lake, options={"initial-nodes": 2})
    table.insert(rows(range(6)))
    query = Query(warehouse, order="true", maxFilesPerTrigger="1")
    found = query.batch() or []
    log = [(1, "a", 3), (1, "b", 5), (1, "c", 4), (2, "x", 1), (2, "gone", 2)]
    rest = {"amount": None, "qty": None}
    changes = [{"order_id": n, "status": status, "at": at} | rest for n, status, at in log]
    table.upsert(changes, order_by="at", delete_when="status = 'gone'")
    table.upsert(rows([3], "later"))
    found += flat(query.all())

    numbers = [(row["order_id"], row["_change_order"]) for row in found]
    assert len(set(numbers)) == len(numbers), "no two changes of a key are equal"
    assert copied(found) == {r["order_id"]: r["status"] for r in table.to_arrow().to_pylist()}


def test_a_copy_follows_keys_that_change_their_partition(lake: Lake, warehouse: Path) -> None:
    """KUP-03: the delete in the old partition comes before the row in the new one."""
    table = orders(lake, partition_by=["status"], options={"initial-nodes": 1, "locate": True})
    table.upsert(rows([1, 2, 3]))
    query = Query(warehouse, order="true", maxFilesPerTrigger="1")
    found = query.batch() or []
    for status in ("paid", "new", "sent"):
        table.upsert(rows([1, 2], status))
    found += flat(query.all())

    assert copied(found) == {1: "sent", 2: "sent", 3: "new"}
