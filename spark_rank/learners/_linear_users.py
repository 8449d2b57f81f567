"""Linear MPRank for many users in one compiled call: for each, what `MPRank` computes.

Compiled kernels are cached by the text of their own file: after a change to `dot`, touch this one.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from spark_rank.learners._dot import dot
from spark_rank.learners.base import FloatArray

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_SMALL = 64  # LAPACK's way into a Cholesky costs more than a plain one of this size


@njit(cache=True, nogil=True)
def fit_users(
    X: FloatArray,
    targets: FloatArray,
    ends: IntArray,
    n_train: IntArray,
    ridges: FloatArray,
    learned: BoolArray,
    coefs: FloatArray,
    intercepts: FloatArray,
    scores: FloatArray,
) -> None:
    """Fit every user who is to be `learned`, and score all of the user's rows.

    User u owns the rows from ``ends[u]`` to ``ends[u + 1]``, the first ``n_train[u]`` to learn
    from. Who cannot be learned after all is no longer marked as `learned`. O(m d min(m, d)) for
    a user with m of these rows.
    """
    for user in range(len(learned)):
        if not learned[user]:
            continue
        rows = X[ends[user] : ends[user + 1]]
        y = targets[ends[user] : ends[user] + n_train[user]]
        learned[user] = _fit(rows[: len(y)], y, ridges[user], coefs[user], intercepts, user)
        if learned[user]:
            own = np.dot(rows, coefs[user])
            own += intercepts[user]
            scores[ends[user] : ends[user + 1]] = own
            learned[user] = np.isfinite(own.sum())


@njit(cache=True, nogil=True)
def _fit(
    X: FloatArray, y: FloatArray, ridge: float, coef: FloatArray, intercepts: FloatArray, user: int
) -> bool:
    """Write weights and intercept of one user: eq. 11, or its dual where that is smaller."""
    m, d = X.shape
    means = np.zeros(d)
    for i in range(m):
        means += X[i]
    means /= m
    centred = np.empty((m, d))
    for i in range(m):
        centred[i] = X[i] - means
    mean = y.mean()
    primal = d < m
    system = _products(np.ascontiguousarray(centred.T) if primal else centred)
    right = np.dot(y - mean, centred) if primal else y - mean
    for i in range(len(system)):
        system[i, i] += ridge
    if not np.isfinite(np.trace(system)) or not _solve(system, right):
        return False
    coef[:] = right if primal else np.dot(right, centred)
    intercepts[user] = mean - np.dot(means, coef)
    return True


@njit(cache=True, nogil=True)
def _products(A: FloatArray) -> FloatArray:
    """Return A Aᵀ; of a large one only the lower triangle, and what is near it above."""
    products = np.empty((len(A), len(A)))
    for start in range(0, len(A), _SMALL):
        stop = min(start + _SMALL, len(A))
        products[start:stop, :stop] = np.dot(A[start:stop], A[:stop].T)
    return products


@njit(cache=True, nogil=True)
def _solve(system: FloatArray, right: FloatArray) -> bool:
    """Replace `right` by the solution of the system; False where that is not positive definite."""
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
def _small_root(system: FloatArray) -> FloatArray:
    """Return the upper U with UᵀU the system, which is overwritten; empty where there is none.

    Row by row, each taken off from all that follow: all loops run along rows.
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
def _large_root(system: FloatArray) -> FloatArray:
    """Return the same by LAPACK, which reads the lower triangle."""
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
    """Score all rows of every user who is to be `learned` by the offset and a mean of the rest."""
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
def told_apart(ratings: FloatArray, ends: IntArray, n_train: IntArray, least: int) -> BoolArray:
    """Tell of every user whether there are `least` ratings to learn from, not all of them equal."""
    able = np.zeros(len(n_train), np.bool_)
    for user in range(len(n_train)):
        own = ratings[ends[user] : ends[user] + n_train[user]]
        able[user] = len(own) >= max(least, 1) and own.min() < own.max()
    return able
