"""Compiled rounds of an OAP ensemble: some of its members, and sums over them that add up.

Sums over members are whole numbers, so that adding them in any order and grouping gives the same
bits. Ranks, votes and thresholds are whole numbers already. A real number s is cut off to a
whole multiple of a step, a power of two that follows from the examples alone: with bound B ≥ |s|
and N members the step is the smallest with ``N·B ≤ 2^61 · step``.

B comes from the convergence proof (Crammer and Singer 2001, theorem 2): every presentation adds
at most ``(k−1)²‖x‖² + (k−1)`` to ‖(w, b)‖², whatever the member saw before. The sum of that over
the sequence is the *energy* E, and ``|w·x| ≤ √E ‖x‖``. The mean of N members is off by less than
a step, ``2^-60 N √E ‖x‖``, which for N ≤ 128 is below the rounding error of a single float of
the bound's size; and off by nothing if all s are multiples of the step, as with half-integer
features, whose scores are multiples of ¼.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from spark_rank.learners._dot import dot
from spark_rank.learners._online import (
    OK,
    IntArray,
    add_multiple,
    inlined,
    move_thresholds,
    predicted_rank,
)
from spark_rank.learners.base import FloatArray
from spark_rank.learners.member_draws import Words, mix, uniform

SUM_BITS = 61  # the remaining two of an int64 are a margin for rounding in the bound
SMALLEST_STEP = -1000  # its exponent; 2^1000 is still far from overflow


class Task(NamedTuple):
    """What a pass over a sequence needs, and moves, for n of the N members."""

    keys: Words  # n: see member_draws
    cumulative: FloatArray  # distribution of the number of presentations
    n_members: int  # N
    n_rounds: int  # before this pass
    coef: FloatArray  # n×d
    thresholds: FloatArray  # n×(k−1)
    correct: IntArray  # n: presented rounds ranked right
    presented: IntArray  # n: rounds in which the example was presented
    updates: IntArray  # n
    energy: FloatArray  # 1: bound of ‖(w, b)‖² for every member of the ensemble
    column_sums: FloatArray  # d: Σ_t |x_ti|


class RoundSums(NamedTuple):
    """Sums over members as they stand before each of T rounds."""

    scores: IntArray  # T: of w_j·x_t, in steps
    steps: FloatArray  # T
    thresholds: IntArray  # T×(k−1)
    ranks: IntArray  # T: of h_j(x_t)
    votes: IntArray  # T: of v_j
    voted_ranks: IntArray  # T: of v_j h_j(x_t)


@njit(cache=True, nogil=True)
def oap_pass(X: FloatArray, ranks: IntArray, task: Task, sums: RoundSums) -> int:
    """Run the members of `task` over the rows of `X`, in O(n (d + k)) a round.

    Returns the first round at which the bound is not finite, or ``OK``.
    """
    keys, coef, thresholds, cumulative = task.keys, task.coef, task.thresholds, task.cumulative
    correct, presented, updates = task.correct, task.presented, task.updates
    scores, predicted = np.empty(len(keys)), np.empty(len(keys), dtype=np.int64)
    shown, moving = np.empty_like(predicted), np.empty_like(predicted)
    for t in range(X.shape[0]):
        x, word = X[t], mix(np.uint64(task.n_rounds + t))
        step = score_step(x, task.n_members, task.energy[0])
        if not np.isfinite(step):
            return t
        predict(x, coef, thresholds, scores, predicted)
        sums.steps[t], sums.scores[t] = step, sum_scores(scores, 1.0 / step)
        sums.ranks[t], sums.votes[t], sums.voted_ranks[t] = sum_ranks(predicted, correct)
        sum_rows(thresholds, sums.thresholds[t])
        draw(keys, word, cumulative[0], shown, presented)
        n_moving = list_moving(shown, predicted, ranks[t], correct, moving)
        for i in range(n_moving):
            j = moving[i]
            most = count(uniform(mix(keys[j] ^ word)), cumulative)
            updates[j] += move(x, ranks[t], coef[j], thresholds[j], most)
        extend_bounds(x, thresholds.shape[1], len(cumulative), task.energy, task.column_sums)
    return OK


@inlined
def score_step(x: FloatArray, n_members: int, energy: float) -> float:
    """Return the step of score sums for the example `x`; it is the same in every task."""
    bound = n_members * (math.sqrt(energy) * math.sqrt(dot(x, x)))
    if not np.isfinite(bound):
        return np.inf
    return math.ldexp(1.0, max(math.frexp(bound)[1] - SUM_BITS, SMALLEST_STEP))


@inlined
def extend_bounds(
    x: FloatArray, n_thresholds: int, most: int, energy: FloatArray, column_sums: FloatArray
) -> None:
    """Add what the example can add to any member when presented at `most` so often."""
    energy[0] += most * (n_thresholds**2 * dot(x, x) + n_thresholds)
    for i in range(x.shape[0]):
        column_sums[i] += abs(x[i])


@inlined
def predict(
    x: FloatArray,
    coef: FloatArray,
    thresholds: FloatArray,
    scores: FloatArray,
    predicted: IntArray,
) -> None:
    """Write every member's score and predicted rank of `x`."""
    for j in range(coef.shape[0]):
        scores[j] = dot(coef[j], x)
        predicted[j] = predicted_rank(scores[j], thresholds[j])


@inlined
def sum_scores(scores: FloatArray, scale: float) -> int:
    """Return the sum of the scores, each cut off to a whole number of steps 1/scale."""
    total = 0
    for j in range(scores.shape[0]):
        total += int(scores[j] * scale)
    return total


@inlined
def sum_ranks(predicted: IntArray, votes: IntArray) -> tuple[int, int, int]:
    """Return the sums of h_j, v_j and v_j h_j."""
    rank_sum, vote_sum, voted_rank_sum = 0, 0, 0
    for j in range(predicted.shape[0]):
        rank_sum += predicted[j]
        vote_sum += votes[j]
        voted_rank_sum += votes[j] * predicted[j]
    return rank_sum, vote_sum, voted_rank_sum


@inlined
def sum_rows(thresholds: FloatArray, sums: IntArray) -> None:
    """Write the sums of the members' thresholds, which are whole numbers."""
    sums[:] = 0
    for j in range(thresholds.shape[0]):
        for r in range(thresholds.shape[1]):
            sums[r] += int(thresholds[j, r])


@inlined
def draw(keys: Words, word: np.uint64, absent: float, shown: IntArray, presented: IntArray) -> None:
    """Write 1 for the members that see the round hashed to `word`, else 0, and count it.

    `absent` is the probability of not seeing it.
    """
    for j in range(keys.shape[0]):
        shown[j] = int(uniform(mix(keys[j] ^ word)) >= absent)
        presented[j] += shown[j]


@inlined
def list_moving(
    shown: IntArray, predicted: IntArray, rank: int, correct: IntArray, moving: IntArray
) -> int:
    """List the members that see the example and err; count the others that see it as correct.

    Returns the length of the list. No branches: draws are unpredictable, and mispredicted
    branches would cost more than all else in a round.
    """
    n_moving = 0
    for j in range(shown.shape[0]):
        right = int(predicted[j] == rank)
        correct[j] += shown[j] * right
        moving[n_moving] = j
        n_moving += shown[j] * (1 - right)
    return n_moving


@inlined
def count(draw: float, cumulative: FloatArray) -> int:
    """Return how often the example is presented: the number of entries at most `draw`."""
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
