"""What only pyiceberg can read: rows deleted by another engine, and conditions for Arrow.

Touches delete files of the base table.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc
from pyiceberg.expressions import BooleanExpression
from pyiceberg.expressions.visitors import bind
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import _read_deletes, expression_to_pyarrow
from pyiceberg.schema import Schema

from arcticlake.tree.files import FileEntry


def load_positions(io: FileIO, files: Iterable[FileEntry]) -> dict[str, npt.NDArray[np.int64]]:
    """Return the deleted row positions of every file that has some."""
    marked = [file for file in files if file.row_deletes]
    read: dict[str, dict[str, npt.NDArray[np.int64]]] = {}
    for delete in {d.file_path: d for file in marked for d in file.row_deletes}.values():
        read[delete.file_path] = {
            path: positions.to_numpy() for path, positions in _read_deletes(io, delete).items()
        }
    found = {}
    for file in marked:
        parts = [
            read[delete.file_path][file.path]
            for delete in file.row_deletes
            if file.path in read[delete.file_path]
        ]
        if parts:
            found[file.path] = np.unique(np.concatenate(parts))
    return found


def arrow_condition(condition: BooleanExpression, schema: Schema) -> pc.Expression:
    """Return a condition in the form that filters Arrow batches of a schema."""
    return expression_to_pyarrow(bind(schema, condition, case_sensitive=False))
