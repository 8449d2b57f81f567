"""A normal prior of users' weights on given item vectors, estimated from sums over users.

``r_ui = mean + offset_i + z_i·w_u + noise`` with given ``z_i = (1, factors)`` and
``w_u ~ N(m_u, S)``. The prior mean m_u is linear in the user's choice of items, as in
`factor_model`: in the sum of the items' vectors and offsets over √n, and in log n. A round goes
over all users once and computes the posterior of each user's weights under the current prior. Only
sums over the posteriors are kept, in any order. From them follow the regression on the choices, S,
which includes the uncertainty of the weights, and the noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# ridge of the regression on choices, in numbers of users; as in `factor_model`
_CHOICE_RIDGE = 100.0
# initial variances, relative to that of the ratings: users' levels, all factors together, noise
_START_LEVEL, _START_FACTORS, _START_NOISE = 0.1, 0.3, 0.5
# relative: added to the diagonal of covariances, and the least noise
_ROUNDING = 1e-6
# summands are multiples of this, and products multiples of its square: sums below 2⁵³ of these are
# exact in any order
_GRAIN = 2.0**-12
# numbers in the systems that are solved in one batch
_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class UserPrior:
    """The prior of users: means by the choice of items, covariance of weights, noise of ratings.

    The rows of `slopes` belong to the predictors of a choice: D sums of vectors, the sum of the
    offsets, the logarithm of the number of items.
    """

    slopes: FloatArray
    constants: FloatArray
    covariance: FloatArray
    noise: float

    @classmethod
    def start(cls, width: int) -> UserPrior:
        """Return the initial prior, for vectors of mean square 1 and ratings of variance 1."""
        variances = np.full(width, _START_FACTORS / max(width - 1, 1))
        variances[0] = _START_LEVEL
        return cls(np.zeros((width + 2, width)), np.zeros(width), np.diag(variances), _START_NOISE)

    def whitened(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the root that whitens vectors, and the whitened slopes and constants.

        With z → z·root and w → root⁻¹w the weights have covariance 1 and ratings have noise 1.
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
        """Return sums over no users."""
        size = 2 * width + 3
        return cls(np.zeros((size, size)), np.zeros((width, width)), 0.0, 0.0)

    @property
    def users(self) -> int:
        """Return the number of users."""
        return int(self.products[0, 0])

    def plus(self, other: UserSums) -> UserSums:
        """Return the sums over both groups of users."""
        return UserSums(
            self.products + other.products,
            self.covariances + other.covariances,
            self.misfit + other.misfit,
            self.ratings + other.ratings,
        )

    def packed(self) -> bytes:
        """Return all numbers as bytes."""
        scalars = np.array([self.misfit, self.ratings])
        parts = [self.products.ravel(), self.covariances.ravel(), scalars]
        return np.concatenate(parts).astype("<f8").tobytes()

    @classmethod
    def unpacked(cls, content: bytes, width: int) -> UserSums:
        """Return the sums from the bytes of `packed`."""
        size = 2 * width + 3
        products, covariances, scalars = np.split(
            np.frombuffer(content, "<f8"), [size**2, size**2 + width**2]
        )
        return cls(
            products.reshape(size, size), covariances.reshape(width, width), *map(float, scalars)
        )

    def prior(self) -> UserPrior:
        """Return the next prior: the regression on the choices, and its residual covariance."""
        width, users = len(self.covariances), self.products[0, 0]
        means = self.products[0, 1:] / users
        around = self.products[1:, 1:] - users * np.outer(means, means)
        predictors, posterior = slice(0, width + 2), slice(width + 2, None)
        scale = np.sqrt(np.maximum(np.diag(around)[predictors] / users, 0.0))
        scale[scale < 1e-9] = 1.0
        gram = around[predictors, predictors] / np.outer(scale, scale) + _CHOICE_RIDGE * np.eye(
            width + 2
        )
        cross = around[predictors, posterior]
        slopes = np.linalg.solve(gram, cross / scale[:, None]) / scale[:, None]
        explained = slopes.T @ cross
        residual = around[posterior, posterior] - explained - explained.T
        residual += slopes.T @ around[predictors, predictors] @ slopes
        covariance = (residual + self.covariances) / users
        covariance[np.diag_indices(width)] *= 1.0 + _ROUNDING
        noise = max(self.misfit / self.ratings, _ROUNDING)
        return UserPrior(slopes, means[posterior] - means[predictors] @ slopes, covariance, noise)


def sums_over_users(
    vectors: NDArray[np.float32],
    offsets: FloatArray,
    items: NDArray[np.int32],
    targets: FloatArray,
    ends: IntArray,
    prior: UserPrior,
) -> UserSums:
    """Return the sums over users with ratings; the items of user u are ends[u] to ends[u + 1].

    `vectors` are the items' factors without the 1; `targets` are ratings minus mean and offset.
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
    predictors, squares = np.empty((n, width + 2)), np.empty(n)
    for row, (rated, target) in enumerate(_ratings_of(items, targets, ends, users)):
        z = np.ones((len(rated), width))
        z[:, 1:] = vectors[rated]
        grams[row], rights[row] = z.T @ z, z.T @ target
        predictors[row, :-2], predictors[row, -2] = z.sum(axis=0), offsets[rated].sum()
        squares[row] = target @ target
    sizes = ends[users + 1] - ends[users]
    predictors[:, :-1] /= np.sqrt(sizes)[:, None]
    predictors[:, -1] = np.log(sizes)
    expected = predictors @ prior.slopes + prior.constants
    precision = np.linalg.inv(prior.covariance)
    covariances = np.asarray(np.linalg.inv(precision + grams / prior.noise), dtype=np.float64)
    shifts = expected @ precision + rights / prior.noise
    means = np.einsum("uij,uj->ui", covariances, shifts)
    moments = covariances + means[:, :, None] * means[:, None, :]
    misfits = squares - 2.0 * (means * rights).sum(axis=1) + (grams * moments).sum(axis=(1, 2))
    rows = _grains(np.column_stack([np.ones(n), predictors, means]))
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
        entries = slice(ends[user], ends[user + 1])
        yield items[entries], targets[entries]


def _grains(values: FloatArray, grain: float = _GRAIN) -> FloatArray:
    """Return the values rounded to multiples of `grain`, which add up exactly."""
    return np.asarray(np.rint(values / grain) * grain)
