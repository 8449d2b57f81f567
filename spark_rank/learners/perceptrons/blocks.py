"""Blocks of rounds, within which the sum of an ensemble's rules is replayed round by round.

They are counted from round 0 of a sequence and of a fixed length, so that nothing depends on how
the sequence was cut. A longer block sends fewer sums, a shorter one lets fewer roundings add up.
"""

from __future__ import annotations

from collections.abc import Iterator

BLOCK_ROUNDS = 2**16


def block_of(n_rounds: int) -> int:
    """Return the block of the round before which there were `n_rounds`."""
    return n_rounds // BLOCK_ROUNDS


def begins_block(n_rounds: int) -> bool:
    """Tell whether the next round begins a block."""
    return n_rounds % BLOCK_ROUNDS == 0


def blocks_begun(first: int, stop: int) -> int:
    """Return how many of the rounds first..stop−1 begin a block, but the sequence's first."""
    return block_of(max(stop, 1) - 1) - block_of(max(first, 1) - 1)


def pieces(first: int, stop: int, at_most: int) -> Iterator[tuple[int, int]]:
    """Cut the rounds first..stop−1 at the ends of blocks, and into `at_most` rounds at a time."""
    while first < stop:
        end = min(first + at_most, stop, (block_of(first) + 1) * BLOCK_ROUNDS)
        yield first, end
        first = end
