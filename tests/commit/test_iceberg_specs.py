"""`ensure_spec` against a real catalog, with races."""

from __future__ import annotations

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform, IdentityTransform

from arcticlake.commit.iceberg import ensure_spec
from arcticlake.errors import Conflict
from tests.commit.lab import SCHEMA, FakeClock, Term, bucket


def test_ensure_spec_finds_a_spec_by_its_fields_and_adds_it_once(
    table: Table, catalog: SqlCatalog
) -> None:
    table, known = ensure_spec(table, bucket(4))
    assert known == 0
    table, deep = ensure_spec(table, bucket(8))
    same, again = ensure_spec(table, bucket(8))

    assert (deep, again) == (1, 1)
    assert same is table, "nothing to do, nothing loaded"
    assert table.metadata.default_spec_id == 0
    assert table.specs()[1].fields[0].field_id == 1001
    table, chosen = ensure_spec(table, bucket(8), make_default=True)
    assert (chosen, catalog.load_table("db.t").metadata.default_spec_id) == (1, 1)
    table, fresh = ensure_spec(table, bucket(16), make_default=True)
    assert (fresh, table.metadata.default_spec_id) == (2, 2)


def test_two_handles_that_add_specs_at_once_both_get_theirs(
    table: Table, catalog: SqlCatalog
) -> None:
    """Finding: the loser of this race fails in pyiceberg, with one of two errors."""
    one, other, same = table, catalog.load_table("db.t"), catalog.load_table("db.t")
    clock = FakeClock().clock

    one, eight = ensure_spec(one, bucket(8), clock=clock)
    other, sixteen = ensure_spec(other, bucket(16), clock=clock)
    same, eight_again = ensure_spec(same, bucket(8), clock=clock)

    assert (eight, sixteen, eight_again) == (1, 2, 1)
    ids = [spec.spec_id for spec in catalog.load_table("db.t").metadata.partition_specs]
    assert ids == [0, 1, 2]


def test_a_spec_of_known_fields_only_is_not_added_twice_by_a_race(
    table: Table, catalog: SqlCatalog
) -> None:
    """No new field id is given out, so Iceberg's own requirement would not notice."""
    table, _ = ensure_spec(table, (Term(2, IdentityTransform(), "name"),))
    both = (Term(2, IdentityTransform(), "name"), *bucket(4))
    other = catalog.load_table("db.t")

    _, first = ensure_spec(table, both)
    _, second = ensure_spec(other, both, clock=FakeClock().clock)

    assert first == second == 2
    specs = catalog.load_table("db.t").metadata.partition_specs
    assert [spec.spec_id for spec in specs] == [0, 1, 2]
    assert [field.field_id for field in specs[2].fields] == [1001, 1000]


def test_ensure_spec_refuses_a_table_that_was_replaced(table: Table, catalog: SqlCatalog) -> None:
    catalog.drop_table("db.t")
    catalog.create_table("db.t", SCHEMA)

    with pytest.raises(Conflict, match="replaced"):
        ensure_spec(table, (Term(1, BucketTransform(8), "x"),), clock=FakeClock().clock)
