"""Draws which member of an ensemble sees which example, as a function and not as a stream.

``B(seed, problem, member, round)`` depends only on its four arguments, so a member's draws do not
depend on the task that trains it, nor on the other members of the task.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spark_rank.compiled import njit
from spark_rank.learners.base import FloatArray
from spark_rank.learners.perceptrons.rounds import IntArray

Words = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_27, _30, _31, _11 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(11)
_EXP_MINUS_1 = 0.36787944117144233  # a literal, because math libraries may differ in the last bit


def _mix(word: Any) -> Any:
    """Return the finaliser of splitmix64 of ``word + golden ratio`` (Steele et al. 2014)."""
    word = word + _GOLDEN
    word = (word ^ (word >> _30)) * _FIRST
    word = (word ^ (word >> _27)) * _SECOND
    return word ^ (word >> _31)


mix = njit(cache=True, nogil=True, inline="always")(_mix)


def _uniform(word: Any) -> Any:
    """Return the top 53 bits as a number in [0, 1), exactly."""
    return (word >> _11) * 2.0**-53


uniform = njit(cache=True, nogil=True, inline="always")(_uniform)


def member_keys(seed: int, problem: int, members: ArrayLike) -> Words:
    """Return a 64-bit key per member; the integers count modulo 2^64, in O(members).

    Each argument is hashed and folded into the hash of those before it:
    ``key ← mix(key ⊕ mix(argument))``; the round is folded in last, in the same way.
    """
    key = np.zeros(1, dtype=np.uint64)
    for argument in (seed % 2**64, problem % 2**64, members):
        key = _mix(key ^ _mix(_words(argument)))
    return key


def cumulative_counts(sampling: str, tau: float) -> FloatArray:
    """Return the distribution function F(0), F(1), … of the number of presentations, below 1.

    ``bernoulli``: 1 with probability τ, else 0. ``poisson``: the mean is 1 (Oza's online
    bagging). A count is the number of entries that are at most the uniform draw.
    """
    if sampling == "bernoulli":
        return np.array([1.0 - tau])
    terms = accumulate(range(1, 20), lambda term, q: term / q, initial=_EXP_MINUS_1)
    cumulative = np.array(list(accumulate(terms)))
    return cumulative[cumulative < 1.0 - 2.0**-53]


def presentations(keys: Words, rounds: ArrayLike, cumulative: FloatArray) -> IntArray:
    """Return how often each member (row) is shown the example of each round (column).

    This is plain NumPy for what the compiled ensemble computes; rounds count from 0.
    """
    draws = _uniform(_mix(keys[:, None] ^ _mix(_words(rounds))))
    return np.searchsorted(cumulative, draws, side="right").astype(np.int64)


def _words(values: ArrayLike) -> Words:
    return np.atleast_1d(np.asarray(values)).astype(np.uint64)
