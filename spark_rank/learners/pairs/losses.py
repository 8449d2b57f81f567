"""Losses over all pairs of items, with a subgradient, in O(m log m) by sorting, without any pairs.

A pair loss is a function of the m scores. Called with scores, it returns its value and one
subgradient there, a vector whose entries sum to 0, because a shift of all scores does not change
the loss. Both follow from sorted values and two pointers: whether the pair (i, j) counts depends
only on ``s_j − s_i``, which is monotone in both positions, also in floating point.

The results do not depend on how the sort orders equal values: they get equal entries.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from spark_rank.compiled import njit
from spark_rank.learners.base import FloatArray
from spark_rank.learners.compiled.fenwick import count_below, insert
from spark_rank.learners.pairs.hinges import PairHinges

IntArray = NDArray[np.int64]
PairLoss = Callable[[FloatArray], tuple[float, FloatArray]]


class InsensitiveLoss:
    """``weight · Σ_ij max(0, |r_j − r_i| − ε)^n`` over all ordered pairs, with ``r = h − y``.

    The ε-insensitive cost of SVRank (Cortes, Mohri, Rastogi, eqs. 7 and 9), n = `power` in 1, 2.
    """

    n_groups = 1  # of items that are alike in the sum

    def __init__(
        self, targets: FloatArray, *, epsilon: float, power: int, weight: float = 1.0
    ) -> None:
        self.targets = targets
        self.epsilon = epsilon
        self.power = power
        self.weight = weight
        lowest, highest = float(targets.min()), float(targets.max())
        self._range = highest - lowest
        # the greatest number, besides the scores, in a difference
        self.span = max(highest, -lowest) + epsilon

    def __call__(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and a subgradient at `scores`, in O(m log m)."""
        residuals = scores - self.targets
        measure = absolute_excesses if self.power == 1 else squared_excesses
        total, pulls = measure(residuals, np.argsort(residuals), self.epsilon)
        # the double sum has every pair twice
        pulls *= 2.0 * self.weight
        return 2.0 * self.weight * total, pulls

    def is_nothing(self) -> bool:
        """Tell whether ``w = 0`` costs nothing, and so is the solution whatever X is."""
        return self._range <= self.epsilon

    def moved_by(self, shift: float, cost: float) -> float:
        """Return how much errors of the scores up to `shift` may change the cost, for any pairs."""
        n_pairs = 0.5 * len(self.targets) ** 2
        return _moved(2.0 * self.weight, self.power, 2.0 * shift * n_pairs, n_pairs, cost)

    def moved_at(self, scores: FloatArray, shifts: FloatArray, cost: float) -> float:
        """Return how much errors of these scores up to `shifts` may change the cost, O(m log m).

        Only pairs count that have a cost now or may have one then.
        """
        residuals = scores - self.targets
        ordered, reach = np.sort(residuals), self.epsilon - 2.0 * float(shifts.max())
        below = np.searchsorted(ordered, residuals - reach, "right")
        above = len(ordered) - np.searchsorted(ordered, residuals + reach, "left")
        pairs = np.minimum(below + above, len(ordered))
        moves, n_pairs = float(pairs @ shifts), 0.5 * float(pairs.sum())
        return _moved(2.0 * self.weight, self.power, moves, n_pairs, cost)

    def hinges(self) -> PairHinges:
        """Return the same cost as hinges: of r_j over r_i by more than ε, for all i and j."""
        m = len(self.targets)
        starts, groups = np.array([0, m]), np.zeros((1, 2), np.int64)
        # only one of a pair and its reverse has a cost, and the double sum has it twice
        weight = 2.0 * float(self.weight)
        return PairHinges(
            -self.targets, np.arange(m), starts, groups, float(self.epsilon), self.power, weight
        )


class HingeLoss:
    """``weight · Σ_{y_i > y_j} max(0, 1 − (h_i − h_j))``, the loss of RankSVM (Joachims 2002).

    `offset` is added to the scores before they are compared.
    """

    def __init__(
        self, targets: FloatArray, *, weight: float = 1.0, offset: FloatArray | None = None
    ) -> None:
        levels, self.levels = np.unique(targets, return_inverse=True)
        self.n_levels = self.n_groups = len(levels)
        self.weight = weight
        self.offset = offset
        self.span = 1.0 + (0.0 if offset is None else float(np.abs(offset).max()))

    def __call__(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and a subgradient at `scores`, in O(m (log m + log k))."""
        shifted = scores if self.offset is None else scores + self.offset
        order = np.argsort(shifted)
        _, total, pulls = violations(shifted, order, self.levels, self.n_levels, 1.0)
        pulls *= self.weight
        return self.weight * total, pulls

    def is_nothing(self) -> bool:
        """Tell whether there is no pair, so that ``w = 0`` is the solution whatever X is."""
        return self.n_levels == 1

    def moved_by(self, shift: float, cost: float) -> float:
        """Return how much errors of the scores up to `shift` may change the cost, for any pairs."""
        n_pairs = 0.5 * len(self.levels) ** 2
        return _moved(self.weight, 1, 2.0 * shift * n_pairs, n_pairs, cost)

    def moved_at(self, scores: FloatArray, shifts: FloatArray, cost: float) -> float:
        """Return how much errors of these scores up to `shifts` may change the cost, O(m log m).

        Only pairs count that have a cost now or may have one then.
        """
        shifted = scores if self.offset is None else scores + self.offset
        reach, most = 1.0 + 2.0 * float(shifts.max()), 2.0 * float(shifts.max())
        n_pairs = violations(shifted, np.argsort(shifted), self.levels, self.n_levels, reach)[0]
        return _moved(self.weight, 1, most * n_pairs, n_pairs, cost)

    def hinges(self) -> PairHinges:
        """Return the same cost as hinges: one pair of groups for each two levels, k (k − 1) / 2."""
        shift = np.zeros(len(self.levels))
        if self.offset is not None:
            shift += self.offset - np.mean(self.offset)  # near 0 scores keep their digits
        starts = np.zeros(self.n_levels + 1, np.int64)
        np.cumsum(np.bincount(self.levels, minlength=self.n_levels), out=starts[1:])
        lower, higher = np.triu_indices(self.n_levels, 1)
        groups = np.column_stack([higher, lower])
        items = np.argsort(self.levels, kind="stable")
        return PairHinges(shift, items, starts, groups, -1.0, 1, float(self.weight))


def _moved(weight: float, power: int, moves: float, n_pairs: float, cost: float) -> float:
    """Return how much ``weight Σ max(0, t)^power`` may grow if the t grow by `moves` in total."""
    if power == 1 or n_pairs == 0.0:
        return weight * moves
    # Σ 2 t·move + move²: the Σ t² are the cost
    move = moves / n_pairs
    return float(2.0 * move * np.sqrt(weight * n_pairs * cost) + weight * moves * move)


def misranked_pairs(scores: FloatArray, levels: IntArray, n_levels: int) -> int:
    """Count the pairs of levels l_i > l_j with h_i ≤ h_j, in O(m (log m + log k))."""
    return violations(scores, np.argsort(scores), levels, n_levels, 0.0)[0]


@njit(cache=True, nogil=True)
def absolute_excesses(
    residuals: FloatArray, order: IntArray, epsilon: float
) -> tuple[float, FloatArray]:
    """Return Σ max(0, |r_i − r_j| − ε) over unordered pairs, and its subgradient, in O(m).

    Entry i is #{j : r_i − r_j > ε} − #{j : r_j − r_i > ε}; with these p_i the sum is
    ``p·r − ε · number of pairs``. `order` sorts the residuals.
    """
    m = residuals.shape[0]
    pulls = np.empty(m)
    n_pairs = 0.0
    below = 0
    for i in range(m):
        while residuals[order[i]] - residuals[order[below]] > epsilon:
            below += 1
        pulls[order[i]] = below
        n_pairs += below
    above = m - 1
    for i in range(m - 1, -1, -1):
        while residuals[order[above]] - residuals[order[i]] > epsilon:
            above -= 1
        pulls[order[i]] -= m - 1 - above
    total = _inner_product(pulls, residuals, residuals[order[m // 2]]) - epsilon * n_pairs
    return max(total, 0.0), pulls


@njit(cache=True, nogil=True)
def squared_excesses(
    residuals: FloatArray, order: IntArray, epsilon: float
) -> tuple[float, FloatArray]:
    """Return Σ max(0, |r_i − r_j| − ε)² over unordered pairs, and its gradient, in O(m).

    From one i to the next all excesses over the items far enough below grow equally, and new ones
    are added. Nothing is subtracted from their sums, so small excesses keep their digits. The
    gradient is twice the sum of the excesses, with the sign of r_i − r_j.
    """
    m = residuals.shape[0]
    pulls = np.empty(m)
    total = excesses = squares = 0.0
    below = 0
    for i in range(m):
        value = residuals[order[i]]
        rise = value - residuals[order[i - 1]] if i > 0 else 0.0
        squares += rise * (2.0 * excesses + below * rise)
        excesses += below * rise
        while value - residuals[order[below]] > epsilon:
            excess = value - residuals[order[below]] - epsilon
            excesses += excess
            squares += excess * excess
            below += 1
        pulls[order[i]] = 2.0 * excesses
        total += squares
    excesses = 0.0
    above = m - 1
    for i in range(m - 1, -1, -1):
        value = residuals[order[i]]
        rise = residuals[order[i + 1]] - value if i < m - 1 else 0.0
        excesses += (m - 1 - above) * rise
        while residuals[order[above]] - value > epsilon:
            excesses += residuals[order[above]] - value - epsilon
            above -= 1
        pulls[order[i]] -= 2.0 * excesses
    return total, pulls


@njit(cache=True, nogil=True)
def violations(
    scores: FloatArray, order: IntArray, levels: IntArray, n_levels: int, margin: float
) -> tuple[int, float, FloatArray]:
    """Find the pairs of levels l_i > l_j with h_i − h_j ≤ margin; O(m log k), by a Fenwick tree.

    Returns their number, the sum of ``margin − (h_i − h_j)``, and its subgradient: for every item,
    the number of such pairs in which it is j minus the number in which it is i. (A pair at the
    margin has cost 0 and may count: at a kink of the loss any subgradient is valid.)
    """
    m = scores.shape[0]
    pulls = np.empty(m)
    n_pairs = 0
    tree = np.zeros(n_levels + 1, np.int64)
    entering = m - 1
    for i in order[::-1]:
        while entering >= 0 and scores[i] - scores[order[entering]] <= margin:
            insert(tree, levels[order[entering]])
            entering -= 1
        n_lower = count_below(tree, levels[i])
        pulls[i] = -n_lower
        n_pairs += n_lower
    tree[:] = 0
    entering = 0
    for j in order:
        while entering < m and scores[order[entering]] - scores[j] <= margin:
            insert(tree, levels[order[entering]])
            entering += 1
        pulls[j] += entering - count_below(tree, levels[j] + 1)
    total = margin * n_pairs + _inner_product(pulls, scores, scores[order[m // 2]])
    return n_pairs, max(total, 0.0), pulls


@njit(cache=True, nogil=True)
def _inner_product(pulls: FloatArray, values: FloatArray, origin: float) -> float:
    """Return Σ p_i (v_i − origin); the pulls sum to 0, so the origin only improves digits."""
    total = 0.0
    for i in range(pulls.shape[0]):
        total += pulls[i] * (values[i] - origin)
    return total
