"""What rounding may have made of a certified gap of a pair loss: the last word on convergence.

A solver's lower bound and its objective are sums in floating point. Near interpolation the
objective is small beside the terms that cancel in it, and so is the distance of the two: what is
certified is their difference and what rounding may have moved it by.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from spark_rank.learners.base import FloatArray
from spark_rank.learners.pairs.losses import HingeLoss, InsensitiveLoss

_UNIT = 0.5 * float(np.finfo(np.float64).eps)  # the share of a number that rounding takes
_NEGLIGIBLE = 1e-2  # share of the tolerance


class Point(NamedTuple):
    """A solution, and how great the numbers are that its scores are sums of.

    Attributes
    ----------
    most : no score is a sum of terms that are more together, without their signs.
    total : rounding moves the half norm by its share of the greatest score times this: Σ |α|.
    closely : computes the scores, their terms without signs, and ``½‖w‖²``.
    """

    most: float
    total: float
    closely: Callable[[], tuple[FloatArray, FloatArray, float]]


def point_of_weights(features: FloatArray, coef: FloatArray) -> Point:
    """Return the point w on centred features. O(m d), a pass."""
    flat = features.reshape(-1)
    most = math.sqrt(float(flat @ flat) * float(coef @ coef))

    def closely() -> tuple[FloatArray, FloatArray, float]:
        half_norm = 0.5 * float(coef @ coef)  # of positive terms, which lose nothing
        return features @ coef, np.abs(features) @ np.abs(coef), half_norm

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
    loss: InsensitiveLoss | HingeLoss, point: Point, objective: float, gap: float, tol: float
) -> tuple[float, float]:
    """Return objective and gap of a solver as they are; with what rounding may owe, if it counts.

    Every score may be off by the last digit of the terms that it is a sum of, all of them in the
    worst way for the cost; in practice rounding is a third of that at most. Below a hundredth of
    the tolerance it does not count; else the objective is computed afresh.
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
