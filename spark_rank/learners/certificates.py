"""What rounding may have made of a certified gap of a pair loss: the last word on convergence.

A solver's lower bound and its objective are sums in floating point. Near interpolation the
objective is small beside the terms that cancel in it, and so is the distance of the two: what is
certified is their difference and what rounding may have moved it by.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from spark_rank.learners.base import FloatArray
from spark_rank.learners.pair_losses import HingeLoss, InsensitiveLoss

_UNIT = 0.5 * float(np.finfo(np.float64).eps)  # the share of a number that rounding takes
_NEGLIGIBLE = 1e-2  # share of the tolerance


class Point(NamedTuple):
    """A solution, and how great the numbers are that its scores are sums of.

    Attributes
    ----------
    scores, half_norm : Φw and ``½‖w‖²``.
    most : no score is a sum of terms that are more together, without their signs.
    terms : computes the same for every score by itself.
    total : rounding moves the half norm by its share of the greatest score times this: Σ |α|.
    """

    scores: FloatArray
    half_norm: float
    most: float
    terms: Callable[[], FloatArray]
    total: float


def point_of_weights(features: FloatArray, coef: FloatArray) -> Point:
    """Return the point w on centred features. O(m d), a pass."""
    most = float(np.linalg.norm(features)) * float(np.linalg.norm(coef))
    half_norm = 0.5 * float(coef @ coef)  # of positive terms, which lose nothing
    return Point(features @ coef, half_norm, most, lambda: np.abs(features) @ np.abs(coef), 0.0)


def point_of_dual(gram: FloatArray, dual: FloatArray, given: float | None) -> Point:
    """Return the point ``Σ α_j Φ(x_j)``; `given` is the greatest value before centring, if any."""
    scores, total = gram @ dual, float(np.abs(dual).sum())
    most = total * (float(gram.diagonal().max()) if given is None else given)
    return Point(
        scores,
        max(0.5 * float(dual @ scores), 0.0),
        most,
        lambda: np.abs(gram) @ np.abs(dual) if given is None else np.full(len(dual), most),
        total,
    )


def certified_gap(
    loss: InsensitiveLoss | HingeLoss, point: Point, lower: float, tol: float
) -> tuple[float, float]:
    """Return the objective at a point, computed afresh, and the gap that is certain.

    `lower` is the solver's bound of the minimum. Every score may be off by the last digit of the
    terms that it is a sum of, all of them in the worst way for the cost; in practice rounding is
    a tenth of that at most. Below a hundredth of the tolerance it is not counted.
    """
    cost = loss(point.scores)[0]
    objective = point.half_norm + cost
    if not objective > 0.0:
        return objective, 0.0
    shift = _UNIT * (point.most + loss.span)
    rounding = loss.moved_by(shift, cost) + _UNIT * point.most * point.total
    if not rounding <= _NEGLIGIBLE * tol * objective:
        terms = point.terms()
        shifts = _UNIT * (terms + loss.span)
        rounding = loss.moved_at(point.scores, shifts, cost)
        rounding += _UNIT * float(terms.max()) * point.total
    if rounding <= _NEGLIGIBLE * tol * objective:
        rounding = 0.0
    return objective, min(max((objective - lower + rounding) / objective, 0.0), 1.0)
