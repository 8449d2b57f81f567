"""Blocks of rounds: cut where they end, wherever a sequence was cut before."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_rank.learners.perceptrons import blocks


@pytest.fixture(autouse=True, scope="module")
def blocks_of_ten() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK_ROUNDS", 10)
        yield


rounds = st.integers(0, 100)


@given(first=rounds, n=rounds, at_most=st.integers(1, 40))
def test_pieces_are_short_and_within_a_block(first: int, n: int, at_most: int) -> None:
    found = list(blocks.pieces(first, first + n, at_most))
    assert [t for start, stop in found for t in range(start, stop)] == [*range(first, first + n)]
    for start, stop in found:
        assert 0 < stop - start <= at_most
        assert start // 10 == (stop - 1) // 10 == blocks.block_of(start)
    for (start, stop), _ in pairwise(found):  # none is shorter than it must be
        assert stop - start == at_most or stop % 10 == 0


@given(first=rounds, n=rounds)
def test_blocks_begun_are_counted(first: int, n: int) -> None:
    begun = [t for t in range(first, first + n) if blocks.begins_block(t)]
    assert begun == [t for t in range(first, first + n) if t % 10 == 0]
    assert blocks.blocks_begun(first, first + n) == len([t for t in begun if t > 0])
