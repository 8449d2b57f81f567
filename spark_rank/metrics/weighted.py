"""Metrics with a weight per item, and how many items weighted ones are worth.

Held-out ratings that were given by choice stand for items shown at random if each of them weighs
one over its propensity, the probability that it was given. Weights are divided by their sum
(self-normalised), so only their ratios count.

References
----------
Schnabel, Swaminathan, Singh, Chandak, Joachims: Recommendations as Treatments, ICML 2016.
Kong: A Note on Importance Sampling Using Standardized Weights, 1992 (the effective size).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from spark_rank.metrics.vectors import FloatArray, pair_of_vectors


def weighted_squared_difference(h: ArrayLike, y: ArrayLike, weights: ArrayLike) -> float | None:
    """Return MSD where a pair has the product of its weights; None with fewer than two items."""
    scores, ratings = pair_of_vectors(h, y)
    shares = _shares(weights, len(scores))
    if len(scores) < 2:
        return None
    residuals = scores - ratings
    return float(2.0 * shares @ (residuals - shares @ residuals) ** 2)


def weighted_misranking(h: ArrayLike, y: ArrayLike, weights: ArrayLike) -> float | None:
    """Return the misranked share of all pairs with different ratings, by products of weights.

    A tie in h counts as misranked. Where all ratings tie there is no pair: None. O(m²) time, and
    O(m) memory.
    """
    scores, ratings = pair_of_vectors(h, y)
    shares = _shares(weights, len(scores))
    misranked = compared = 0.0
    for score, rating, share in zip(scores, ratings, shares, strict=True):
        worse = ratings < rating
        compared += share * float(shares[worse].sum())
        misranked += share * float(shares[worse & (scores >= score)].sum())
    return misranked / compared if compared > 0.0 else None


def effective_size(weights: ArrayLike) -> float:
    """Return how many equal weights have the same variance of a mean: (Σ w)² / Σ w²."""
    values = np.asarray(weights, dtype=np.float64)
    return float(values.sum() ** 2 / (values @ values)) if len(values) else 0.0


def _shares(weights: ArrayLike, count: int) -> FloatArray:
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (count,) or not (np.isfinite(values) & (values > 0.0)).all():
        raise ValueError(f"weights must be {count} finite numbers above 0")
    return values / values.sum()
