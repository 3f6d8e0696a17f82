"""Rows of a Parquet file that a user names.

Touches that file.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from arcticlake.errors import InvalidRequest


def read_parquet_rows(path: Path) -> pa.Table:
    """Return the rows in the types of the file."""
    try:
        return pq.read_table(path, partitioning=None)
    except pa.ArrowInvalid as error:
        message = f"file {path} cannot be read as Parquet: {error}"
        raise InvalidRequest(message) from error
