from __future__ import annotations

import pytest

from arcticlake.errors import InvalidRequest
from arcticlake.table.options import (
    DECLARED,
    Options,
    options_of_properties,
    options_to_properties,
    parse_options,
    parse_size,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4096", 4096),
        ("1b", 1),
        ("1kb", 1024),
        ("128MB", 128 * 2**20),
        ("128 MiB", 128 * 2**20),
        ("1.5g", 3 * 2**29),
        (" 2TB ", 2**41),
    ],
)
def test_sizes_are_read_as_people_write_them(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "MB", "-1MB", "1XB", "1 2MB", "1e3"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match=r"db\.t: option target-file-size is .* it takes"):
        parse_options({"target-file-size": text}, table="db.t")


@pytest.mark.parametrize("count", ["0", "3", "-4", "131072", "four", "1.0", ""])
def test_a_node_count_is_a_power_of_two(count: str) -> None:
    with pytest.raises(InvalidRequest, match="power of two"):
        parse_options({"initial-nodes": count}, table="db.t")


@pytest.mark.parametrize(
    ("name", "value"),
    [("target-file-size", "0"), ("locate", "yes"), ("scan", "gpu"), ("initial-nodes", True)],
)
def test_a_value_of_another_kind_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(InvalidRequest, match=f"option {name} is"):
        parse_options({name: value}, table="db.t")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("target_file_size", "target-file-size"),
        ("Initial-Nodes", "initial-nodes"),
        ("leafcommitsize", "leaf-commit-size"),
    ],
)
def test_an_unknown_option_is_refused_with_the_nearest(typed: str, meant: str) -> None:
    with pytest.raises(InvalidRequest, match=f"did you mean {meant}"):
        parse_options({typed: "1"}, table="db.t")


def test_an_option_like_no_other_is_refused_with_all_names() -> None:
    with pytest.raises(InvalidRequest, match="known options: target-file-size, "):
        parse_options({"zzzzzz": "1"}, table="db.t")


def test_defaults_are_those_that_the_documentation_tells() -> None:
    """A declared default and its written form cannot drift apart."""
    assert parse_options({}, table="db.t") == Options()
    for name, declared in DECLARED.items():
        written = declared.metadata["written"]
        assert parse_options({name: written}, table="db.t") == Options()
        assert declared.metadata["sentence"].endswith(".")


def test_options_survive_as_table_properties() -> None:
    written: dict[str, object] = {"locate": True, "initial-nodes": 8, "target-file-size": "1MB"}

    kept = options_of_properties({**options_to_properties(written), "other": "x"})

    assert kept == {"locate": "true", "initial-nodes": "8", "target-file-size": "1MB"}
    assert parse_options(kept, table="db.t") == Options(
        locate=True, initial_nodes=8, target_file_size=2**20
    )
