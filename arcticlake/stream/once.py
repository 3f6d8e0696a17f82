"""Which query a micro-batch belongs to: the id that Spark keeps in the checkpoint.

Spark writes `<checkpoint>/metadata` before the first batch, one line of JSON with the id of the
query. A restart finds the same id there; a new checkpoint has a new one, and then every batch
counts as new. `Once` of that id and the batch's number is what a commit is recognised by.

Pure.
"""

from __future__ import annotations

import json

from arcticlake.errors import InvalidRequest
from arcticlake.ingest.once import Once

__all__ = ["METADATA", "Once", "query_id"]

METADATA = "metadata"
"""The file of a checkpoint that names the query."""


def query_id(text: str, checkpoint: str) -> str:
    """Return the id of the query whose checkpoint has this metadata."""
    try:
        found = json.loads(text)["id"]
    except (ValueError, KeyError, TypeError):
        found = None
    if not isinstance(found, str) or not found:
        message = (
            f"checkpoint {checkpoint}: its file {METADATA!r} does not name the query "
            f"({text[:80]!r}); start with a new checkpoint"
        )
        raise InvalidRequest(message)
    return found
