"""Pair losses with weights, inside groups, or over a list of pairs, for the bundle method.

They have the methods of the losses in `losses`, but no hinges for Newton's method. A pair of two
examples has the product of their weights. The sums come from sorted values and sums of weights, so
no pairs are built unless they are given as a list.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spark_rank.compiled import njit
from spark_rank.learners.base import FloatArray

IntArray = NDArray[np.int64]


class BundleLoss:
    """Base of the losses that only the bundle method minimises.

    Attributes
    ----------
    span : the greatest number, besides the scores, in a difference.
    mass : the weight of all pairs, with the factor of the loss.
    power : 1 or 2.
    """

    span: float
    mass: float
    power = 1

    def __call__(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and a subgradient at `scores`."""
        raise NotImplementedError

    def is_nothing(self) -> bool:
        """Tell whether ``w = 0`` costs nothing, and so is the solution whatever X is."""
        value, pulls = self(np.zeros(self.size))
        return value <= 0.0 and not pulls.any()

    @property
    def size(self) -> int:
        """Return the number of examples."""
        raise NotImplementedError

    def moved_by(self, shift: float, cost: float) -> float:
        """Return how much errors of the scores up to `shift` may change the cost."""
        move = 2.0 * shift * self.mass
        if self.power == 1:
            return move
        return 2.0 * move * np.sqrt(cost / self.mass) + move * 2.0 * shift

    def moved_at(self, scores: FloatArray, shifts: FloatArray, cost: float) -> float:
        """Return how much errors of these scores up to `shifts` may change the cost."""
        return self.moved_by(float(shifts.max()), cost)


class WeightedInsensitiveLoss(BundleLoss):
    """``weight · Σ_ij s_i s_j max(0, |r_j − r_i| − ε)^n`` over all ordered pairs, r = h − y."""

    def __init__(
        self,
        targets: FloatArray,
        weights: FloatArray,
        *,
        epsilon: float,
        power: int,
        weight: float = 1.0,
    ) -> None:
        self.targets = targets
        self.weights = weights
        self.epsilon = epsilon
        self.power = power
        self.weight = weight
        self.span = float(np.abs(targets).max()) + epsilon
        self.mass = weight * float(weights.sum()) ** 2

    @property
    def size(self) -> int:
        """Return the number of examples."""
        return len(self.targets)

    def __call__(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and a subgradient at `scores`, in O(m log m)."""
        residuals = scores - self.targets
        order = np.argsort(residuals, kind="stable")
        r, s = residuals[order], self.weights[order]
        r = r - r[len(r) // 2]  # near 0 sums keep their digits
        # pairs (i, j < below_i) cost something; the same pairs by j are (j, i >= above_j)
        below = np.searchsorted(r, r - self.epsilon, side="left")
        above = np.searchsorted(below, np.arange(len(r)), side="right")
        mass, first = _prefix(s), _prefix(s * r)
        bar, floor = r - self.epsilon, r + self.epsilon
        lower = bar * mass[below] - first[below]  # Σ s_j t_ij over those below
        if self.power == 1:
            total = float(s @ np.maximum(lower, 0.0))
            slopes = mass[below] - (mass[-1] - mass[above])
        else:
            second = _prefix(s * r * r)[below]
            squares = bar * bar * mass[below] - 2.0 * bar * first[below] + second
            total = float(s @ np.maximum(squares, 0.0))
            upper = first[-1] - first[above] - floor * (mass[-1] - mass[above])
            slopes = 2.0 * (lower - upper)
        pulls = np.empty(len(r))
        pulls[order] = s * slopes
        pulls *= 2.0 * self.weight
        return 2.0 * self.weight * total, pulls


def _prefix(values: FloatArray) -> FloatArray:
    return np.concatenate([[0.0], np.cumsum(values)])


class WeightedHingeLoss(BundleLoss):
    """``weight · Σ_{y_i > y_j} s_i s_j max(0, 1 − (h_i − h_j))``; scores get the `offset` added."""

    def __init__(
        self,
        targets: FloatArray,
        weights: FloatArray,
        *,
        weight: float = 1.0,
        offset: FloatArray | None = None,
    ) -> None:
        levels, self.levels = np.unique(targets, return_inverse=True)
        self.n_levels = len(levels)
        self.weights = weights
        self.weight = weight
        self.offset = offset
        self.span = 1.0 + (0.0 if offset is None else float(np.abs(offset).max()))
        self.mass = weight * pair_mass(targets, weights)

    @property
    def size(self) -> int:
        """Return the number of examples."""
        return len(self.levels)

    def is_nothing(self) -> bool:
        """Tell whether there is no pair, so that ``w = 0`` is the solution whatever X is."""
        return not self.mass > 0.0

    def __call__(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and a subgradient at `scores`, in O(m (log m + log k))."""
        shifted = scores if self.offset is None else scores + self.offset
        order = np.argsort(shifted, kind="stable")
        total, pulls = weighted_violations(shifted, order, self.levels, self.weights, self.n_levels)
        pulls *= self.weight
        return self.weight * total, pulls


class ListedHingeLoss(BundleLoss):
    """``Σ_p weight_p max(0, 1 − (h(higher_p) − h(lower_p)))`` over a list of pairs."""

    def __init__(
        self, lower: IntArray, higher: IntArray, weights: FloatArray, n_examples: int
    ) -> None:
        self.lower = lower
        self.higher = higher
        self.weights = weights
        self.n_examples = n_examples
        self.span = 1.0
        self.mass = float(weights.sum())

    @property
    def size(self) -> int:
        """Return the number of examples."""
        return self.n_examples

    def is_nothing(self) -> bool:
        """Tell whether there is no pair, so that ``w = 0`` is the solution whatever X is."""
        return not self.mass > 0.0

    def __call__(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and a subgradient at `scores`, in O(pairs + m)."""
        short = 1.0 - (scores[self.higher] - scores[self.lower])
        violated = np.where(short > 0.0, self.weights, 0.0)
        pulls = np.asarray(np.bincount(self.lower, violated, self.n_examples), np.float64)
        pulls -= np.bincount(self.higher, violated, self.n_examples)
        return float(violated @ short), pulls


class GroupedLoss(BundleLoss):
    """The sum of a loss over groups of examples: pairs of different groups do not count."""

    def __init__(self, rows: Sequence[IntArray], losses: Sequence[BundleLoss]) -> None:
        self.rows = rows
        self.losses = losses
        self.power = losses[0].power
        self.span = max(loss.span for loss in losses)
        self.mass = sum(loss.mass for loss in losses)

    @property
    def size(self) -> int:
        """Return the number of examples."""
        return sum(map(len, self.rows))

    def is_nothing(self) -> bool:
        """Tell whether ``w = 0`` costs nothing in any group."""
        return all(loss.is_nothing() for loss in self.losses)

    def __call__(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and a subgradient at `scores`."""
        total, pulls = 0.0, np.empty(len(scores))
        for rows, loss in zip(self.rows, self.losses, strict=True):
            value, pulls[rows] = loss(scores[rows])
            total += value
        return total, pulls


def pair_mass(targets: FloatArray, weights: FloatArray) -> float:
    """Return Σ s_i s_j over the pairs with y_i > y_j."""
    by_level = np.bincount(np.unique(targets, return_inverse=True)[1], weights=weights)
    return max(0.5 * float(weights.sum() ** 2 - by_level @ by_level), 0.0)


def rows_of_groups(groups: IntArray) -> list[IntArray]:
    """Return the positions of the examples of each group."""
    order = np.argsort(groups, kind="stable")
    return np.split(order, np.cumsum(np.bincount(groups))[:-1])


@njit(cache=True, nogil=True)
def weighted_violations(
    scores: FloatArray, order: IntArray, levels: IntArray, weights: FloatArray, n_levels: int
) -> tuple[float, FloatArray]:
    """Return the weighted sum of ``1 − (h_i − h_j)`` over l_i > l_j, h_i − h_j ≤ 1; its gradient.

    O(m log k), by a Fenwick tree of weights per level.
    """
    m = scores.shape[0]
    pulls = np.zeros(m)
    tree = np.zeros(n_levels + 1)
    entering = m - 1
    mass = 0.0
    for position in range(m - 1, -1, -1):
        i = order[position]
        while entering >= 0 and scores[i] - scores[order[entering]] <= 1.0:
            add_weight(tree, levels[order[entering]], weights[order[entering]])
            entering -= 1
        lower = sum_below(tree, levels[i])
        pulls[i] -= weights[i] * lower
        mass += weights[i] * lower
    tree[:] = 0.0
    entering = 0
    inside = 0.0
    for position in range(m):
        j = order[position]
        while entering < m and scores[order[entering]] - scores[j] <= 1.0:
            add_weight(tree, levels[order[entering]], weights[order[entering]])
            inside += weights[order[entering]]
            entering += 1
        pulls[j] += weights[j] * (inside - sum_below(tree, levels[j] + 1))
    total = mass
    origin = scores[order[m // 2]]
    for i in range(m):
        total += pulls[i] * (scores[i] - origin)
    return max(total, 0.0), pulls


@njit(cache=True, nogil=True)
def add_weight(tree: FloatArray, level: int, weight: float) -> None:
    """Add a weight at a level."""
    node = level + 1
    while node < tree.shape[0]:
        tree[node] += weight
        node += node & -node


@njit(cache=True, nogil=True)
def sum_below(tree: FloatArray, level: int) -> float:
    """Return the weight of the levels below this one."""
    total = 0.0
    node = level
    while node > 0:
        total += tree[node]
        node -= node & -node
    return total
