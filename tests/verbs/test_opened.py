from __future__ import annotations

from arcticlake import Lake
from arcticlake.verbs.opened import hidden_schema, lookup_in
from tests.verbs.shop import keys, orders, rows


def test_every_look_is_at_the_last_commit(lake: Lake) -> None:
    table = orders(lake)
    opened = table._opened
    before = opened.state()

    done = table.upsert(rows([1]))

    assert before.view.version == 0
    assert opened.state().view.version == done.version
    assert opened.state(0).files.all == ()


def test_a_writer_finds_both_tables_with_one_schema(lake: Lake) -> None:
    table = orders(lake)
    pair = table._opened.pair()
    with pair.base.update_schema() as update:
        update.rename_column("status", "state")

    written = table._opened.pair_to_write()

    assert written.change is not None
    assert written.change.schema().find_field("state").field_id == 2


def test_a_look_up_carries_what_a_resolution_reads(lake: Lake) -> None:
    table = orders(lake)
    table.insert(rows([1]))
    table.delete(keys(1))
    state = table._opened.state()

    lookup = lookup_in(state)

    assert hidden_schema(state.pair).names == ["_action", "_order", "_seq"]
    assert lookup.key_schema.names == ["order_id"]
    assert lookup.live(state.files, ["status"]).height == 0
