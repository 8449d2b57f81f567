"""Linear MPRank for many users in one compiled call, with the results of `MPRank` for each user.

Large systems are factorised in single precision, which takes half the time. The solution is then
refined with residuals in double precision until it is as precise as one in double precision.

References
----------
Wilkinson: Rounding Errors in Algebraic Processes, 1963. Langou et al.: Exploiting the Performance
of 32 Bit Floating Point Arithmetic in Obtaining 64 Bit Accuracy, SC 2006.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spark_rank.compiled import njit
from spark_rank.learners.base import FloatArray
from spark_rank.learners.compiled.dot import dot

IntArray = NDArray[np.integer[Any]]
BoolArray = NDArray[np.bool_]

AnyArray = NDArray[np.floating[Any]]  # of either precision

_SMALL = 64  # up to this size, calling LAPACK's Cholesky costs more than a plain one
_LARGE = 50  # from this size, refining costs less than single precision saves
# of the refined solution's residual; further steps than these gain nothing
_ENOUGH, _MOST_STEPS = 1e-16, 8
_BLOCK = 16
_FAINT = 1e-12  # share of a trace; a smaller ridge is lost in rounding, and left to MPRank


@njit(cache=True, nogil=True)
def fit_users(
    matrix: AnyArray,
    rows: IntArray,
    excluded: IntArray,
    targets: FloatArray,
    ends: IntArray,
    n_train: IntArray,
    ridges: FloatArray,
    learned: BoolArray,
    coefs: FloatArray,
    intercepts: FloatArray,
    scores: FloatArray,
) -> None:
    """Fit every user who is marked in `learned`, and score all of the user's examples.

    User u has the examples from ``ends[u]`` to ``ends[u + 1]``, the first ``n_train[u]`` for
    training. The features of example i are row ``rows[i]`` of `matrix`, where the column
    ``excluded[u]`` counts as 0 unless it is negative. The mark is removed from users who cannot be
    learned. O(m d min(m, d)) for a user with m training examples.
    """
    longest = 0
    for user in range(len(learned)):
        longest = max(longest, ends[user + 1] - ends[user])
    room = np.empty((longest, matrix.shape[1]), matrix.dtype)
    for user in range(len(learned)):
        if not learned[user]:
            continue
        own = slice(ends[user], ends[user + 1])
        X = room[: ends[user + 1] - ends[user]]
        _gather(matrix, rows[own], excluded[user], X)
        y = targets[ends[user] : ends[user] + n_train[user]]
        learned[user] = _fit(X[: len(y)], y, ridges[user], coefs[user], intercepts, user)
        if learned[user]:
            _score(X, coefs[user], intercepts[user], scores[own])
            learned[user] = np.isfinite(scores[own].sum())


@njit(cache=True, nogil=True)
def _gather(matrix: AnyArray, rows: IntArray, excluded: int, X: AnyArray) -> None:
    for place in range(len(rows)):
        row = rows[place]
        for column in range(matrix.shape[1]):
            X[place, column] = matrix[row, column]
        if excluded >= 0:
            X[place, excluded] = 0.0


@njit(cache=True, nogil=True)
def _score(X: AnyArray, coef: FloatArray, intercept: float, scores: FloatArray) -> None:
    """Write w·x + b for every row, which is converted to double just before the product."""
    wide = np.empty(len(coef))
    for place in range(len(scores)):
        for column in range(len(coef)):
            wide[column] = X[place, column]
        scores[place] = dot(wide, coef) + intercept


@njit(cache=True, nogil=True)
def _fit(
    X: AnyArray, y: FloatArray, ridge: float, coef: FloatArray, intercepts: FloatArray, user: int
) -> bool:
    """Write weights and intercept of one user: eq. 11, or its dual if that is smaller."""
    m, d = X.shape
    means, centred = _centred(X)
    mean = y.mean()
    primal = d < m
    right = np.dot(y - mean, centred) if primal else y - mean
    if len(right) < _LARGE or not _solve_refined(centred, primal, right, ridge):
        rows = np.ascontiguousarray(centred.T) if primal else centred
        if not _solve(_system(rows, ridge), right, ridge):
            return False
    coef[:] = right if primal else np.dot(right, centred)
    intercepts[user] = mean - np.dot(means, coef)
    return True


@njit(cache=True, nogil=True)
def _centred(X: AnyArray) -> tuple[FloatArray, FloatArray]:
    """Return the means of the columns, and X minus these; array expressions would make copies."""
    m, d = X.shape
    means, centred = np.zeros(d), np.empty((m, d))
    for i in range(m):
        for j in range(d):
            means[j] += X[i, j]
    for j in range(d):
        means[j] /= m
    for i in range(m):
        for j in range(d):
            centred[i, j] = X[i, j] - means[j]
    return means, centred


@njit(cache=True, nogil=True)
def _system(A: AnyArray, ridge: float | np.float32) -> AnyArray:
    """Return A Aᵀ + ridge·I; if it is large, only the lower triangle and blocks on the diagonal."""
    system = np.empty((len(A), len(A)), A.dtype)
    for start in range(0, len(A), _SMALL):
        stop = min(start + _SMALL, len(A))
        system[start:stop, :stop] = np.dot(A[start:stop], A[:stop].T)
    for i in range(len(A)):
        system[i, i] += ridge
    return system


@njit(cache=True, nogil=True)
def _solve_refined(X: FloatArray, primal: bool, right: FloatArray, ridge: float) -> bool:
    """Replace `right` by (X Xᵀ + ridge·I)⁻¹ right, or with XᵀX instead of X Xᵀ.

    Returns False, and changes nothing, if single precision is not enough. Each step solves for the
    residual. Residuals fall by an almost constant factor, so the next one can be predicted.
    """
    system = _system(_turned(X) if primal else X.astype(np.float32), np.float32(ridge))
    if not _FAINT * np.trace(system) <= ridge < np.inf:
        return False
    upper = _large_root(system)
    if len(upper) == 0:
        return False
    lower = np.ascontiguousarray(upper.T)
    size = before = np.abs(right).max()
    solution, rest = np.zeros(len(right)), right.copy()
    for _ in range(_MOST_STEPS):
        solution += _step(upper, lower, rest)
        rest = right - ridge * solution
        if primal:
            rest -= np.dot(np.dot(X, solution), X)
        else:
            rest -= np.dot(X, np.dot(solution, X))
        now = np.abs(rest).max()
        if not now <= 0.1 * before:
            return False
        if now * now <= _ENOUGH * size * before:
            right[:] = solution + _step(upper, lower, rest)
            return True
        before = now
    return False


@njit(cache=True, nogil=True)
def _turned(X: FloatArray) -> AnyArray:
    """Return Xᵀ in single precision, transposed in blocks that stay in the cache."""
    m, d = X.shape
    turned = np.empty((d, m), np.float32)
    for start in range(0, m, _BLOCK):
        for j in range(d):
            for i in range(start, min(start + _BLOCK, m)):
                turned[j, i] = X[i, j]
    return turned


@njit(cache=True, nogil=True)
def _step(upper: AnyArray, lower: AnyArray, rest: FloatArray) -> FloatArray:
    """Return the solution of the system UᵀU x = rest, with L = Uᵀ; all loops run along rows."""
    scale = np.abs(rest).max()
    if scale == 0.0:
        return rest
    x = (rest / scale).astype(np.float32)
    n = len(x)
    for i in range(n):
        x[i] /= upper[i, i]
        for j in range(i + 1, n):
            x[j] -= upper[i, j] * x[i]
    for i in range(n - 1, -1, -1):
        x[i] /= lower[i, i]
        for j in range(i):
            x[j] -= lower[i, j] * x[i]
    return x * scale


@njit(cache=True, nogil=True)
def _solve(system: AnyArray, right: FloatArray, ridge: float) -> bool:
    """Replace `right` by the solution of the system; return False if it is lost in rounding."""
    if not _FAINT * np.trace(system) <= ridge < np.inf:
        return False
    upper = _small_root(system) if len(system) <= _SMALL else _large_root(system)
    n = len(right)
    if len(upper) == 0:
        return False
    for i in range(n):
        right[i] /= upper[i, i]
        for j in range(i + 1, n):
            right[j] -= upper[i, j] * right[i]
    for i in range(n - 1, -1, -1):
        right[i] = (right[i] - dot(upper[i][i + 1 :], right[i + 1 :])) / upper[i, i]
    return True


@njit(cache=True, nogil=True)
def _small_root(system: AnyArray) -> AnyArray:
    """Return the upper U with UᵀU the system, which is overwritten; empty if there is none.

    Each row is subtracted from all that follow, so all loops run along rows.
    """
    n = len(system)
    for k in range(n):
        pivot = system[k, k]
        if not pivot > 0.0:
            return system[:0]
        row = system[k]
        scale = 1.0 / np.sqrt(pivot)
        for j in range(k, n):
            row[j] *= scale
        for i in range(k + 1, n):
            share, below = row[i], system[i]
            for j in range(i, n):
                below[j] -= share * row[j]
    return system


@njit(cache=True, nogil=True)
def _large_root(system: AnyArray) -> AnyArray:
    """Do what `_small_root` does, by LAPACK, which reads the lower triangle."""
    try:
        root = np.linalg.cholesky(system)
    except Exception:  # noqa: BLE001 - the compiler knows no narrower one
        return system[:0]
    return np.ascontiguousarray(root.T)


@njit(cache=True, nogil=True)
def shift_users(
    ratings: FloatArray,
    offsets: FloatArray,
    ends: IntArray,
    n_train: IntArray,
    learned: BoolArray,
    intercepts: FloatArray,
    scores: FloatArray,
) -> None:
    """Score all examples of users marked in `learned`: the offset plus the mean of y − offset."""
    for user in range(len(learned)):
        if learned[user]:
            total = 0.0
            for row in range(ends[user], ends[user] + n_train[user]):
                total += ratings[row] - offsets[row]
            intercepts[user] = total / n_train[user]
            for row in range(ends[user], ends[user + 1]):
                scores[row] = offsets[row] + intercepts[user]
            learned[user] = np.isfinite(scores[ends[user] : ends[user + 1]].sum())


@njit(cache=True, nogil=True)
def can_learn(ratings: FloatArray, ends: IntArray, n_train: IntArray, least: int) -> BoolArray:
    """Tell for every user whether there are `least` training ratings, not all of them equal."""
    able = np.zeros(len(n_train), np.bool_)
    for user in range(len(n_train)):
        own = ratings[ends[user] : ends[user] + n_train[user]]
        able[user] = len(own) >= max(least, 1) and own.min() < own.max()
    return able
