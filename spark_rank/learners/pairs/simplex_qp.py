"""Compiled active-set solver for the small quadratic programme of the bundle method.

``min ½ βᵀGβ − bᵀβ`` over the simplex ``β ≥ 0, Σβ = 1``, with G positive semi-definite, often
singular, with entries many orders of magnitude apart. On the simplex, adding a constant to every
entry of G changes nothing. With ``M = G + shift`` affinely independent planes of a support give a
positive definite ``M_SS``. Its Cholesky factor is kept from one call to the next and updated for
every change of the support in O(s²) (Wolfe's minimum-norm-point method). A plane that depends on
those in use replaces one of them. Any feasible β is a valid certificate, so rounding here can cost
time but not correctness.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spark_rank.compiled import njit
from spark_rank.learners.base import FloatArray

IntArray = NDArray[np.int64]

FACTOR_LOST = -1  # to be rebuilt from the planes of positive weight
_DEPENDENT = 1e-13
_OPTIMALITY = 1e-12


class Programme(NamedTuple):
    """G, b, β, and the Cholesky factor of M on the planes ``support[:size]``.

    The arrays have capacity for more planes.
    """

    gram: FloatArray
    linear: FloatArray
    weights: FloatArray
    factor: FloatArray
    support: IntArray


@njit(cache=True, nogil=True, error_model="numpy")
def solve_simplex_qp(programme: Programme, n_planes: int, size: int, shift: float) -> int:
    """Improve the weights to the optimum; return the size of their support, or ``FACTOR_LOST``.

    The weights are feasible in any case. O(n s) per change of the support, with n planes and s of
    them in the support; there are few changes from one call to the next.
    """
    target = np.empty(n_planes)
    direction = np.empty(n_planes)
    gradient = np.empty(n_planes)
    for _ in range(2 * n_planes + 50):
        entering = _entering_plane(programme, size, gradient)
        if entering < 0:
            break
        while not append_plane(programme, size, shift, entering):
            size = _exchange(programme, size, entering, direction)
            if size == FACTOR_LOST:
                return size
        size += 1
        while True:
            if not _minimise_on_support(programme, size, target, direction):
                return FACTOR_LOST
            was_unused = programme.weights[entering] == 0.0
            blocking = _move_towards(programme, size, target)
            if blocking < 0:
                break
            if was_unused and programme.support[blocking] == entering:
                # the predicted descent fails, so only rounding errors remain
                return _remove_plane(programme, size, blocking)
            size = _remove_plane(programme, size, blocking)
    return size


@njit(cache=True, nogil=True, error_model="numpy")
def append_plane(programme: Programme, size: int, shift: float, plane: int) -> bool:
    """Write `plane` and its row of the Cholesky factor behind the support, in O(s²).

    Returns whether it is affinely independent of the support; if not, the row has a tiny pivot.
    """
    gram, factor, support = programme.gram, programme.factor, programme.support
    norm = gram[plane, plane] + shift
    pivot = norm
    for row in range(size):
        entry = gram[plane, support[row]] + shift
        for k in range(row):
            entry -= factor[size, k] * factor[row, k]
        entry /= factor[row, row]
        factor[size, row] = entry
        pivot -= entry * entry
    factor[size, size] = np.sqrt(max(pivot, _DEPENDENT * norm))
    support[size] = plane
    return bool(pivot > _DEPENDENT * norm)


@njit(cache=True, nogil=True, error_model="numpy")
def _exchange(programme: Programme, size: int, entering: int, direction: FloatArray) -> int:
    """Replace a plane of the support by one that depends on the support; return the new size.

    With u from ``M_SS u = M_S,entering``, the objective falls linearly along (−u, 1), so the move
    ends where the first weight is 0. `append_plane` has stored ``L⁻¹ M_S,entering`` behind the
    factor.
    """
    weights, factor, support = programme.weights, programme.factor, programme.support
    direction[:size] = factor[size, :size]
    _solve_transposed(factor, size, direction)
    step = np.inf
    blocking = -1
    for row in range(size):
        if direction[row] > 0.0 and weights[support[row]] < step * direction[row]:
            step = weights[support[row]] / direction[row]
            blocking = row
    if blocking < 0:
        return FACTOR_LOST
    for row in range(size):
        weights[support[row]] = max(weights[support[row]] - step * direction[row], 0.0)
    weights[support[blocking]] = 0.0
    weights[entering] += step
    return _remove_plane(programme, size, blocking)


@njit(cache=True, nogil=True, error_model="numpy")
def _entering_plane(programme: Programme, size: int, gradient: FloatArray) -> int:
    """Return the plane outside the support with the steepest descent, or −1 if there is none."""
    weights, support = programme.weights, programme.support
    for k in range(gradient.shape[0]):
        gradient[k] = -programme.linear[k]
    for row in range(size):
        plane = support[row]
        for k in range(gradient.shape[0]):
            gradient[k] += weights[plane] * programme.gram[plane, k]
    level = 0.0
    scale = 0.0
    for row in range(size):
        plane = support[row]
        level += weights[plane] * gradient[plane]
        scale += weights[plane] * (abs(gradient[plane]) + abs(programme.linear[plane]))
    best = -1
    lowest = level - _OPTIMALITY * scale
    for k in range(gradient.shape[0]):
        if weights[k] == 0.0 and gradient[k] < lowest:
            lowest = gradient[k]
            best = k
    return best


@njit(cache=True, nogil=True, error_model="numpy")
def _minimise_on_support(
    programme: Programme, size: int, target: FloatArray, direction: FloatArray
) -> bool:
    """Write to `target` the minimum over the affine hull of the support: M β = b + μ1, Σβ = 1.

    Returns False if the factor is so ill-conditioned that there is no finite answer.
    """
    for row in range(size):
        target[row] = programme.linear[programme.support[row]]
        direction[row] = 1.0
    _solve(programme.factor, size, target)
    _solve(programme.factor, size, direction)
    multiplier = (1.0 - target[:size].sum()) / direction[:size].sum()
    for row in range(size):
        target[row] += multiplier * direction[row]
    return bool(np.isfinite(target[:size].sum()))


@njit(cache=True, nogil=True, error_model="numpy")
def _solve(factor: FloatArray, size: int, values: FloatArray) -> None:
    """Apply M⁻¹ in place, by two triangular systems."""
    for row in range(size):
        entry = values[row]
        for k in range(row):
            entry -= factor[row, k] * values[k]
        values[row] = entry / factor[row, row]
    _solve_transposed(factor, size, values)


@njit(cache=True, nogil=True, error_model="numpy")
def _solve_transposed(factor: FloatArray, size: int, values: FloatArray) -> None:
    """Apply L⁻ᵀ in place."""
    for row in range(size - 1, -1, -1):
        values[row] /= factor[row, row]
        for k in range(row):
            values[k] -= factor[row, k] * values[row]


@njit(cache=True, nogil=True, error_model="numpy")
def _move_towards(programme: Programme, size: int, target: FloatArray) -> int:
    """Move the weights to `target`, or as far as they stay positive.

    Returns the position in the support of the plane whose weight became 0, or −1 on arrival.
    """
    weights, support = programme.weights, programme.support
    step = 1.0
    blocking = -1
    for row in range(size):
        if target[row] <= 0.0:
            weight = weights[support[row]]
            ratio = weight / (weight - target[row]) if weight > 0.0 else 0.0
            if blocking < 0 or ratio < step:
                step = ratio
                blocking = row
    for row in range(size):
        plane = support[row]
        if blocking < 0:
            weights[plane] = target[row]
        else:
            weights[plane] = max(weights[plane] + step * (target[row] - weights[plane]), 0.0)
    if blocking >= 0:
        weights[support[blocking]] = 0.0
    return blocking


@njit(cache=True, nogil=True, error_model="numpy")
def _remove_plane(programme: Programme, size: int, position: int) -> int:
    """Drop a plane from the support; Givens rotations make the factor triangular again. O(s²)."""
    factor, support = programme.factor, programme.support
    for row in range(position, size - 1):
        support[row] = support[row + 1]
        for k in range(row + 2):
            factor[row, k] = factor[row + 1, k]
    size -= 1
    for column in range(position, size):
        length = np.hypot(factor[column, column], factor[column, column + 1])
        cosine = factor[column, column] / length
        sine = factor[column, column + 1] / length
        factor[column, column] = length
        for row in range(column + 1, size):
            left = factor[row, column]
            right = factor[row, column + 1]
            factor[row, column] = cosine * left + sine * right
            factor[row, column + 1] = cosine * right - sine * left
    return size
