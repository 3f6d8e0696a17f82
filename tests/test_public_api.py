"""The names that users type are a contract: added to freely, renamed never."""

from __future__ import annotations

import inspect
import pickle

import pytest

import arcticlake
from arcticlake import errors
from arcticlake.ingest.iceberg import Committed
from arcticlake.lake import Lake, Table

LAKE = {
    "open": ["warehouse", "catalog=", "spark="],
    "create_table": [
        *("name", "schema", "primary_key=", "partition_by=", "sort_by=", "bucket_by="),
        *("options=", "if_not_exists="),
    ],
    "table": ["name"],
    "tables": [],
    "drop_table": ["name", "purge="],
    "sql": ["text"],
}
READ = ["mode=", "version=", "timestamp=", "tag=", "columns=", "where=", "metadata="]
CHANGES = ["since", "until", "mode", "columns=", "where=", "difference="]
TABLE = {
    "upsert": ["df", "order_by=", "delete_when=", "locate="],
    "stream_upsert": [
        *("stream_df", "checkpoint=", "trigger=", "order_by=", "delete_when=", "locate="),
        "query_name=",
    ],
    "apply_changes": ["df", "format=", "order_by=", "action=", "time_unit=", "locate="],
    "stream_changes": [
        *("stream_df", "format=", "checkpoint=", "trigger=", "order_by=", "action="),
        *("time_unit=", "locate=", "query_name="),
    ],
    "delete": ["keys"],
    "insert": ["df"],
    "overwrite": ["df", "where=", "change_version="],
    "plan_compaction": ["kind", "where=", "to_version="],
    "compact": ["kind", "where=", "to_version="],
    "read": READ,
    "to_arrow": READ,
    "changes": CHANGES,
    "changes_to_arrow": CHANGES,
    "tree": [],
    "files": [],
    "history": [],
    "detail": [],
    "verify": ["deep="],
    "create_tag": ["name", "version"],
    "tags": [],
    "drop_tag": ["name"],
    "consumers": [],
    "drop_consumer": ["name"],
    "add_column": ["name", "kind"],
    "rename_column": ["name", "new_name"],
    "widen_column": ["name", "kind"],
    "drop_column": ["name"],
    "move_column": ["name", "after="],
    "set_options": ["options"],
}
PROPERTIES = {Lake: {"spark"}, Table: {"name"}}


def arguments_of(method: object) -> list[str]:
    """The arguments of a method; those that must be named end with `=`."""
    assert callable(method)
    return [
        name + ("=" if argument.kind is argument.KEYWORD_ONLY else "")
        for name, argument in inspect.signature(method).parameters.items()
        if name != "self"
    ]


def test_the_package_exports_few_names() -> None:
    assert arcticlake.__all__ == ["Lake", "Table", "__version__"]
    assert arcticlake.Lake is Lake
    assert arcticlake.Table is Table
    with pytest.raises(AttributeError, match="no attribute 'Lak'"):
        arcticlake.Lak  # noqa: B018 - the attribute is asked for


@pytest.mark.parametrize(("kind", "wanted"), [(Lake, LAKE), (Table, TABLE)])
def test_methods_keep_their_names_and_arguments(kind: type, wanted: dict[str, list[str]]) -> None:
    for name, arguments in wanted.items():
        assert arguments_of(getattr(kind, name))[: len(arguments)] == arguments, name


@pytest.mark.parametrize(("kind", "wanted"), [(Lake, LAKE), (Table, TABLE)])
def test_a_new_method_is_written_down_here(kind: type, wanted: dict[str, list[str]]) -> None:
    public = {name for name in vars(kind) if not name.startswith("_")}

    assert public == {*wanted, *PROPERTIES[kind]}


def test_every_public_name_has_a_docstring() -> None:
    for kind in (Lake, Table):
        missing = [
            name
            for name, member in vars(kind).items()
            if not name.startswith("_") and not inspect.getdoc(member)
        ]
        assert not missing, kind


def test_a_commit_tells_version_rows_and_files() -> None:
    assert list(Committed.__dataclass_fields__) == ["version", "rows", "files"]


def test_there_are_six_kinds_of_error_and_each_survives_a_pickle() -> None:
    kinds = errors.ArcticError.__subclasses__()

    assert {kind.__name__ for kind in kinds} == {
        *("InvalidRequest", "NotFound", "Conflict", "Unavailable", "CorruptData"),
        "InternalError",
    }
    for kind in kinds:
        copy = pickle.loads(pickle.dumps(kind("what happened")))
        assert (type(copy), copy.message) == (kind, "what happened")
