from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from arcticlake.resolve.bitmap import mask_of, words_of


@given(dead=st.lists(st.booleans(), max_size=300))
def test_words_give_back_the_mask_and_bit_r_of_its_word_is_row_r(dead: list[bool]) -> None:
    words = words_of(np.array(dead, dtype=bool))

    assert words.dtype == np.int64
    assert len(words) == -(-len(dead) // 64)
    assert mask_of(words, len(dead)).tolist() == dead
    for row, is_dead in enumerate(dead):
        assert bool(int(words[row // 64]) >> (row % 64) & 1) == is_dead


def test_the_last_row_of_a_word_is_its_sign_bit() -> None:
    dead = np.zeros(64, dtype=bool)
    dead[63] = True

    assert words_of(dead).tolist() == [-(2**63)]
