"""Alternating least squares: users and items as factors, the ridge weighted by ratings.

References
----------
Zhou, Wilkinson, Schreiber, Pan: Large-Scale Parallel Collaborative Filtering for the Netflix
Prize, AAIM 2008 (the objective, that of MLlib's ALS too).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spark_rank.compiled import njit
from spark_rank.experiments.peers import FloatArray, IntArray, Split


def als_scores(split: Split, *, rank: int, ridge: float, rounds: int, seed: int) -> FloatArray:
    """Return the predictions after `rounds` rounds, O(ratings · rank² + (users + items) · rank³).

    Minimises ``Σ (r_ui − x_u·z_i)² + ridge (Σ n_u ‖x_u‖² + Σ n_i ‖z_i‖²)``. Where a user or an item
    has no training rating, the prediction is the user's mean, or the mean of all ratings.
    """
    users = split.users()
    order = np.argsort(split.items, kind="stable")
    counts = np.bincount(split.items, minlength=split.n_items)
    item_ends = np.concatenate([[0], np.cumsum(counts)])
    rng = np.random.default_rng(seed)
    items = np.abs(rng.normal(0.0, 1.0, (split.n_items, rank)))
    items /= np.linalg.norm(items, axis=1, keepdims=True)
    found = np.zeros((len(split.ends) - 1, rank))
    for _ in range(rounds):
        found = solved(split.ends, split.items, split.ratings, items, ridge)
        items = solved(item_ends, users[order], split.ratings[order], found, ridge)
    place, target = split.held_out_users(), split.test_items
    scores = np.einsum("ij,ij->i", found[place], items[target])
    mean = float(split.ratings.mean())
    own = np.bincount(users, weights=split.ratings, minlength=len(split.ends) - 1)
    size = np.diff(split.ends)
    means = np.where(size > 0, own / np.maximum(size, 1), mean)
    return np.where((counts[target] > 0) & (size[place] > 0), scores, means[place])


def solved(
    ends: IntArray, others: Any, ratings: FloatArray, factors: FloatArray, ridge: float
) -> FloatArray:
    """Return the least-squares factors of every row, given those of the other side."""
    solution = np.zeros((len(ends) - 1, factors.shape[1]))
    _solve(ends, others, ratings, factors, ridge, solution)
    return solution


@njit(cache=True)
def _solve(ends: Any, others: Any, ratings: Any, factors: Any, ridge: float, solution: Any) -> None:
    width = factors.shape[1]
    for row in range(len(ends) - 1):
        first, last = ends[row], ends[row + 1]
        if first == last:
            continue
        own = factors[others[first:last]]
        system = own.T @ own
        for k in range(width):
            system[k, k] += ridge * (last - first)
        solution[row] = np.linalg.solve(system, own.T @ ratings[first:last])
