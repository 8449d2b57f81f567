"""The pairs that RankBoost weighs: all pairs of different levels, or a list of pairs."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from spark_rank.learners.base import FloatArray
from spark_rank.learners.pairs.boosting import (
    Weights,
    net_weights,
    split_masses,
    weigh_examples,
)
from spark_rank.learners.pairs.listed import ListedPairs
from spark_rank.learners.pairs.losses import misranked_pairs

Chosen = NDArray[np.bool_]


class LevelPairs:
    """All pairs of examples of different levels, by one factor per example: none is stored."""

    def __init__(self, targets: FloatArray) -> None:
        self.levels, sizes = np.unique(targets, return_inverse=True, return_counts=True)[1:]
        m, self._k = len(targets), len(sizes)
        self.n_pairs = float(m**2 - sizes @ sizes) / 2.0
        self._weights = Weights(*np.empty((2, m)), *np.empty((4, self._k)))
        self._log_total = 0.0
        self._net = np.empty(m)

    def is_empty(self) -> bool:
        """Tell whether there is no pair."""
        return self._k < 2

    def weigh(self, potentials: FloatArray) -> float:
        """Weigh the pairs by scores, and return the logarithm of their total weight."""
        self._log_total = weigh_examples(potentials, self.levels, self._weights)
        return self._log_total

    def net(self) -> FloatArray:
        """Return the weight of the pairs in which each example is higher minus lower."""
        net_weights(self._weights, self.levels, self._log_total, self._net)
        return self._net

    def split(self, chosen: Chosen) -> tuple[float, float, float]:
        """Return ε⁺, ε⁻ and ε⁰ of the base ranker that is 1 on the `chosen` examples."""
        return split_masses(self._weights, self.levels, self._log_total, chosen)

    def misranking(self, potentials: FloatArray) -> float:
        """Return the share of the pairs that scores do not order."""
        return misranked_pairs(potentials, self.levels, self._k) / self.n_pairs


class PairList:
    """Listed pairs with weights, which need not agree with each other."""

    def __init__(self, pairs: ListedPairs, n_examples: int) -> None:
        self._pairs = pairs
        self._size = n_examples
        self.n_pairs = float(len(pairs.lower))
        self._start = pairs.weights / pairs.weights.sum() if len(pairs.weights) else pairs.weights
        self._shares = self._start

    def is_empty(self) -> bool:
        """Tell whether there is no pair."""
        return len(self._start) == 0

    def weigh(self, potentials: FloatArray) -> float:
        """Weigh the pairs by scores, and return the logarithm of their total weight."""
        with np.errstate(over="ignore", invalid="ignore"):
            exponents = potentials[self._pairs.lower] - potentials[self._pairs.higher]
            shift = float(exponents.max())
            weights = self._start * np.exp(exponents - shift)
            total = float(weights.sum())
            self._shares = weights / total
        return shift + math.log(total) if total > 0.0 else math.nan

    def net(self) -> FloatArray:
        """Return the weight of the pairs in which each example is higher minus lower."""
        higher = np.bincount(self._pairs.higher, self._shares, self._size)
        return np.asarray(higher - np.bincount(self._pairs.lower, self._shares, self._size))

    def split(self, chosen: Chosen) -> tuple[float, float, float]:
        """Return ε⁺, ε⁻ and ε⁰ of the base ranker that is 1 on the `chosen` examples."""
        of_higher, of_lower = chosen[self._pairs.higher], chosen[self._pairs.lower]
        plus = float(self._shares[of_higher & ~of_lower].sum())
        minus = float(self._shares[of_lower & ~of_higher].sum())
        return plus, minus, float(self._shares[of_higher == of_lower].sum())

    def misranking(self, potentials: FloatArray) -> float:
        """Return the share, by weight, of the pairs that scores do not order."""
        wrong = potentials[self._pairs.higher] <= potentials[self._pairs.lower]
        return float(self._start[wrong].sum())
