"""Compiled rounds of some members of an OAP ensemble, and sums over these members.

Sums over members are whole numbers, so adding them in any order and grouping gives the same bits.
Ranks, votes and thresholds are whole numbers already. A real number s is truncated to a whole
multiple of a step, a power of two that depends only on the examples: with bound B ≥ |s| and N
members the step is the smallest with ``N·B ≤ 2^61 · step``.

B comes from the convergence proof (Crammer and Singer 2001, theorem 2): every presentation adds
at most ``(k−1)²‖x‖² + (k−1)`` to ‖(w, b)‖², for any earlier examples. The sum of that over the
sequence is the *energy* E, and ``|w_i| ≤ √E``. The error of the mean of N members is less than a
step, ``2^-60 N √E``, which for N ≤ 128 is below the rounding error of a single float of the
bound's size. It is 0 if all s are multiples of the step, as with half-integer features.

Scores are not summed: they follow from the moves of the thresholds (`replay`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from spark_rank.compiled import njit
from spark_rank.learners.base import FloatArray
from spark_rank.learners.compiled.dot import dot
from spark_rank.learners.perceptrons.draws import Words, mix, uniform
from spark_rank.learners.perceptrons.replay import Moves
from spark_rank.learners.perceptrons.rounds import (
    OK,
    IntArray,
    add_multiple,
    inlined,
    move_thresholds,
)
from spark_rank.rank_rule import predicted_rank

SUM_BITS = 61  # the remaining two of an int64 are a margin for rounding in the bound
SMALLEST_STEP = -1000  # its exponent; 2^1000 is still far from overflow


class Task(NamedTuple):
    """The input of a pass over a sequence for n of the N members, updated in place."""

    keys: Words  # n: see member_draws
    cumulative: FloatArray  # distribution of the number of presentations
    n_members: int  # N
    n_rounds: int  # before this pass
    coef: FloatArray  # n×d
    thresholds: FloatArray  # n×(k−1)
    correct: IntArray  # n: presented rounds ranked correctly
    presented: IntArray  # n: rounds in which the example was presented
    updates: IntArray  # n
    energy: FloatArray  # 1: bound of ‖(w, b)‖² for every member of the ensemble
    column_sums: FloatArray  # d: Σ_t |x_ti|


class RoundSums(NamedTuple):
    """Sums over members before each of T rounds, and in `moves` the changes of each round."""

    moves: Moves  # T×(k−1): what the round adds to Σ b_j, zero before the pass
    ranks: IntArray  # T: of h_j(x_t)
    votes: IntArray  # T: of v_j
    voted_ranks: IntArray  # T: of v_j h_j(x_t)

    def part(self, rounds: slice) -> RoundSums:
        """Return views of some rounds."""
        return RoundSums(
            self.moves[rounds], self.ranks[rounds], self.votes[rounds], self.voted_ranks[rounds]
        )


def oap_pass(X: FloatArray, ranks: IntArray, task: Task, sums: RoundSums) -> int:
    """Run the members of `task` over the rows of `X`, in O(n (d + k)) a round.

    Returns the first round at which the bound is not finite, or ``OK``.
    """
    return int(member_rounds(X, ranks, task, sums, np.empty(len(task.keys), dtype=np.int64)))


# Without numba's reference counting, which makes calls and locks memory for every row view in a
# loop with branches, and doubled the time (numba's issue 2350). Kernels that allocate nothing do
# not need it; a kernel that allocates would not compile.
@njit(cache=True, nogil=True, _nrt=False)  # type: ignore[call-overload]
def member_rounds(
    X: FloatArray, ranks: IntArray, task: Task, sums: RoundSums, moving: IntArray
) -> int:
    """Do the work of `oap_pass`; `moving` has room for a number per member."""
    coef, thresholds, cumulative = task.coef, task.thresholds, task.cumulative
    unbounded = extend_bounds(X, task)
    if unbounded != OK:
        return unbounded
    for t in range(X.shape[0]):
        x, word = X[t], mix(np.uint64(task.n_rounds + t))
        n_moving, sums.ranks[t], sums.votes[t], sums.voted_ranks[t] = predict_and_draw(
            x, ranks[t], word, task, moving
        )
        for i in range(n_moving):
            j = moving[i]
            most = count(uniform(mix(task.keys[j] ^ word)), cumulative)
            add_row(-1, thresholds[j], sums.moves[t])
            task.updates[j] += move(x, ranks[t], coef[j], thresholds[j], most)
            add_row(1, thresholds[j], sums.moves[t])
    return OK


@inlined
def extend_bounds(X: FloatArray, task: Task) -> int:
    """Add to the bounds the most that the examples can add to any member.

    This is a separate pass, because the members do not depend on it. Returns like `oap_pass`: with
    a finite bound no score overflows, nor the sum of all scores.
    """
    n_thresholds, most = task.thresholds.shape[1], len(task.cumulative)
    for t in range(X.shape[0]):
        square = dot(X[t], X[t])
        if not np.isfinite(task.n_members * (math.sqrt(task.energy[0]) * math.sqrt(square))):
            return t
        task.energy[0] += most * (n_thresholds**2 * square + n_thresholds)
        for i in range(X.shape[1]):
            task.column_sums[i] += abs(X[t, i])
    return OK


@inlined
def predict_and_draw(
    x: FloatArray, rank: int, word: np.uint64, task: Task, moving: IntArray
) -> tuple[int, int, int, int]:
    """Rank the example by every member, draw the members that see it, and count correct ranks.

    Lists in `moving` the members that see it and err; returns their number, and the sums of h_j,
    v_j and v_j h_j. There are no branches, because draws are unpredictable and mispredicted
    branches would cost more than the rest of a round. It is one loop, because the end of a loop is
    mispredicted too.
    """
    n_moving, rank_sum, vote_sum, voted_rank_sum = 0, 0, 0, 0
    for j in range(task.keys.shape[0]):
        predicted = predicted_rank(dot(task.coef[j], x), task.thresholds[j])
        votes = task.correct[j]
        rank_sum += predicted
        vote_sum += votes
        voted_rank_sum += votes * predicted
        shown = int(uniform(mix(task.keys[j] ^ word)) >= task.cumulative[0])
        right = int(predicted == rank)
        task.presented[j] += shown
        task.correct[j] = votes + shown * right
        moving[n_moving] = j
        n_moving += shown * (1 - right)
    return n_moving, rank_sum, vote_sum, voted_rank_sum


@inlined
def add_row(factor: int, thresholds: FloatArray, moves: Moves) -> None:
    """Do ``moves += factor · thresholds``, which are whole numbers."""
    for r in range(moves.shape[0]):
        moves[r] += factor * int(thresholds[r])


@inlined
def count(draw: float, cumulative: FloatArray) -> int:
    """Return how often the example is presented: the number of entries up to `draw`."""
    times = 0
    while times < cumulative.shape[0] and draw >= cumulative[times]:
        times += 1
    return times


@inlined
def move(x: FloatArray, rank: int, coef: FloatArray, thresholds: FloatArray, most: int) -> int:
    """Present the example to an erring member until it is right, or `most` times.

    Presenting it further would change nothing. Returns the number of moves.
    """
    for times in range(most):
        score = dot(coef, x)
        if predicted_rank(score, thresholds) == rank:
            return times
        add_multiple(float(move_thresholds(score, rank, thresholds)), x, coef)
    return most
