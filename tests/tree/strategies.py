"""Random nodes and stand-in files for the tests of the tree."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from pyiceberg.manifest import DataFile

from arcticlake.tree.files import FileEntry, Role
from arcticlake.tree.node import Node


def nodes(depth_max: int = 6) -> SearchStrategy[Node]:
    return st.integers(0, depth_max).flatmap(
        lambda depth: st.builds(Node, st.just(2**depth - 1), st.integers(0, 2**depth - 1))
    )


def parse_node(text: str) -> Node:
    mask, _, index = text.partition("/")
    return Node(int(mask), int(index))


def file_in(
    node: Node,
    partition: tuple[object, ...] = (),
    *,
    role: Role = Role.BASE,
    path: str = "",
    keys: tuple[object, object] = (None, None),
    sequence: int = 1,
) -> FileEntry:
    """Describe a file of which only the place matters."""
    return FileEntry(
        path=path or f"{partition}-{node}-{role}",
        role=role,
        partition=partition,
        node=node,
        rows=1,
        bytes=10,
        key_lower=(keys[0],),
        key_upper=(keys[1],),
        sort_lower=(),
        sort_upper=(),
        snapshot_id=1,
        sequence=sequence,
        data_file=DataFile.from_args(),
    )
