"""Adds the possible effect of rounding to a certified gap of a pair loss, to judge convergence.

A solver's lower bound and its objective are sums in floating point. Near interpolation the
objective is small compared with the terms that cancel in it, and so is the gap between the two. So
the certified gap is their difference plus the greatest possible effect of rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from spark_rank.learners.base import FloatArray
from spark_rank.learners.pairs.losses import HingeLoss, InsensitiveLoss
from spark_rank.learners.pairs.weighted import BundleLoss
from spark_rank.learners.sparse import is_sparse

_UNIT = 0.5 * float(np.finfo(np.float64).eps)  # the share of a number that rounding takes
_NEGLIGIBLE = 1e-2  # share of the tolerance


class Point(NamedTuple):
    """A solution, and the size of the terms in the sums that are its scores.

    Attributes
    ----------
    most : upper bound, over the scores, of the sum of the terms' absolute values.
    total : Σ |α|; rounding moves ``½‖w‖²`` by its share of the greatest score times this.
    closely : computes the scores, the sums of their terms' absolute values, and ``½‖w‖²``.
    """

    most: float
    total: float
    closely: Callable[[], tuple[FloatArray, FloatArray, float]]


def point_of_weights(features: Any, coef: FloatArray) -> Point:
    """Return the point w on centred, or sparse, features. O(m d), a pass."""
    flat = features.data if is_sparse(features) else features.reshape(-1)
    most = math.sqrt(float(flat @ flat) * float(coef @ coef))

    def closely() -> tuple[FloatArray, FloatArray, float]:
        half_norm = 0.5 * float(coef @ coef)  # a sum of positive terms, without cancellation
        return features @ coef, abs(features) @ np.abs(coef), half_norm

    return Point(most, 0.0, closely)


def point_of_dual(gram: FloatArray, dual: FloatArray, given: float | None) -> Point:
    """Return the point ``Σ α_j Φ(x_j)``; `given` is the greatest value before centring, if any."""
    total = float(np.abs(dual).sum())
    most = total * (float(gram.diagonal().max()) if given is None else given)

    def closely() -> tuple[FloatArray, FloatArray, float]:
        scores = gram @ dual
        terms = np.abs(gram) @ np.abs(dual) if given is None else np.full(len(dual), most)
        return scores, terms, max(0.5 * float(dual @ scores), 0.0)

    return Point(most, total, closely)


def certified(
    loss: InsensitiveLoss | HingeLoss | BundleLoss,
    point: Point,
    objective: float,
    gap: float,
    tol: float,
) -> tuple[float, float]:
    """Return a solver's objective and gap, corrected for rounding unless that is negligible.

    Every score may be off by the last digit of the terms in its sum, and all in the direction that
    is worst for the cost; in practice rounding is at most a third of that. Below a hundredth of the
    tolerance it is ignored; otherwise the objective is computed anew.
    """
    least = _NEGLIGIBLE * tol * objective
    shift = _UNIT * (point.most + loss.span)
    if loss.moved_by(shift, objective) + _UNIT * point.most * point.total <= least:
        return objective, gap
    lower = objective * (1.0 - gap)
    scores, terms, half_norm = point.closely()
    cost = loss(scores)[0]
    objective = half_norm + cost
    if not objective > 0.0:
        return objective, 0.0
    rounding = loss.moved_at(scores, _UNIT * (terms + loss.span), cost)
    rounding += _UNIT * float(terms.max()) * point.total
    if rounding <= _NEGLIGIBLE * tol * objective:
        rounding = 0.0
    return objective, min(max((objective - lower + rounding) / objective, 0.0), 1.0)
