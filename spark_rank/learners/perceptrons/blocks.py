"""Blocks of rounds, within which the sum of an ensemble's rules is replayed round by round.

Blocks have a fixed length and start at round 0 of a sequence, so results do not depend on how the
sequence was cut into parts. Longer blocks mean fewer sums to send; shorter blocks mean fewer
rounding errors to add up.
"""

from __future__ import annotations

from collections.abc import Iterator

BLOCK_ROUNDS = 2**16


def block_of(n_rounds: int) -> int:
    """Return the block of the round after `n_rounds` rounds."""
    return n_rounds // BLOCK_ROUNDS


def begins_block(n_rounds: int) -> bool:
    """Tell whether the next round begins a block."""
    return n_rounds % BLOCK_ROUNDS == 0


def blocks_begun(first: int, stop: int) -> int:
    """Return how many of the rounds first..stop−1 begin a block, not counting round 0."""
    return block_of(max(stop, 1) - 1) - block_of(max(first, 1) - 1)


def pieces(first: int, stop: int, at_most: int) -> Iterator[tuple[int, int]]:
    """Cut the rounds first..stop−1 at the ends of blocks and into pieces of `at_most` rounds."""
    while first < stop:
        end = min(first + at_most, stop, (block_of(first) + 1) * BLOCK_ROUNDS)
        yield first, end
        first = end
