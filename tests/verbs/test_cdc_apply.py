"""Parsed changes on their way into a table, without Spark: places, truncates, repeated batches."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pyarrow as pa
import pytest

from arcticlake import Lake, Table
from arcticlake.commit.iceberg_state import load_state
from arcticlake.errors import InvalidRequest
from arcticlake.ingest.iceberg import Committed
from arcticlake.ingest.once import Once
from arcticlake.ingest.plan import changes_schema
from arcticlake.stream.cdc_format import ChangeRequest
from arcticlake.stream.cdc_plan import NOTES, PLACED, SPLIT, TRUNCATE
from arcticlake.stream.cdc_survey import survey_rows
from arcticlake.table.change import ACTION, ORDER, TS
from arcticlake.verbs.cdc_apply import Parsed, apply_parsed
from arcticlake.verbs.write import BATCH, Batch
from tests.stream.source import Change, Source, act

REQUEST = ChangeRequest("debezium-json")


def change(action: str, order: int, *row: object, **notes: object) -> dict[str, object]:
    values = dict(zip(("id", "day", "v"), row, strict=False))
    return {ACTION: action, ORDER: order, TS: 0, PLACED: True, SPLIT: False, **values, **notes}


def parsed(table: Table, *rows: dict[str, object]) -> Parsed:
    spec = table._opened.pair().spec
    columns = changes_schema(spec)
    optional = [column.with_nullable(True) for column in (*columns, *NOTES)]
    batch = pa.Table.from_pylist(list(rows), pa.schema(optional))
    return Parsed(spec.schema, survey_rows(batch), batch, None)


def apply(
    table: Table,
    *rows: dict[str, object],
    request: ChangeRequest = REQUEST,
    batch: Batch = BATCH,
) -> Committed | None:
    state = load_state(table._opened.pair_to_write())
    return apply_parsed(state, parsed(table, *rows), request, batch)


def make(lake: Lake, *partition_by: str) -> Table:
    return lake.create_table(
        "db.t", "id bigint, day string, v string", primary_key="id", partition_by=partition_by
    )


def found(table: Table) -> list[tuple[object, ...]]:
    return ordered(table.to_arrow().to_pylist())


def ordered(rows: Iterable[dict[str, object]]) -> list[tuple[object, ...]]:
    return sorted((tuple(row.values()) for row in rows), key=str)


def swap(*rows: tuple[int, str, str], start: int = 10) -> list[dict[str, object]]:
    """Exchange the keys of two rows, or of more in a ring, each keeping its values."""
    halves: list[dict[str, object]] = []
    for place, (number, day, v) in enumerate(rows):
        key = rows[(place + 1) % len(rows)][0]
        halves += [
            change("-D", start + 2 * place, number, day, v, **{SPLIT: True}),
            change("+U", start + 2 * place + 1, key, day, v, **{SPLIT: True}),
        ]
    return halves


def test_both_halves_of_a_move_are_in_one_commit(lake: Lake) -> None:
    """KUP-01, KUP-03: the key changes, then the partition."""
    table = make(lake, "day")
    apply(table, change("+I", 1, 1, "a", "x"))

    apply(
        table,
        change("-D", 2, 1, "a", "x", **{SPLIT: True}),
        change("+U", 3, 2, "a", "x"),
        change("-D", 4, 2, "a", "x", **{SPLIT: True}),
        change("+U", 5, 2, "b", "x"),
    )

    assert found(table) == [(2, "b", "x")]
    assert len(table.history()) == 2
    assert table.verify().ok


def test_keys_that_swap_in_one_batch_are_both_alive(lake: Lake) -> None:
    """KUP-02: the second delete means the row that was there before, not the one that came."""
    table = make(lake)
    apply(table, change("+I", 1, 1, "a", "one"), change("+I", 3, 2, "a", "two"))

    apply(table, *swap((1, "a", "one"), (2, "a", "two")))

    assert found(table) == [(1, "a", "two"), (2, "a", "one")]


def test_rows_that_look_the_same_swap_too(lake: Lake) -> None:
    """The messages of a change that is taken back are the same: only the table tells them apart."""
    table = make(lake)
    apply(table, *(change("+I", n, n, "a", "x") for n in (1, 2, 3)))

    apply(table, *swap((1, "a", "x"), (2, "a", "x")))
    assert found(table) == [(n, "a", "x") for n in (1, 2, 3)]
    apply(table, *swap((1, "a", "x"), (2, "a", "x"), (3, "a", "x")))
    assert found(table) == [(n, "a", "x") for n in (1, 2, 3)]
    twice = [*swap((1, "a", "x"), (2, "a", "x")), *swap((1, "a", "x"), (2, "a", "x"), start=20)]
    apply(table, *twice)
    assert found(table) == [(n, "a", "x") for n in (1, 2, 3)]

    apply(table, *swap((3, "a", "x"), (9, "a", "x")))
    assert found(table) == [(n, "a", "x") for n in (1, 2, 3)], "3 became 9 and 3 again"


def test_a_swap_over_partitions_with_look_ups_loses_nothing(lake: Lake) -> None:
    """KUP-03: split deletes say their own place; no look-up adds another one."""
    table = make(lake, "day")
    apply(table, change("+I", 1, 1, "a", "one"), change("+I", 3, 2, "b", "two"))
    located = ChangeRequest("debezium-json", locate=True)

    apply(table, *swap((1, "a", "one"), (2, "b", "two")), request=located)

    assert found(table) == [(1, "b", "two"), (2, "a", "one")]
    assert table.verify().ok


def test_a_key_that_goes_and_comes_back_without_its_partition(lake: Lake) -> None:
    """A before image of the key alone: the look-up gives the place before deletes are judged."""
    table = make(lake, "day")
    apply(table, change("+I", 1, 1, "a", "x"))
    there_and_back = [
        *swap((1, "a", "x"), (5, "a", "x")),
        *swap((1, "a", "x"), (9, "a", "x"), start=20)[:2],
    ]
    there_and_back[0] |= {"day": None, "v": None, PLACED: False}

    apply(table, *there_and_back, request=ChangeRequest("debezium-json", locate=True))

    assert found(table) == [(9, "a", "x")]
    assert table.verify().ok


def with_hidden_images(log: list[Change], chance: Random) -> list[dict[str, object]]:
    """Split a log as `cdc_plan` does, where some before images hold nothing but the key."""
    rows: list[dict[str, object]] = []
    for told in log:
        old, new = told.before, told.after
        if old is not None and chance.random() < 0.4:
            old = {"id": old["id"], "day": None, "v": None}
        known = old is not None and old["day"] is not None
        moved = bool(
            old and new and (old["id"] != new["id"] or (known and old["day"] != new["day"]))
        )
        if old and (told.op == "d" or moved):
            notes = {SPLIT: moved, PLACED: known}
            rows.append(change("-D", 2 * told.position, *old.values(), **notes))
        if new:
            action, notes = ("+I" if told.op == "c" else "+U"), {SPLIT: moved}
            notes[PLACED] = told.op == "c" or known
            rows.append(change(action, 2 * told.position + 1, *new.values(), **notes))
    return rows


@pytest.mark.parametrize("seed", range(8))
def test_looked_up_places_follow_the_source_through_swaps(lake: Lake, seed: int) -> None:
    """KUP-01..04 with `locate`: partitions and keys change, and images hide where rows were."""
    source, chance = Source(), Random(seed)
    table = make(lake, "day")
    for _ in range(3):
        for _ in range(chance.randrange(1, 20)):
            act(source, chance)
        rows = with_hidden_images(source.take(), chance)

        apply(table, *rows, request=ChangeRequest("debezium-json", locate=True))

        assert found(table) == ordered(source.rows.values())
    assert table.verify().ok


def test_a_replaced_delete_takes_no_other_key_with_it(lake: Lake) -> None:
    """Positions are unique for a key only: offsets repeat in every partition of a topic."""
    table = make(lake)
    first = [change("+I", n, n, "a", f"r{n}") for n in (1, 2, 7)]
    apply(table, *first)

    apply(
        table,
        *swap((1, "a", "r1"), (2, "a", "r2")),
        *swap((7, "a", "r7"), (8, "a", "r7"), start=12)[:2],
    )

    assert found(table) == [(1, "a", "r2"), (2, "a", "r1"), (8, "a", "r7")]


@pytest.mark.parametrize("partition_by", [(), ("day",)])
def test_a_truncate_empties_the_table_at_its_place(
    lake: Lake, partition_by: tuple[str, ...]
) -> None:
    table = make(lake, *partition_by)
    apply(table, *(change("+I", n, n, "abc"[n % 3], "old") for n in range(1, 9)))
    table.compact("major")

    apply(
        table,
        change("+I", 11, 20, "a", "before"),
        change(TRUNCATE, 13),
        change("+I", 15, 3, "b", "after"),
    )

    assert found(table) == [(3, "b", "after")]
    assert [entry.kind for entry in table.history()] == ["upsert", "major", "upsert"]
    assert table.verify().ok


def test_lost_places_are_looked_up_in_the_batch_and_in_the_table(lake: Lake) -> None:
    """KUP-03: a delete by key, an update to another partition, a delete of nothing."""
    table = make(lake, "day")
    apply(table, *(change("+I", n, n, "a", "old") for n in (1, 2, 3)))
    lost = {PLACED: False}

    apply(
        table,
        change("+U", 11, 1, "b", "moved", **lost),
        change("-D", 12, 2, **lost),
        change("+U", 15, 3, "c", "moved", **lost),
        change("-D", 16, 3, **lost),
        change("-D", 18, 9, **lost),
        request=ChangeRequest("debezium-json", locate=True),
    )

    assert found(table) == [(1, "b", "moved")]
    assert table.verify().ok
    assert not any("None" in str(file["partition"]) for file in table.files())


def test_a_batch_that_comes_again_changes_nothing(lake: Lake) -> None:
    table = make(lake)
    batch = Batch(Once("query", 7))
    rows = (change("+I", 1, 1, "a", "x"), change("+I", 3, 2, "a", "y"))

    first = apply(table, *rows, batch=batch)
    files = len(table.files())
    again = apply(table, *rows, batch=batch)

    assert first is not None and again is not None
    assert (again.version, again.files) == (first.version, 0)
    assert len(table.files()) == files


def test_two_changes_of_a_key_at_one_position_are_refused(lake: Lake) -> None:
    table = make(lake)

    with pytest.raises(InvalidRequest, match="their order is equal"):
        apply(table, change("+I", 1, 1, "a", "x"), change("+U", 1, 1, "a", "y"))
    assert table.history() == []
