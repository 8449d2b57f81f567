"""Compiled replay of an OAP ensemble's mean rule, from the moves of its members' thresholds.

A presentation moves a member by ``w += (Σ_r τ_r) x`` and ``b_r −= τ_r`` (PRank, fig. 1). So the sum
of all weights moves at round t by a_t x_t, where −a_t is the total move of the sums of the
thresholds. The examples and the moves of the thresholds thus determine the scores, in the time of a
single member, and no scores need to be summed over members or sent.

Sums of thresholds are whole numbers. The sum of weights is taken at the beginning of every block
from sums that do not depend on an order (`members`). From there to the block's end it is rounded
like a member's own weights: 2^16 roundings of 2^-53 are less than 2^-37 of the weights' bound, and
0 with half-integer features.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spark_rank.compiled import njit
from spark_rank.learners.base import FloatArray
from spark_rank.learners.compiled.dot import dot
from spark_rank.learners.perceptrons.rounds import OK, IntArray, add_multiple, inlined

Moves = NDArray[np.int32]


class RuleSum(NamedTuple):
    """The sum of the rules of all members: Σ w_j, and Σ b_j, which are whole numbers."""

    coef: FloatArray  # d
    thresholds: IntArray  # k−1


# without numba's counting of references, see `member_rounds`
@njit(cache=True, nogil=True, _nrt=False)  # type: ignore[call-overload]
def replay_pass(X: FloatArray, moves: Moves, rule: RuleSum, ranks: IntArray) -> int:
    """Write the rank predicted at each of T rounds within a block, in O(d + k) a round.

    `rule` is updated in place and contains sums, not means. Returns the first round whose score is
    not finite, or ``OK``.
    """
    for t in range(X.shape[0]):
        score = dot(rule.coef, X[t])
        if not np.isfinite(score):
            return t
        ranks[t] = rank_of_sums(score, rule.thresholds)
        gained = add_moves(moves[t], rule.thresholds)
        if gained != 0:
            add_multiple(-float(gained), X[t], rule.coef)
    return OK


@inlined
def rank_of_sums(score: float, thresholds: IntArray) -> int:
    """Return 1 + the number of thresholds up to `score`."""
    rank = 1
    for r in range(thresholds.shape[0]):
        rank += int(score >= thresholds[r])
    return rank


@inlined
def add_moves(moves: Moves, thresholds: IntArray) -> int:
    """Do ``thresholds += moves`` and return the sum of the moves."""
    gained = 0
    for r in range(thresholds.shape[0]):
        thresholds[r] += moves[r]
        gained += moves[r]
    return gained
