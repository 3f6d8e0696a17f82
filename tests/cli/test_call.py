"""What stands before the verb, and small arguments."""

from __future__ import annotations

from pathlib import Path

import pytest

from arcticlake.cli.call import Call, is_missing_folder, names_of, pairs_of
from arcticlake.cli.output import Form, Screen
from arcticlake.errors import InvalidRequest, NotFound

SCREEN = Screen(Form.TEXT)


def test_a_lake_must_be_named_and_only_once() -> None:
    with pytest.raises(InvalidRequest, match="which lake"):
        Call(None, None, SCREEN).lake()
    with pytest.raises(InvalidRequest, match="exclude each other"):
        Call("folder", "prod", SCREEN).lake()


def test_only_creation_makes_a_missing_folder(tmp_path: Path) -> None:
    call = Call(str(tmp_path / "lake"), None, SCREEN)

    with pytest.raises(NotFound, match="does not exist"):
        call.lake()
    assert not (tmp_path / "lake").exists()
    assert call.lake(make=True).tables() == []


def test_an_object_store_is_not_taken_for_a_missing_folder() -> None:
    assert not is_missing_folder("s3://bucket/lake")


def test_names_come_one_by_one_or_with_commas_outside_of_brackets() -> None:
    assert names_of(["a, b", "truncate(c, 4),day(d)"]) == ["a", "b", "truncate(c, 4)", "day(d)"]
    assert names_of(None) == []


def test_pairs_are_cut_at_the_first_equals_sign() -> None:
    assert pairs_of(["a = b=c"], what="option") == {"a": "b=c"}
    with pytest.raises(InvalidRequest, match="name=value"):
        pairs_of(["a"], what="option")
