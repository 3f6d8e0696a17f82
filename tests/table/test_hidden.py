from __future__ import annotations

from arcticlake.table.change import HIDDEN_COLUMNS
from arcticlake.table.ddl import schema_from_ddl
from arcticlake.table.hidden import HIDDEN_ID_FIRST, change_schema


def test_the_change_schema_has_the_ids_of_base_and_requires_only_the_key() -> None:
    """KEY-04, KEY-25: one definition; a delete knows its key and nothing else."""
    base = schema_from_ddl("id bigint not null, v string not null comment 'x', s struct<a:int>")

    schema = change_schema(base, (1,))

    business, hidden = schema.fields[:3], schema.fields[3:]
    assert [f.field_id for f in business] == [f.field_id for f in base.fields]
    assert [f.field_type for f in business] == [f.field_type for f in base.fields]
    assert [f.required for f in business] == [True, False, False]
    assert business[1].doc == "x"
    assert [f.name for f in hidden] == list(HIDDEN_COLUMNS)
    assert [f.field_id for f in hidden] == [HIDDEN_ID_FIRST + n for n in range(4)]
    assert [f.required for f in hidden] == [True, True, True, False]
