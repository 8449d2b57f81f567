"""Proposition 2 of the MPRank paper, which approximates the mean of the refitted scores.

The exact error needs no approximation (`learners.ridge.leave_pair_out`); this module shows how far
the published one is from it.
"""

from __future__ import annotations

import numpy as np

from spark_rank.experiments.reviewer_problems import FloatArray


def approximate_leave_pair_out(gram: FloatArray, y: FloatArray, ridge: float) -> float:
    """Return the approximation of section 2.6, which uses h̄ instead of h̄′: O(m³).

    It solves the two equations of the proof, because the printed statement lacks a sign. V_ii is
    that of the pair, without both of its terms; with h̄′ the result is exact.
    """
    uneven = gram - gram.mean(axis=1, keepdims=True)
    centred = uneven - uneven.mean(axis=0, keepdims=True)
    U = uneven @ np.linalg.inv(centred + ridge * np.eye(len(y)))
    scores = U @ (y - y.mean())
    drift = np.full((len(y), len(y)), scores.mean() - y.mean())
    costs = pair_costs(U, scores - y, drift)
    return float(costs[~np.eye(len(y), dtype=bool)].mean())


def pair_costs(U: FloatArray, residuals: FloatArray, drift: FloatArray) -> FloatArray:
    """Return the left-out cost of every pair (i, j), given ``h̄′ − ȳ`` of each; O(m²)."""
    own = np.diag(U)[:, None]
    moved = (own + U) / (len(U) - 2)
    V, V_own = U + moved, own + moved
    known = residuals[:, None] - (V_own + V) * drift
    determinant = (1.0 - V_own) * (1.0 - V_own.T) - V * V.T
    with np.errstate(divide="ignore", invalid="ignore"):  # the diagonal is no pair
        left_out = ((1.0 - V_own.T) * known + V * known.T) / determinant
    return np.asarray((left_out.T - left_out) ** 2)
