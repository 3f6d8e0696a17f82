from __future__ import annotations

from datetime import date

import pyarrow as pa

from arcticlake import Lake, Table
from arcticlake.inspect.tree import draw_tree
from arcticlake.tree.files import Role, TableFiles
from arcticlake.tree.forest import plant
from arcticlake.tree.node import Node
from tests.inspect.lab import Place, entry, fact, orders, spec_of, view_of


def test_a_split_leaf_is_drawn_under_its_parent() -> None:
    spec = spec_of("id bigint")
    base = [
        entry("a", Place(Node(3, 0)), rows=1),
        entry("b", Place(Node(7, 0)), rows=2),
        entry("c", Place(Node(3, 3)), rows=3),
    ]
    files = TableFiles(
        tuple(base), (entry("d", Place(Node(7, 4), role=Role.CHANGE, sequence=2), rows=4),)
    )
    view = view_of(change=[fact(2, "upsert")])

    tree = draw_tree(spec, view, files, plant(files.all, 4))

    head, *lines = str(tree).splitlines()
    assert head.startswith("shop.orders  version 2 · 5 leaves · base 3 files 6 rows 600 B · ")
    assert head.endswith(" · changes 1 file 4 rows 400 B")
    assert lines == [
        "├── 3/0  base 1 file 1 row 100 B",
        "│   ├── 7/0  base 1 file 2 rows 200 B",
        "│   └── 7/4  changes 1 file 4 rows 400 B",
        "├── 3/1  empty",
        "├── 3/2  empty",
        "└── 3/3  base 1 file 3 rows 300 B",
    ]
    assert repr(tree) == str(tree)
    assert [(leaf.mask, leaf.index) for leaf in tree.leaves] == [
        (7, 0),
        (7, 4),
        (3, 1),
        (3, 2),
        (3, 3),
    ]


def test_leaves_that_were_split_hang_together_when_the_parent_is_empty() -> None:
    files = TableFiles((entry("a", Place(Node(7, 1))), entry("b", Place(Node(7, 5)))), ())

    tree = draw_tree(spec_of("id bigint"), view_of(), files, plant(files.all, 2))

    lines = [line.split("  ")[0] for line in str(tree).splitlines()[1:]]
    assert lines == ["├── 1/0", "├── 7/1", "├── 7/5", "└── 3/3"]


def test_changes_that_are_merged_do_not_count_as_backlog() -> None:
    spec = spec_of("id bigint")
    view = view_of(
        [fact(1, "major", arctic__merged_through="1")], [fact(1, "upsert"), fact(2, "upsert")]
    )
    changes = [entry(f"f{n}", Place(Node(0, 0), role=Role.CHANGE, sequence=n)) for n in (1, 2)]
    files = TableFiles((), tuple(changes))

    (leaf,) = draw_tree(spec, view, files, plant(files.all, 1)).leaves

    assert (leaf.base_files, leaf.change_files, leaf.rows, leaf.bytes) == (0, 1, 10, 1000)


def test_an_empty_table_shows_the_leaves_that_rows_will_go_to(table: Table) -> None:
    lines = str(table.tree()).splitlines()

    assert lines[0].startswith("shop.orders  version 0 · 2 leaves · base 0 files")
    assert lines[1:] == ["├── 1/0  empty", "└── 1/1  empty"]


def test_partitions_are_readable_and_each_has_its_tree(lake: Lake) -> None:
    """Readable partitions (KEY-02), one tree for each."""
    table = lake.create_table(
        "shop.visits",
        "id bigint, at timestamp, country string",
        primary_key=["id", "at", "country"],
        partition_by=["day(at)", "country"],
        options={"initial-nodes": 2},
    )
    at = [date(2026, 1, 2)] * 8 + [date(2026, 1, 1)] * 8
    table.upsert(
        pa.table(
            {
                "id": range(16),
                "at": pa.array(at, pa.date32()).cast(pa.timestamp("us")),
                "country": ["de"] * 12 + ["fr"] * 4,
            }
        )
    )

    tree = table.tree()
    lines = str(tree).splitlines()

    assert lines[1] == "├── at_day=2026-01-01, country=de"
    assert lines[2].startswith("│   ├── 1/0  changes 1 file ")
    assert lines[-3] == "└── at_day=2026-01-02, country=de"
    assert lines[-1].startswith("    └── 1/1  changes 1 file ")
    assert len(tree.leaves) == 6
    assert tree.leaves[0].partition == {"at_day": "2026-01-01", "country": "de"}
    assert sum(leaf.rows for leaf in tree.leaves) == 16


def test_a_table_without_a_key_is_one_root(lake: Lake) -> None:
    table = lake.create_table("shop.log", "status string")
    table.insert(orders([1, 2]).select(["status"]))

    (leaf,) = table.tree().leaves

    assert (leaf.mask, leaf.index, leaf.base_files, leaf.rows) == (0, 0, 1, 2)


def test_a_tree_becomes_html_and_json(table: Table) -> None:
    table.insert(orders([1]))
    tree = table.tree()

    assert tree._repr_html_().startswith("<pre>shop.orders")
    nodes = tree.to_dict()["nodes"]
    assert isinstance(nodes, list) and nodes[0]["base_rows"] + nodes[1]["base_rows"] == 1
