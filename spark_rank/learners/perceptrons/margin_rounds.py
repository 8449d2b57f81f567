"""Compiled rounds of some members of an ensemble that move by margins, and sums over these members.

Members count with length 1: the length of ROMMA's rule says nothing on noise. So a score is at most
‖x‖, a threshold at most 1, and their sums over N members are whole numbers of steps, powers of two
that depend only on N and the example. Adding them in any order and grouping gives the same bits.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from spark_rank.compiled import njit
from spark_rank.learners.base import FloatArray
from spark_rank.learners.compiled.dot import dot
from spark_rank.learners.perceptrons.draws import Words, mix, uniform
from spark_rank.learners.perceptrons.margins import MarginRule, errs, move_by_margin
from spark_rank.learners.perceptrons.rounds import OK, IntArray
from spark_rank.rank_rule import predicted_rank

SUM_BITS = 61  # the remaining two of an int64 are a margin for rounding
SMALLEST_STEP = -1000  # its exponent


class MarginTask(NamedTuple):
    """The input of a pass over a sequence for n of the N members, updated in place."""

    keys: Words  # n: see member_draws
    cumulative: FloatArray  # distribution of the number of presentations
    n_members: int  # N
    n_rounds: int  # before this pass
    coef: FloatArray  # n×d
    thresholds: FloatArray  # n×(k−1)
    units: FloatArray  # n×1: see `margins`
    lengths: FloatArray  # n: ‖(w, b)‖
    correct: IntArray  # n: presented rounds ranked correctly
    presented: IntArray  # n: rounds in which the example was presented
    updates: IntArray  # n


class MarginRounds(NamedTuple):
    """Sums over members before each of T rounds, of their rules with length 1, in steps."""

    scores: IntArray  # T: of w_j·x_t
    thresholds: IntArray  # T×(k−1): of the thresholds
    ranks: IntArray  # T: of h_j(x_t)
    votes: IntArray  # T: of v_j
    voted_ranks: IntArray  # T: of v_j h_j(x_t)


def margin_steps(n_members: int, bounds: FloatArray) -> FloatArray:
    """Return the steps of sums over N numbers up to `bounds`: the smallest powers of two that fit.

    With a step s, N times the bound is at most 2^61 s.
    """
    _, exponents = np.frexp(n_members * bounds)
    return np.ldexp(1.0, np.maximum(exponents - SUM_BITS, SMALLEST_STEP))


@njit(cache=True, nogil=True)
def margin_member_rounds(
    X: FloatArray, ranks: IntArray, update: int, C: float, steps: FloatArray, step: float,
    task: MarginTask, sums: MarginRounds,
) -> int:  # fmt: skip
    """Run the members of `task` over the rows of `X`, in O(n (d + k)) a round.

    `steps` are those of the scores of each round, `step` that of thresholds. Returns the first
    round at which a score is not finite, or ``OK``.
    """
    for t in range(X.shape[0]):
        word = mix(np.uint64(task.n_rounds + t))
        sums.scores[t] = sums.ranks[t] = sums.votes[t] = sums.voted_ranks[t] = 0
        sums.thresholds[t] = 0
        for j in range(task.keys.shape[0]):
            rule = MarginRule(task.coef[j], task.thresholds[j], task.units[j])
            score = dot(rule.coef, X[t])
            if not np.isfinite(score):
                return t
            predicted = predicted_rank(score, rule.thresholds)
            if task.lengths[j] > 0.0:
                sums.scores[t] += int(score / task.lengths[j] / steps[t])
                for r in range(rule.thresholds.shape[0]):
                    sums.thresholds[t, r] += int(rule.thresholds[r] / task.lengths[j] / step)
            sums.ranks[t] += predicted
            sums.votes[t] += task.correct[j]
            sums.voted_ranks[t] += task.correct[j] * predicted
            times = drawn(uniform(mix(task.keys[j] ^ word)), task.cumulative)
            if times == 0:
                continue
            task.presented[j] += 1
            task.correct[j] += predicted == ranks[t]
            for _ in range(times):
                if not errs(score, ranks[t], update, rule.thresholds, rule.unit[0]):
                    break
                move_by_margin(X[t], score, ranks[t], update, C, rule)
                task.updates[j] += 1
                score = dot(rule.coef, X[t])
            square = dot(rule.coef, rule.coef) + dot(rule.thresholds, rule.thresholds)
            task.lengths[j] = math.sqrt(square)
    return OK


@njit(cache=True, nogil=True)
def drawn(draw: float, cumulative: FloatArray) -> int:
    """Return how often the example is presented: the number of entries up to `draw`."""
    times = 0
    while times < cumulative.shape[0] and draw >= cumulative[times]:
        times += 1
    return times
