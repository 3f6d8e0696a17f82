"""The two Iceberg tables of one Arctic table: create, load, drop.

The base table is the truth: it alone decides whether a table exists, and its properties hold the
keys by field id. The change table is made first and dropped last, so a crash in between leaves
nothing but a change table without a base, which the next creation replaces.

Touches the catalog.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.sorting import NullOrder, SortDirection, SortField, SortOrder
from pyiceberg.table.update import (
    AddSchemaUpdate,
    AssertTableUUID,
    SetCurrentSchemaUpdate,
)
from pyiceberg.transforms import IdentityTransform, parse_transform
from sqlalchemy.engine import URL
from sqlalchemy.exc import SQLAlchemyError

from arcticlake.errors import CorruptData, InvalidRequest, NotFound, Unavailable
from arcticlake.table.hidden import change_schema
from arcticlake.table.options import options_of_properties, options_to_properties, parse_options
from arcticlake.table.spec import CHANGE_SUFFIX, PartitionTerm, TableSpec, check_name
from arcticlake.table.storage import Storage, scheme_of, storage_of

ROLE, MANAGED, FORMAT_VERSION = "arctic.role", "arctic.managed", "arctic.format-version"
PRIMARY_KEY, BUCKET_KEY, SORT_KEY = "arctic.primary-key", "arctic.bucket-key", "arctic.sort-key"
PARTITION = "arctic.partition"
FORMAT_NOW = 1

CATALOG_NAME = "arctic"
CATALOG_FILE = "catalog.db"
_SQLITE_WAIT_SECONDS = 30


@dataclass(frozen=True, slots=True)
class TablePair:
    """Both Iceberg tables as loaded at one moment: base first, change second."""

    spec: TableSpec
    base: Table
    change: Table | None
    storage: Storage

    def schema(self, schema_id: int | None) -> Schema:
        """Return the base schema of an id; the present one without."""
        if schema_id is None:
            return self.spec.schema
        return self.base.schemas()[schema_id]


def open_catalog(warehouse: str | None, catalog: str | Mapping[str, str] | None) -> Catalog:
    """Return the catalog in a folder, a configured one by name, or one from its properties."""
    if (warehouse is None) == (catalog is None):
        message = "open a lake with a folder, or with catalog=...; one of the two"
        raise InvalidRequest(message)
    try:
        if warehouse is not None:
            return _folder_catalog(warehouse)
        if isinstance(catalog, str):
            return load_catalog(catalog)
        properties = dict(catalog or {})
        return load_catalog(properties.pop("name", CATALOG_NAME), **properties)
    except (SQLAlchemyError, OSError) as error:
        message = f"the catalog cannot be opened: {error}; check its address and rights"
        raise Unavailable(message) from error
    except ValueError as error:
        message = f"catalog {catalog!r} is not known: {error}; see pyiceberg's configuration"
        raise InvalidRequest(message) from error


def _folder_catalog(warehouse: str) -> Catalog:
    if scheme_of(warehouse) != "file":
        message = (
            f"{warehouse} is not a folder; for a warehouse on an object store pass the catalog: "
            f"Lake.open(catalog={{'type': 'sql', 'uri': ..., 'warehouse': {warehouse!r}}})"
        )
        raise InvalidRequest(message)
    folder = Path(warehouse.removeprefix("file://")).expanduser().resolve()
    if folder.exists() and not folder.is_dir():
        message = f"warehouse {folder} is a file; name a folder"
        raise InvalidRequest(message)
    folder.mkdir(parents=True, exist_ok=True)
    # Built from parts, because a folder's name may hold any character, also ? and %.
    place = str(folder / CATALOG_FILE)
    uri = URL.create("sqlite", database=place, query={"timeout": str(_SQLITE_WAIT_SECONDS)})
    return SqlCatalog(CATALOG_NAME, uri=uri.render_as_string(), warehouse=str(folder))


def create_pair(
    catalog: Catalog, spec: TableSpec, written_options: Mapping[str, object]
) -> TablePair:
    """Create both tables; the base table last, because it is what exists."""
    namespace = spec.name.partition(".")[0]
    with suppress(NamespaceAlreadyExistsError):
        catalog.create_namespace(namespace)
    if spec.keyed:
        _create_change(catalog, spec)
    properties = {
        **_shared_properties(spec, "base"),
        **options_to_properties(written_options),
        PRIMARY_KEY: _ids(spec.key_ids),
        BUCKET_KEY: "" if spec.bucket_id is None else str(spec.bucket_id),
        SORT_KEY: _ids(spec.sort_ids),
        PARTITION: json.dumps(
            [[term.source_id, str(term.transform), term.name] for term in spec.partition]
        ),
    }
    order = SortOrder(
        *(
            SortField(
                source_id=field_id,
                transform=IdentityTransform(),
                direction=SortDirection.ASC,
                null_order=NullOrder.NULLS_FIRST,
            )
            for field_id in spec.sort_ids
        )
    )
    try:
        base = catalog.create_table(
            spec.name,
            spec.schema,
            partition_spec=_partition_spec(spec),
            sort_order=order,
            properties=properties,
        )
    except TableAlreadyExistsError:
        message = f"table {spec.name} exists already; use if_not_exists=True or drop_table()"
        raise InvalidRequest(message) from None
    assert base.schema().as_struct() == spec.schema.as_struct(), "the catalog changed field ids"
    return load_pair(catalog, spec.name)


def _create_change(catalog: Catalog, spec: TableSpec) -> None:
    name = spec.name + CHANGE_SUFFIX
    if catalog.table_exists(spec.name):
        message = f"table {spec.name} exists already; use if_not_exists=True or drop_table()"
        raise InvalidRequest(message)
    if catalog.table_exists(name):
        catalog.drop_table(name)  # left behind by a creation that died before its base table
    # The catalog hands out field ids by position, so the business columns come first and alone:
    # they get the ids of the base table. The hidden columns follow with ids of their own.
    business = Schema(*change_schema(spec.schema, spec.key_ids).fields[: len(spec.columns)])
    created = catalog.create_table(
        name,
        business,
        partition_spec=_partition_spec(spec),
        properties=_shared_properties(spec, "change"),
    )
    _set_schema(created, change_schema(spec.schema, spec.key_ids))


def _set_schema(table: Table, schema: Schema) -> None:
    wanted = Schema(*schema.fields, schema_id=max(table.schemas()) + 1)
    table.catalog.commit_table(
        table,
        (AssertTableUUID(uuid=table.metadata.table_uuid),),
        (AddSchemaUpdate(schema=wanted), SetCurrentSchemaUpdate.model_validate({"schema-id": -1})),
    )


def sync_change_schema(pair: TablePair) -> TablePair:
    """Bring the change table's schema to that of base, which is the truth."""
    if pair.change is None:
        return pair
    wanted = change_schema(pair.spec.schema, pair.spec.key_ids)
    if pair.change.schema().as_struct() == wanted.as_struct():
        return pair
    # Somebody else may be faster with the same repair; otherwise the next writer does it.
    with suppress(CommitFailedException):
        _set_schema(pair.change, wanted)
    return load_pair(pair.base.catalog, pair.spec.name)


def _shared_properties(spec: TableSpec, role: str) -> dict[str, str]:
    exact = {*spec.key, *spec.sort}
    return {
        "format-version": "2",
        "write.parquet.compression-codec": "zstd",
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": "20",
        "write.delete.isolation-level": "snapshot",
        **{f"write.metadata.metrics.column.{column}": "full" for column in exact},
        ROLE: role,
        MANAGED: "true",
        FORMAT_VERSION: str(FORMAT_NOW),
    }


def _partition_spec(spec: TableSpec) -> PartitionSpec:
    terms = spec.spec_terms(spec.options.initial_nodes)
    fields = [
        PartitionField(
            source_id=term.source_id,
            field_id=PARTITION_FIELD_ID_START + number,
            transform=term.transform,
            name=term.name,
        )
        for number, term in enumerate(terms)
    ]
    return PartitionSpec(*fields)


def load_pair(catalog: Catalog, name: str) -> TablePair:
    """Load both tables, base first: that order is what makes the pair consistent."""
    check_name(name)
    try:
        base = catalog.load_table(name)
    except (NoSuchTableError, NoSuchNamespaceError):
        message = f"table {name} does not exist; see lake.tables() or create_table()"
        raise NotFound(message) from None
    except SQLAlchemyError as error:
        message = f"table {name}: the catalog does not answer: {error}; retry later"
        raise Unavailable(message) from error
    spec = _load_spec(name, base)
    change = None
    if spec.keyed:
        try:
            change = catalog.load_table(name + CHANGE_SUFFIX)
        except NoSuchTableError:
            message = f"table {name}: its change table {name}{CHANGE_SUFFIX} is gone; restore it"
            raise CorruptData(message) from None
    return TablePair(spec, base, change, storage_of(base.io.properties))


def _load_spec(name: str, base: Table) -> TableSpec:
    properties = base.properties
    if properties.get(ROLE) != "base":
        message = (
            f"{name} is a plain Iceberg table, not an Arctic table; read it with its own tools"
        )
        raise InvalidRequest(message)
    if int(properties.get(FORMAT_VERSION, "0")) > FORMAT_NOW:
        found = properties[FORMAT_VERSION]
        message = (
            f"table {name} has format version {found}, this Arctic knows {FORMAT_NOW}; upgrade"
        )
        raise InvalidRequest(message)
    bucket = properties.get(BUCKET_KEY, "")
    terms = [
        PartitionTerm(source_id, parse_transform(transform), term_name)
        for source_id, transform, term_name in json.loads(properties.get(PARTITION, "[]"))
    ]
    return TableSpec(
        name=name,
        schema=base.schema(),
        key_ids=_parse_ids(properties.get(PRIMARY_KEY, "")),
        bucket_id=int(bucket) if bucket else None,
        partition=tuple(terms),
        sort_ids=_parse_ids(properties.get(SORT_KEY, "")),
        options=parse_options(options_of_properties(properties), table=name),
    )


def _ids(ids: tuple[int, ...]) -> str:
    return ",".join(str(field_id) for field_id in ids)


def _parse_ids(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part)


def table_names(catalog: Catalog) -> list[str]:
    """Return the names of all Arctic tables of a catalog."""
    names = [
        ".".join(identifier)
        for namespace in catalog.list_namespaces()
        for identifier in catalog.list_tables(namespace)
    ]
    mine = [name for name in names if name.count(".") == 1 and not name.endswith(CHANGE_SUFFIX)]
    return sorted(name for name in mine if is_ours(catalog, name))


def is_ours(catalog: Catalog, name: str) -> bool:
    """Whether a name is an Arctic table of this catalog."""
    try:
        return catalog.load_table(name).properties.get(ROLE) == "base"
    except (NoSuchTableError, NoSuchNamespaceError):
        return False


def drop_pair(catalog: Catalog, name: str, *, purge: bool) -> None:
    """Drop both tables; with `purge` their files are deleted too."""
    pair = load_pair(catalog, name)
    drop = catalog.purge_table if purge else catalog.drop_table
    drop(name)
    if pair.change is not None:
        drop(name + CHANGE_SUFFIX)
