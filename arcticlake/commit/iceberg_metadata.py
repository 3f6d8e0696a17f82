"""Old metadata files: each commit writes a new one, and the oldest is nobody's any more.

pyiceberg removes them in its own commit path, which Arctic does not take; the rule is the same:
the table property `write.metadata.delete-after-commit.enabled`, and only files that the metadata
before the commit listed and the one after it no longer does.

Touches metadata files, after a commit that is known to have landed.
"""

from __future__ import annotations

from pyiceberg.catalog import Catalog
from pyiceberg.table import Table


def forget_old_metadata(before: Table, after: Table) -> None:
    """Remove metadata files that have fallen off the end of the table's log."""
    Catalog._delete_old_metadata(after.io, before.metadata, after.metadata)  # noqa: SLF001
