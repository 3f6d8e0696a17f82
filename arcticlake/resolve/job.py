"""ResolveJob: the files of one group whose rows may hide one another, as a value that pickles.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from arcticlake.resolve.kernel import NEWEST, Keep
from arcticlake.table.storage import Storage


@dataclass(frozen=True, slots=True)
class FileToResolve:
    """One file of a resolution."""

    path: str
    sequence: int
    after: int = 0
    """Rows of a change file up to this sequence are merged already."""
    until: int = NEWEST
    """Rows of a change file above this sequence are not wanted."""
    positions: npt.NDArray[np.int64] | None = None
    """Rows that another engine deleted by position."""


@dataclass(frozen=True, slots=True)
class ResolveJob:
    """One group of files whose rows may hide one another; pickles to executors."""

    storage: Storage
    key_schema: pa.Schema
    """Key columns with field ids."""
    hidden_schema: pa.Schema
    """`_action`, `_order` and `_seq` with field ids."""
    bases: tuple[FileToResolve, ...]
    changes: tuple[FileToResolve, ...]
    keep: Keep = Keep.LIVE
    parts: int = 1
    """Shares of the keys that are resolved one after the other, where all do not fit memory."""
