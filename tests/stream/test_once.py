"""The query of a micro-batch is read from Spark's checkpoint."""

from __future__ import annotations

import pytest

from arcticlake.errors import InvalidRequest
from arcticlake.stream.once import Once, query_id


def test_the_id_of_a_checkpoint_names_the_query() -> None:
    assert query_id('{"id":"6a1c9f7e"}', "cp") == "6a1c9f7e"
    assert Once(query_id('{"id":"6a1c9f7e"}\n', "cp"), 0) == Once("6a1c9f7e", 0)


@pytest.mark.parametrize("text", ["", "{}", '{"id": 1}', '{"id": ""}', "[1]", "not json"])
def test_a_checkpoint_without_an_id_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidRequest, match="checkpoint cp/orders"):
        query_id(text, "cp/orders")
