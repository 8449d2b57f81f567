"""Compiled rounds of the online ordinal learners.

Every kernel works on float64 and int64 arrays that are contiguous; examples come read-only, so
each kernel is compiled once. Nothing here reorders sums: the same input gives the same bits on
every machine. A kernel stops at the first round whose score is not finite and returns its index
(a NaN or an infinity in an example always shows in its score), or returns ``OK``: the examples
need no separate pass for validation, which would take as long as learning itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spark_rank.compiled import njit
from spark_rank.learners.base import FloatArray
from spark_rank.learners.compiled.dot import dot
from spark_rank.rank_rule import predicted_rank

IntArray = NDArray[np.int64]
OK = -1

# for functions that run at every round: a compiled call with arrays costs more than these functions
inlined = njit(nogil=True, inline="always")


class Rule(NamedTuple):
    """The linear rule that a pass moves: w and b_1 ≤ … ≤ b_{k−1}."""

    coef: FloatArray
    thresholds: FloatArray


class Rounds(NamedTuple):
    """The results of PRank's rounds: |ŷ − y|, Σ τ_r, and the thresholds after each round."""

    losses: IntArray
    amounts: IntArray
    thresholds: FloatArray


@inlined
def move_thresholds(score: float, rank: int, thresholds: FloatArray) -> int:
    """Subtract every τ_r from its threshold, in O(k), and return Σ τ_r (PRank, fig. 1)."""
    total = 0
    for r in range(thresholds.shape[0]):
        side = -1 if rank <= r + 1 else 1
        tau = side * int((score - thresholds[r]) * side <= 0.0)
        thresholds[r] -= tau
        total += tau
    return total


@inlined
def add_multiple(factor: float, x: FloatArray, coef: FloatArray) -> None:
    """Do ``coef += factor · x`` in place."""
    for i in range(coef.shape[0]):
        coef[i] += factor * x[i]


@njit(cache=True, nogil=True)
def prank_pass(X: FloatArray, ranks: IntArray, rule: Rule, done: Rounds) -> int:
    """Run PRank over the rows of `X`, in O(d + k) a round; `rule` is updated in place.

    Writes the results of each round to `done`, the thresholds only if there is room for them.
    """
    for t in range(X.shape[0]):
        score = dot(rule.coef, X[t])
        if not np.isfinite(score):
            return t
        done.losses[t] = abs(predicted_rank(score, rule.thresholds) - ranks[t])
        done.amounts[t] = 0
        if done.losses[t] > 0:
            done.amounts[t] = move_thresholds(score, ranks[t], rule.thresholds)
            add_multiple(float(done.amounts[t]), X[t], rule.coef)
        if done.thresholds.shape[0] > 0:
            done.thresholds[t] = rule.thresholds
    return OK


@njit(cache=True, nogil=True)
def prank_round(
    values: FloatArray, support_coef: FloatArray, rank: int, thresholds: FloatArray
) -> tuple[float, int, int]:
    """Do one round of kernel PRank; return the score, the rank loss and Σ τ_r.

    `values` are the kernel values of the example and the supports, O(S + k) for S of them.
    """
    score = dot(values, support_coef)
    loss = abs(predicted_rank(score, thresholds) - rank)
    amount = move_thresholds(score, rank, thresholds) if loss > 0 else 0
    return score, loss, amount


@njit(cache=True, nogil=True)
def add_rows(weights: IntArray, X: FloatArray, total: FloatArray) -> None:
    """Do ``total += Σ_t weights_t · X_t`` in place, row after row, skipping weights of 0."""
    for t in range(X.shape[0]):
        if weights[t] != 0:
            add_multiple(float(weights[t]), X[t], total)


@njit(cache=True, nogil=True)
def widrow_hoff_pass(
    X: FloatArray, ranks: IntArray, eta: float, rule: Rule, losses: IntArray
) -> int:
    """Run Widrow–Hoff over the rows of `X`, in O(d + k) a round; updates ``rule.coef`` in place."""
    for t in range(X.shape[0]):
        score = dot(rule.coef, X[t])
        if not np.isfinite(score):
            return t
        losses[t] = abs(predicted_rank(score, rule.thresholds) - ranks[t])
        add_multiple(eta * (ranks[t] - score), X[t], rule.coef)
    return OK


@njit(cache=True, nogil=True)
def perceptron_pass(
    X: FloatArray, ranks: IntArray, prototypes: FloatArray, scores: FloatArray, losses: IntArray
) -> int:
    """Run the multiclass perceptron over the rows of `X`, in O(k d) a round.

    `prototypes` (k×d) are updated in place; `scores` has room for k numbers.
    """
    for t in range(X.shape[0]):
        best = 0
        for r in range(prototypes.shape[0]):
            scores[r] = dot(prototypes[r], X[t])
            if not np.isfinite(scores[r]):
                return t
            if scores[r] > scores[best]:
                best = r
        truth = ranks[t] - 1
        losses[t] = abs(best - truth)
        if best != truth:
            move_prototypes(X[t], truth, scores, prototypes)
    return OK


@njit(cache=True, nogil=True)
def move_prototypes(x: FloatArray, truth: int, scores: FloatArray, prototypes: FloatArray) -> None:
    """Add x to the true prototype; share −x evenly among those that score at least as high."""
    n_errors = 0
    for r in range(scores.shape[0]):
        if r != truth and scores[r] >= scores[truth]:
            n_errors += 1
    for r in range(scores.shape[0]):
        if r != truth and scores[r] >= scores[truth]:
            for i in range(x.shape[0]):
                prototypes[r, i] -= x[i] / n_errors
    add_multiple(1.0, x, prototypes[truth])


@njit(cache=True, nogil=True)
def row_scores(X: FloatArray, coef: FloatArray, scores: FloatArray) -> int:
    """Write coef·x for every row of `X`, with the rounding of the online rounds."""
    for t in range(X.shape[0]):
        scores[t] = dot(coef, X[t])
        if not np.isfinite(scores[t]):
            return t
    return OK


@njit(cache=True, nogil=True)
def rank_sums(X: FloatArray, rules: Rule, weights: IntArray, sums: IntArray) -> int:
    """Write Σ_j weights_j h_j(x) over N `rules`, row by row in `rules`, for every row of `X`.

    O(m N (d + k)) time; only the m sums are stored.
    """
    for t in range(X.shape[0]):
        sums[t] = 0
        for j in range(rules.coef.shape[0]):
            score = dot(rules.coef[j], X[t])
            if not np.isfinite(score):
                return t
            sums[t] += weights[j] * predicted_rank(score, rules.thresholds[j])
    return OK


@njit(cache=True, nogil=True)
def rank_counts(X: FloatArray, rules: Rule, counts: IntArray) -> int:
    """Add to each row of `counts` (m×k) how many of N `rules` predict each rank of that row."""
    for t in range(X.shape[0]):
        for j in range(rules.coef.shape[0]):
            score = dot(rules.coef[j], X[t])
            if not np.isfinite(score):
                return t
            counts[t, predicted_rank(score, rules.thresholds[j]) - 1] += 1
    return OK


@njit(cache=True, nogil=True)
def prefix_rank_sums(
    values: FloatArray,
    support_coef: FloatArray,
    thresholds: FloatArray,
    weights: IntArray,
    sums: IntArray,
) -> int:
    """Write Σ_n weights_n h_n(x) for each row of kernel `values`, in O(S k) a row.

    Rule n scores with the first n of the S supports and cuts at ``thresholds[n]``, n = 0..S.
    """
    for t in range(values.shape[0]):
        score = 0.0
        sums[t] = weights[0] * predicted_rank(score, thresholds[0])
        for n in range(support_coef.shape[0]):
            score += support_coef[n] * values[t, n]
            if weights[n + 1] > 0:
                sums[t] += weights[n + 1] * predicted_rank(score, thresholds[n + 1])
        if not np.isfinite(score):
            return t
    return OK


@njit(cache=True, nogil=True)
def voted_rank_sums(
    X: FloatArray,
    supports: FloatArray,
    support_coef: FloatArray,
    thresholds: FloatArray,
    weights: IntArray,
    sums: IntArray,
) -> int:
    """Write Σ_n weights_n h_n(x) over linear rules for each row of `X`, in O(S (d + k)) a row.

    Rule n is w after n moves, summed in the same order as in the online rounds, so that scores have
    the same bits. A sum of products with the supports would round differently.
    """
    coef = np.zeros(X.shape[1])
    sums[:] = 0
    for n in range(weights.shape[0]):
        if n > 0:
            add_multiple(support_coef[n - 1], supports[n - 1], coef)
        if weights[n] > 0:
            for t in range(X.shape[0]):
                score = dot(coef, X[t])
                if not np.isfinite(score):
                    return t
                sums[t] += weights[n] * predicted_rank(score, thresholds[n])
    return OK
