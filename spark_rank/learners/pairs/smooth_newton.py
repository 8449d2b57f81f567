"""Compiled Newton method for ``min_w ½‖w‖² + R(Φw)``, R hinge costs of pairs, few features.

With power 1 the hinges are smoothed over a zone around their kinks; with power 2 they are already
smooth. At any w, with v the smoothed gradient of R, the plane of the smoothed slopes proves that
the minimum is at most ``slack + ½‖w + v‖²`` below the objective. The slack is mostly of second
order in the width of the zone, Newton's method makes the other term vanish, and the zone is
narrowed until the sum is within the tolerance. The second derivative is piecewise constant: if it
is that of the minimum, one step reaches the minimum.

References
----------
Nesterov: Smooth minimization of non-smooth functions, Mathematical Programming 103, 2005.
Madsen, Nielsen: A finite smoothing algorithm for linear ℓ1 estimation, SIAM J. Optim. 3, 1993.
Chapelle: Training a support vector machine in the primal, Neural Computation 19, 2007.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spark_rank.compiled import njit
from spark_rank.learners.base import FloatArray
from spark_rank.learners.compiled.dot import dot
from spark_rank.learners.pairs.hinges import (
    PairHinges,
    Sorted,
    evaluate,
    half_curvature,
    pairs_inside,
    room_for,
    sort_scores,
)

_SLACK_SHARE = 0.4  # of the tolerance; the rest is for the steps
_SLACK_OF_A_ZONE = 24.0  # evenly spread pairs cost their number times width over 24
_FIRST_NARROWING = 1.0 / 15.0
_MOST_NARROWING = 0.1
_LEAST_NARROWING = 0.9
_FLAT_ENOUGH = 0.3  # the line search stops where the slope is this share of the one it began with
_MAX_TRIALS = 30
_PATIENCE = 100  # rounds without halving the gap, after which rounding limits the result
_BLOCK = 4
_LEAST_PIVOT = 1e-14  # share of a diagonal entry


class NewtonSolution(NamedTuple):
    """The solution; `plane_slope` and `plane_constant` are a plane under R.

    The plane proves the last bound: ``R(h) ≥ plane_slope·h + plane_constant``.
    """

    coef: FloatArray
    objective: float
    gap: float
    n_iter: int
    converged: bool
    plane_slope: FloatArray
    plane_constant: float


class _Point(NamedTuple):
    """The current point: w, its scores, the smoothed gradient of R, and ``w + v``.

    `origin` and `step` are the ray of the line search.
    """

    coef: FloatArray
    scores: FloatArray
    pulls: FloatArray
    lean: FloatArray
    origin: FloatArray
    step: FloatArray


@njit(cache=True, nogil=True, error_model="numpy")
def minimise_by_newton(
    features: FloatArray, hinges: PairHinges, tol: float, max_iter: int
) -> NewtonSolution:
    """Minimise to a relative gap of `tol`, or for `max_iter` steps, or until rounding stops it.

    `features` is Φ, m×d with centred columns. A step costs O(m d² + d³) and a few evaluations of
    O(m d); memory is O(m d). If numbers overflow, the objective is not finite.
    """
    m, d = features.shape
    room = room_for(hinges)
    point = _Point(np.zeros(d), np.empty(m), np.empty(m), np.empty(d), np.zeros(d), np.zeros(d))
    products, hessian = np.empty((m, d)), np.empty((d, d))
    width = _first_width(hinges)
    cost, slack = _move(features, hinges, room, point, 0.0, width)
    best_coef = np.zeros(d)
    best, lower, halved = np.inf, 0.0, np.inf
    n_iter = waited = 0
    narrowed = False
    while True:
        objective = cost + 0.5 * dot(point.coef, point.coef)
        distance = 0.5 * dot(point.lean, point.lean)
        if not objective >= best:  # a NaN is a result too
            best = objective
            for a in range(d):
                best_coef[a] = point.coef[a]
        lower = max(lower, objective - slack - distance)
        gap = (best - lower) / best if best > lower else 0.0
        if gap <= 0.5 * halved:
            halved, waited = gap, n_iter
        done = gap <= tol or n_iter == max_iter or n_iter - waited > _PATIENCE
        if done or not np.isfinite(objective + distance):
            break
        target = _SLACK_SHARE * tol * objective
        if slack > max(target, distance) and not narrowed:
            change = np.sqrt(target / slack)
            width *= min(max(change, _MOST_NARROWING), _LEAST_NARROWING)
            cost, slack = evaluate(hinges, room, width, point.pulls)
            _set_lean(features, point)
            narrowed = True
            continue
        narrowed = False
        n_iter += 1
        _set_step(features, hinges, room, point, width, products, hessian)
        if n_iter == 1:
            width = _second_width(hinges, room, width, target)
        cost, slack = _search(features, hinges, room, point, width)
    constant = cost - slack - dot(point.pulls, point.scores) + dot(point.pulls, hinges.shift)
    if not np.isfinite(objective + distance):
        best = np.nan
    return NewtonSolution(best_coef, best, gap, n_iter, gap <= tol, point.pulls, constant)


@njit(cache=True, nogil=True, error_model="numpy")
def _first_width(hinges: PairHinges) -> float:
    """Return a width with which most pairs at ``w = 0`` are in the zone: a ridge regression."""
    spread = np.sqrt(dot(hinges.shift, hinges.shift) / hinges.shift.shape[0])
    # any width works if there is nothing to learn
    return float(2.0 * spread + 4.0 * max(-hinges.margin, 0.0)) or 1.0


@njit(cache=True, nogil=True, error_model="numpy")
def _second_width(hinges: PairHinges, room: Sorted, width: float, target: float) -> float:
    """Return the width that gives the wanted slack, if pairs are as dense as in the first zone."""
    density = max(pairs_inside(room), 1) / width
    wanted = np.sqrt(_SLACK_OF_A_ZONE * target / (hinges.weight * density))
    return float(min(max(wanted, _FIRST_NARROWING * width), width))


@njit(cache=True, nogil=True, error_model="numpy")
def _set_step(
    features: FloatArray,
    hinges: PairHinges,
    room: Sorted,
    point: _Point,
    width: float,
    products: FloatArray,
    hessian: FloatArray,
) -> None:
    """Write Newton's step; `products` and `hessian` are room for it. O(m d² + d³)."""
    curvature = 2.0 * hinges.weight if hinges.power == 2 else hinges.weight / width
    half_curvature(hinges, room, features, products)
    _set_hessian(features, products, curvature, hessian)
    for a in range(point.step.shape[0]):
        point.step[a] = -point.lean[a]
    _solve_positive(hessian, point.step)


@njit(cache=True, nogil=True, error_model="numpy")
def _move(
    features: FloatArray,
    hinges: PairHinges,
    room: Sorted,
    point: _Point,
    length: float,
    width: float,
) -> tuple[float, float]:
    """Go to ``origin + length · step``; return cost and slack there. O(m d)."""
    for a in range(point.coef.shape[0]):
        point.coef[a] = point.origin[a] + length * point.step[a]
    for i in range(features.shape[0]):
        point.scores[i] = hinges.shift[i] + dot(features[i], point.coef)
    sort_scores(hinges, point.scores, room)
    cost, slack = evaluate(hinges, room, width, point.pulls)
    _set_lean(features, point)
    return cost, slack


@njit(cache=True, nogil=True, error_model="numpy")
def _set_lean(features: FloatArray, point: _Point) -> None:
    lean, pulls = point.lean, point.pulls
    for a in range(lean.shape[0]):
        lean[a] = point.coef[a]
    for i in range(features.shape[0]):
        pull = pulls[i]
        for a in range(lean.shape[0]):
            lean[a] += pull * features[i, a]


@njit(cache=True, nogil=True, error_model="numpy")
def _search(
    features: FloatArray, hinges: PairHinges, room: Sorted, point: _Point, width: float
) -> tuple[float, float]:
    """Move along the step to where the smoothed objective is flat; return cost and slack there.

    The objective is convex: doubling brackets the minimum, false position with safeguards narrows
    the bracket. The whole step is tried first and usually suffices.
    """
    for a in range(point.coef.shape[0]):
        point.origin[a] = point.coef[a]
    low, low_slope = 0.0, dot(point.lean, point.step)
    high, high_slope = np.inf, 0.0
    flat = _FLAT_ENOUGH * abs(low_slope)
    length = 1.0
    cost = slack = np.inf
    for _ in range(_MAX_TRIALS):
        cost, slack = _move(features, hinges, room, point, length, width)
        slope = dot(point.lean, point.step)
        if abs(slope) <= flat:
            break
        if slope < 0.0:
            low, low_slope = length, slope
        else:
            high, high_slope = length, slope
        if high == np.inf:
            length = 2.0 * length
        else:
            span = high - low
            length = low - span * low_slope / (high_slope - low_slope)
            length = min(max(length, low + 0.1 * span), high - 0.1 * span)
    return cost, slack


@njit(cache=True, nogil=True, error_model="numpy")
def _set_hessian(
    features: FloatArray, products: FloatArray, curvature: float, hessian: FloatArray
) -> None:
    """Write the lower half of ``I + curvature (XᵀZ + ZᵀX)``. O(m d²), several rows at a time."""
    m, d = features.shape
    hessian.fill(0.0)
    whole = m - m % _BLOCK
    for i in range(0, whole, _BLOCK):
        for a in range(d):
            first, second = products[i, a], products[i + 1, a]
            third, fourth = products[i + 2, a], products[i + 3, a]
            for b in range(d):
                hessian[a, b] += (first * features[i, b] + second * features[i + 1, b]) + (
                    third * features[i + 2, b] + fourth * features[i + 3, b]
                )
    for i in range(whole, m):
        for a in range(d):
            for b in range(d):
                hessian[a, b] += products[i, a] * features[i, b]
    for a in range(d):
        for b in range(a + 1):
            hessian[a, b] = curvature * (hessian[a, b] + hessian[b, a])
        hessian[a, a] += 1.0


@njit(cache=True, nogil=True, error_model="numpy")
def _solve_positive(matrix: FloatArray, right: FloatArray) -> None:
    """Solve in place by Cholesky's method; reads and overwrites the lower half. O(d³).

    A pivot that is lost to rounding is raised: the result is still a descent direction.
    """
    d = right.shape[0]
    for i in range(d):
        row = matrix[i]
        for j in range(i):
            row[j] = (row[j] - dot(row[:j], matrix[j, :j])) / matrix[j, j]
        pivot, least = row[i] - dot(row[:i], row[:i]), _LEAST_PIVOT * row[i]
        row[i] = np.sqrt(least if pivot < least else pivot)
        right[i] = (right[i] - dot(row[:i], right[:i])) / row[i]
    for i in range(d - 1, -1, -1):
        right[i] /= matrix[i, i]
        for k in range(i):
            right[k] -= matrix[i, k] * right[i]
