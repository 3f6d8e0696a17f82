"""One dict for each live file: what `files()` shows.

Pure.
"""

from __future__ import annotations

from arcticlake.commit.history import View
from arcticlake.inspect.value import natural_bound, partition_labels, partition_order
from arcticlake.table.spec import TableSpec
from arcticlake.tree.files import FileEntry, Role, TableFiles


def list_files(spec: TableSpec, view: View, files: TableFiles) -> list[dict[str, object]]:
    """Return the live files of both tables, by partition, node and role.

    Bounds are in the Python types of their columns: the plain value for a key of one column, a
    tuple for several, None where the manifest has none. `version` is the commit that brought a
    change file, and the version shown for the rows of a base file (None while it has none).
    """
    ordered = sorted(
        files.all, key=lambda f: (partition_order(f.partition), f.node, f.role, f.sequence, f.path)
    )
    return [_describe(spec, view, file) for file in ordered]


def _describe(spec: TableSpec, view: View, file: FileEntry) -> dict[str, object]:
    change = file.role is Role.CHANGE
    return {
        "path": file.path,
        "role": str(file.role),
        "partition": partition_labels(spec, file.partition),
        "mask": file.node.mask,
        "index": file.node.index,
        "rows": file.rows,
        "bytes": file.bytes,
        "min_key": natural_bound(spec, spec.key_ids, file.key_lower),
        "max_key": natural_bound(spec, spec.key_ids, file.key_upper),
        "min_sort": natural_bound(spec, spec.sort_ids, file.sort_lower),
        "max_sort": natural_bound(spec, spec.sort_ids, file.sort_upper),
        "version": file.sequence if change else view.base_versions.get(file.snapshot_id),
    }
