"""Cutting-plane method with line search for ``min_w ½‖w‖² + R(Φw)``, R convex and at least 0.

R is known through an oracle: its value and one subgradient at given scores. Every answer is a
plane under R; the planes collected so far give a lower bound of the minimum and the point that
minimises norm plus planes. A line search between the best point so far and that one gives the
next best point and an upper bound; both ends of it give the next two planes. The difference of
the bounds certifies the distance to the optimum.

References
----------
Teo, Vishwanathan, Smola, Le: Bundle methods for regularized risk minimization, JMLR 11, 2010.
Franc, Sonnenburg: Optimized cutting plane algorithm for large-scale risk minimization, JMLR 10,
2009 (the line search).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from spark_rank.learners.base import FloatArray
from spark_rank.learners.pairs.cutting_planes import Bound, CuttingPlanes, Iterate
from spark_rank.learners.pairs.losses import PairLoss

GramProduct = Callable[[FloatArray], FloatArray]

_FLAT_ENOUGH = 0.1  # the line search stops where the slope is this share of the one it began with
_MAX_BISECTIONS = 10
_MAX_DOUBLINGS = 20
_EPSILON = float(np.finfo(np.float64).eps)
_NEGLIGIBLE = 1e-2  # rounding of a bound below this share of the tolerance is ignored
_PATIENCE = 400  # rounds without halving the gap, after which rounding limits the result


class Solution(NamedTuple):
    """``w = Φᵀ dual`` with its objective and certified gap.

    Attributes
    ----------
    dual, scores : m coefficients, which sum to 0, and ``Φw``.
    objective : ``½‖w‖² + R(Φw)``.
    gap : certified ``(objective − lower bound) / objective``.
    n_iter : number of rounds.
    converged : whether the gap is within the tolerance.
    """

    dual: FloatArray
    scores: FloatArray
    objective: float
    gap: float
    n_iter: int
    converged: bool


class Plane(NamedTuple):
    """``R(h) ≥ slope·h + constant`` for all h; the constant may be off by `rounding`."""

    slope: FloatArray
    constant: float
    rounding: float = 0.0


class _Point(NamedTuple):
    """An iterate with the objective and the oracle's answer there."""

    iterate: Iterate
    objective: float
    loss: float
    subgradient: FloatArray

    def plane(self) -> Plane:
        """Return the plane that touches R here."""
        constant = self.loss - float(self.subgradient @ self.iterate.scores)
        terms = float(np.abs(self.subgradient) @ np.abs(self.iterate.scores))
        return Plane(self.subgradient, constant, _EPSILON * (self.loss + terms))


# a sum that overflows is reported by `CuttingPlanes.add`
@np.errstate(over="ignore", invalid="ignore")
def minimise(
    loss: PairLoss,
    gram_product: GramProduct,
    n_examples: int,
    *,
    tol: float,
    max_iter: int,
    known: Plane | None = None,
) -> Solution:
    """Minimise to a relative duality gap of `tol`, or for `max_iter` rounds.

    `gram_product` maps a vector g to ``K g = Φ Φᵀ g``. A round costs two such products, a few
    calls of the loss and O(m n) for n stored planes; memory is O(m n). With a `known` plane under
    R, from another method, the search begins where norm plus plane is least. The rounds end early
    if rounding prevents further progress.
    """
    zeros = np.zeros(n_examples)
    best = _evaluate(Iterate(zeros, zeros, 0.0), loss)
    if best.objective <= 0.0:
        return Solution(zeros, zeros, 0.0, 0.0, 0, True)
    planes = CuttingPlanes(n_examples)
    _add_plane(planes, best.plane(), gram_product)
    if known is not None:
        image = gram_product(known.slope)
        planes.add(known.slope, image, known.constant, known.rounding)
        half_norm = max(0.5 * float(known.slope @ image), 0.0)
        start = _evaluate(Iterate(-known.slope, -image, half_norm), loss)
        best = min(best, start, key=_objective)
    progress = _Progress(tol, max_iter)
    while True:
        iterate, bound = planes.minimise()
        progress.note(best.objective, bound)
        if progress.is_over(best.objective, bound):
            return _solution(best, progress, loss, gram_product)
        model = _evaluate(iterate, loss)
        previous, best = best, _search(best, model, loss)
        _add_plane(planes, model.plane(), gram_product)
        if best is not previous and best is not model:
            _add_plane(planes, best.plane(), gram_product)


class _Progress:
    """The rounds so far, the greatest lower bound, and whether more rounds can help."""

    def __init__(self, tol: float, max_iter: int) -> None:
        self.tol = tol
        self.n_iter = 0
        self.exact = True  # whether rounding was too little to be noticed
        self._max_iter = max_iter
        self._lower = 0.0
        self._halved, self._halved_at = np.inf, 0

    def note(self, objective: float, bound: Bound) -> None:
        """Count a round, and raise the lower bound by the increase beyond rounding."""
        self.n_iter += 1
        sure = bound.value
        if not bound.rounding <= _NEGLIGIBLE * self.tol * objective:
            sure -= bound.rounding
            self.exact = False
        self._lower = max(self._lower, sure)
        gap = self.gap(objective)
        if gap <= 0.5 * self._halved:
            self._halved, self._halved_at = gap, self.n_iter

    def is_over(self, objective: float, bound: Bound) -> bool:
        """Return whether the tolerance is reached or unreachable, or the rounds are used up."""
        stalled = self.n_iter - self._halved_at > _PATIENCE
        # more than rounding accounts for: the factor of the programme has lost its digits
        crossed = bound.value > objective * (1.0 + self.tol)
        return (
            self.gap(objective) <= self.tol or self.n_iter == self._max_iter or stalled or crossed
        )

    def gap(self, objective: float) -> float:
        """Return the certified gap: the share of the objective above the lower bound."""
        # rounding may put either bound on the wrong side of the other, or of 0
        return (objective - self._lower) / objective if objective > max(self._lower, 0.0) else 0.0


def _solution(
    best: _Point, progress: _Progress, loss: PairLoss, gram_product: GramProduct
) -> Solution:
    """Return the best point; compute its scores and objective anew if rounding may matter."""
    if not progress.exact:
        dual = best.iterate.dual
        scores = gram_product(dual)
        best = _evaluate(Iterate(dual, scores, max(0.5 * float(dual @ scores), 0.0)), loss)
    gap = progress.gap(best.objective)
    dual, scores, _ = best.iterate
    return Solution(dual, scores, best.objective, gap, progress.n_iter, gap <= progress.tol)


def _evaluate(iterate: Iterate, loss: PairLoss) -> _Point:
    value, subgradient = loss(iterate.scores)
    return _Point(iterate, iterate.half_norm + value, value, subgradient)


def _add_plane(planes: CuttingPlanes, plane: Plane, gram_product: GramProduct) -> None:
    planes.add(plane.slope, gram_product(plane.slope), plane.constant, plane.rounding)


def _search(start: _Point, end: _Point, loss: PairLoss) -> _Point:
    """Return the best point found on the ray from `start` through `end`.

    The objective is convex along it: doubling brackets the minimum, false position with
    safeguards narrows the bracket. Costs a loss evaluation a step and no product with K.
    """
    line = _Line(start.iterate, end.iterate, loss)
    low, low_slope = 0.0, line.slope(0.0, start)
    high, high_slope = 1.0, line.slope(1.0, end)
    flat = _FLAT_ENOUGH * abs(low_slope)
    best = min(start, end, key=_objective)
    if low_slope >= 0.0:
        return best
    for _ in range(_MAX_DOUBLINGS):
        if high_slope >= 0.0:
            break
        low, low_slope, high = high, high_slope, 2.0 * high
        point = line.point(high)
        high_slope = line.slope(high, point)
        best = min(best, point, key=_objective)
    for _ in range(_MAX_BISECTIONS if high_slope > 0.0 else 0):
        if min(abs(low_slope), abs(high_slope)) <= flat:
            break
        step = _false_position(low, low_slope, high, high_slope)
        point = line.point(step)
        best = min(best, point, key=_objective)
        slope = line.slope(step, point)
        if slope < 0.0:
            low, low_slope = step, slope
        else:
            high, high_slope = step, slope
    return best


def _objective(point: _Point) -> float:
    return point.objective


def _false_position(low: float, low_slope: float, high: float, high_slope: float) -> float:
    """Return where the chord of the slopes crosses 0, kept away from the ends of the bracket."""
    width = high - low
    step = low - width * low_slope / (high_slope - low_slope)
    return min(max(step, low + 0.1 * width), high - 0.1 * width)


class _Line:
    """The objective on the ray from one iterate through another."""

    def __init__(self, start: Iterate, end: Iterate, loss: PairLoss) -> None:
        self._start = start
        self._loss = loss
        self._dual = end.dual - start.dual
        self._scores = end.scores - start.scores
        # d/dt ½‖w + t v‖² = w·v + t ‖v‖²
        self._inner = float(self._dual @ start.scores)
        self._norm = max(float(self._dual @ self._scores), 0.0)

    def point(self, step: float) -> _Point:
        """Return the point at `step`, 0 being the start and 1 the end."""
        dual = self._start.dual + step * self._dual
        scores = self._start.scores + step * self._scores
        # computed anew, not by the parabola, because rounding errors would add up over searches
        half_norm = max(0.5 * float(dual @ scores), 0.0)
        return _evaluate(Iterate(dual, scores, half_norm), self._loss)

    def slope(self, step: float, point: _Point) -> float:
        """Return a subderivative of the objective at `step`, where `point` is."""
        along = float(point.subgradient @ self._scores)
        return self._inner + step * self._norm + along
