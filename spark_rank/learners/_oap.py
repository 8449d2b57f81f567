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


class Scratch(NamedTuple):
    """Room for what is known of n members in a round."""

    scores: FloatArray  # n
    predicted: IntArray  # n: ranks
    shown: IntArray  # n: 1 for those that see the example
    moving: IntArray  # n: members that see it and err, as many as there are
    totals: IntArray  # k−1: sums of the members' thresholds
    step_bits: IntArray  # T: the bits of the steps


def oap_pass(X: FloatArray, ranks: IntArray, task: Task, sums: RoundSums) -> int:
    """Run the members of `task` over the rows of `X`, in O(n (d + k)) a round.

    Returns the first round at which the bound is not finite, or ``OK``.
    """
    predicted, shown, moving = np.empty((3, len(task.keys)), dtype=np.int64)
    totals = task.thresholds.sum(axis=0).astype(np.int64)
    scores, step_bits = np.empty(len(predicted)), sums.steps.view(np.int64)
    room = Scratch(scores, predicted, shown, moving, totals, step_bits)
    return int(member_rounds(X, ranks, task, sums, room))


# Without numba's counting of references, which makes calls and locks memory for every row that is
# looked at in a loop with branches, and took as long as all the rest (numba's issue 2350). It can
# be done without where nothing is allocated; a kernel that allocates does not compile then.
@njit(cache=True, nogil=True, _nrt=False)  # type: ignore[call-overload]
def member_rounds(
    X: FloatArray, ranks: IntArray, task: Task, sums: RoundSums, room: Scratch
) -> int:
    """Do what `oap_pass` says."""
    keys, coef, thresholds, cumulative = task.keys, task.coef, task.thresholds, task.cumulative
    predicted, shown, moving, totals = room.predicted, room.shown, room.moving, room.totals
    unbounded = write_steps(X, task, sums.steps, room.step_bits)
    if unbounded != OK:
        return unbounded
    for t in range(X.shape[0]):
        x, word = X[t], mix(np.uint64(task.n_rounds + t))
        predict(x, coef, thresholds, room.scores, predicted)
        sums.scores[t] = sum_scores(room.scores, 1.0 / sums.steps[t])
        sums.ranks[t], sums.votes[t], sums.voted_ranks[t] = sum_ranks(predicted, task.correct)
        for r in range(totals.shape[0]):
            sums.thresholds[t, r] = totals[r]
        draw(keys, word, cumulative[0], shown, task.presented)
        n_moving = list_moving(shown, predicted, ranks[t], task.correct, moving)
        for i in range(n_moving):
            j = moving[i]
            most = count(uniform(mix(keys[j] ^ word)), cumulative)
            add_row(-1, thresholds[j], totals)
            task.updates[j] += move(x, ranks[t], coef[j], thresholds[j], most)
            add_row(1, thresholds[j], totals)
    return OK


@inlined
def write_steps(X: FloatArray, task: Task, steps: FloatArray, bits: IntArray) -> int:
    """Write the step of every round's sum of scores, the same in every task; extend the bounds.

    A pass of its own, for a member waits for none of this. Returns like `oap_pass`.
    """
    n_thresholds, most = task.thresholds.shape[1], len(task.cumulative)
    for t in range(X.shape[0]):
        square = dot(X[t], X[t])
        steps[t] = task.n_members * (math.sqrt(task.energy[0]) * math.sqrt(square))
        if not np.isfinite(steps[t]):
            return t
        # a power of two by the bits of its exponent: the bound is below 2^(field − 1022). A bound
        # of 0 counts as one below 1: the least step would let a row overflow that is too small
        # to be squared
        field = bits[t] >> 52 if steps[t] > 0.0 else 1022
        bits[t] = max(field - 1022 - SUM_BITS, SMALLEST_STEP) + 1023 << 52
        extend_bounds(X[t], square, n_thresholds, most, task.energy, task.column_sums)
    return OK


@inlined
def extend_bounds(
    x: FloatArray,
    square: float,
    n_thresholds: int,
    most: int,
    energy: FloatArray,
    column_sums: FloatArray,
) -> None:
    """Add what the example can add to any member when presented at `most` so often."""
    energy[0] += most * (n_thresholds**2 * square + n_thresholds)
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
def add_row(factor: int, thresholds: FloatArray, totals: IntArray) -> None:
    """Do ``totals += factor · thresholds``, which are whole numbers."""
    for r in range(totals.shape[0]):
        totals[r] += factor * int(thresholds[r])


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
