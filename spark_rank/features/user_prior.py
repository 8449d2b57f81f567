"""A normal prior of users' weights on given item vectors, estimated from sums over users.

``r_ui = mean + offset_i + z_i·w_u + noise`` with ``z_i = (1, factors)`` that are known, and
``w_u ~ N(m_u, S)``. The prior mean m_u is linear in what a user chose, as in `factor_model`: the
sum of the items' vectors and offsets over √n, and log n. A round goes over all users once: of each
it takes the posterior of the weights under the prior so far. Of the posteriors only sums are kept,
which may come from anywhere in any order; from them follow the regression on the choices, S, which
counts how uncertain the weights are, and the noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# ridge of the regression on choices, in users' worth of evidence; as in the driver's model
_CHOICE_RIDGE = 100.0
# at the start, in variances of the ratings: of a user's level, of all factors together, of noise
_START_LEVEL, _START_FACTORS, _START_NOISE = 0.1, 0.3, 0.5
# relative, of covariances and of the least noise
_ROUNDING = 1e-6
# numbers that are added up are multiples of this, and their products of its square: such sums are
# exact in whatever order, as long as they are below 2⁵³ of these
_GRAIN = 2.0**-12
# so many numbers in the systems that are solved at once
_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class UserPrior:
    """What is expected of users, and how far they and their ratings are from it.

    `slopes` belong to the columns that describe a choice: D sums of vectors, the sum of the
    offsets, the logarithm of the number of items.
    """

    slopes: FloatArray
    constants: FloatArray
    covariance: FloatArray
    noise: float

    @classmethod
    def start(cls, width: int) -> UserPrior:
        """Return where estimation begins: vectors have mean square 1, ratings variance 1."""
        variances = np.full(width, _START_FACTORS / max(width - 1, 1))
        variances[0] = _START_LEVEL
        return cls(np.zeros((width + 2, width)), np.zeros(width), np.diag(variances), _START_NOISE)

    def whitened(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return what takes vectors, slopes and constants into the prior's metric and noise's unit.

        With z → z·root and w → root⁻¹w the weights have covariance 1 and a rating has noise 1.
        """
        root = np.asarray(np.linalg.cholesky(self.covariance / self.noise), dtype=np.float64)
        slopes = np.asarray(np.linalg.solve(root, self.slopes.T).T, dtype=np.float64)
        return root, slopes, np.asarray(np.linalg.solve(root, self.constants))


@dataclass(frozen=True)
class UserSums:
    """Sums over users: products of (1, choice, posterior mean), covariances, misfits, ratings."""

    products: FloatArray
    covariances: FloatArray
    misfit: float
    ratings: float

    @classmethod
    def none(cls, width: int) -> UserSums:
        """Return the sums over no user."""
        size = 2 * width + 3
        return cls(np.zeros((size, size)), np.zeros((width, width)), 0.0, 0.0)

    @property
    def users(self) -> int:
        """Return the number of users."""
        return int(self.products[0, 0])

    def plus(self, other: UserSums) -> UserSums:
        """Return the sums over the users of both."""
        return UserSums(
            self.products + other.products,
            self.covariances + other.covariances,
            self.misfit + other.misfit,
            self.ratings + other.ratings,
        )

    def packed(self) -> bytes:
        """Return all numbers as bytes."""
        rest = np.array([self.misfit, self.ratings])
        parts = [self.products.ravel(), self.covariances.ravel(), rest]
        return np.concatenate(parts).astype("<f8").tobytes()

    @classmethod
    def unpacked(cls, content: bytes, width: int) -> UserSums:
        """Return the sums that `packed` has written."""
        size = 2 * width + 3
        products, covariances, rest = np.split(
            np.frombuffer(content, "<f8"), [size**2, size**2 + width**2]
        )
        return cls(
            products.reshape(size, size), covariances.reshape(width, width), *map(float, rest)
        )

    def prior(self) -> UserPrior:
        """Return the prior that follows: regression on the choices, and what it leaves over."""
        width, users = len(self.covariances), self.products[0, 0]
        means = self.products[0, 1:] / users
        around = self.products[1:, 1:] - users * np.outer(means, means)
        chosen, found = slice(0, width + 2), slice(width + 2, None)
        scale = np.sqrt(np.maximum(np.diag(around)[chosen] / users, 0.0))
        scale[scale < 1e-9] = 1.0
        gram = around[chosen, chosen] / np.outer(scale, scale) + _CHOICE_RIDGE * np.eye(width + 2)
        cross = around[chosen, found]
        slopes = np.linalg.solve(gram, cross / scale[:, None]) / scale[:, None]
        explained = slopes.T @ cross
        left = around[found, found] - explained - explained.T
        left += slopes.T @ around[chosen, chosen] @ slopes
        covariance = (left + self.covariances) / users
        covariance[np.diag_indices(width)] *= 1.0 + _ROUNDING
        noise = max(self.misfit / self.ratings, _ROUNDING)
        return UserPrior(slopes, means[found] - means[chosen] @ slopes, covariance, noise)


def sums_over_users(
    vectors: NDArray[np.float32],
    offsets: FloatArray,
    items: NDArray[np.int32],
    targets: FloatArray,
    ends: IntArray,
    prior: UserPrior,
) -> UserSums:
    """Return the sums over users with ratings; user u rated the items ends[u] to ends[u + 1].

    `vectors` are the items' factors without the 1; `targets` are ratings less mean and offset.
    """
    rated = np.flatnonzero(np.diff(ends))
    width = vectors.shape[1] + 1
    step = max(_AT_ONCE // width**2, 1)
    parts = (
        _sums(vectors, offsets, items, targets, ends, rated[first : first + step], prior)
        for first in range(0, len(rated), step)
    )
    return reduce(UserSums.plus, parts, UserSums.none(width))


def _sums(
    vectors: NDArray[np.float32],
    offsets: FloatArray,
    items: NDArray[np.int32],
    targets: FloatArray,
    ends: IntArray,
    users: IntArray,
    prior: UserPrior,
) -> UserSums:
    n, width = len(users), vectors.shape[1] + 1
    grams, rights = np.empty((n, width, width)), np.empty((n, width))
    chosen, squares = np.empty((n, width + 2)), np.empty(n)
    for row, (own, target) in enumerate(_ratings_of(items, targets, ends, users)):
        seen = np.ones((len(own), width))
        seen[:, 1:] = vectors[own]
        grams[row], rights[row] = seen.T @ seen, seen.T @ target
        chosen[row, :-2], chosen[row, -2] = seen.sum(axis=0), offsets[own].sum()
        squares[row] = target @ target
    sizes = ends[users + 1] - ends[users]
    chosen[:, :-1] /= np.sqrt(sizes)[:, None]
    chosen[:, -1] = np.log(sizes)
    expected = chosen @ prior.slopes + prior.constants
    precision = np.linalg.inv(prior.covariance)
    covariances = np.asarray(np.linalg.inv(precision + grams / prior.noise), dtype=np.float64)
    shifts = expected @ precision + rights / prior.noise
    means = np.einsum("uij,uj->ui", covariances, shifts)
    moments = covariances + means[:, :, None] * means[:, None, :]
    misfits = squares - 2.0 * (means * rights).sum(axis=1) + (grams * moments).sum(axis=(1, 2))
    rows = _grains(np.column_stack([np.ones(n), chosen, means]))
    return UserSums(
        rows.T @ rows,
        _grains(covariances, _GRAIN**2).sum(axis=0),
        float(_grains(misfits, _GRAIN**2).sum()),
        float(sizes.sum()),
    )


def _ratings_of(
    items: NDArray[np.int32], targets: FloatArray, ends: IntArray, users: IntArray
) -> Iterator[tuple[NDArray[np.int32], FloatArray]]:
    for user in users:
        own = slice(ends[user], ends[user + 1])
        yield items[own], targets[own]


def _grains(values: FloatArray, grain: float = _GRAIN) -> FloatArray:
    """Return the values, rounded to what can be added up without an error."""
    return np.asarray(np.rint(values / grain) * grain)
