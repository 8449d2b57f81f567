"""A hierarchical factor model of ratings: factors of items, and a prior of users' weights on them.

``r_ui = mean + bias_i + z_i·w_u + noise`` with ``z_i = (1, factors)``, users and items drawn from
normal priors, ``w_u ~ N(m_u, S)`` and ``(bias_i, factors_i) ~ N(t_i, T)``. The prior means depend
on who rated *what*, not on the values of the ratings. That of a user is linear in the sum of the
items' factors and biases over √n, and in log n. That of an item is linear in the same sum over its
raters' prior means, and not their posterior means, which would count the item's ratings twice, and
in the item's content, where there is any: genres, year. An item without ratings is what its content
lets expect.
Everything, noise and priors included, is estimated from the ratings by variational EM. Posteriors
keep their covariances, so nothing has to be regularised by hand.

Only the factors of items are needed, so a sample of users is enough: every user gets a model of his
or her own later, with this prior as the starting point.

References
----------
Salakhutdinov, Mnih: Bayesian Probabilistic Matrix Factorization, ICML 2008 (the model).
Lim, Teh: Variational Bayesian Approach to Movie Rating Prediction, KDD Cup 2007 (its estimation).
Koren: Factorization Meets the Neighborhood, KDD 2008 (the choice of items as evidence).
Rendle, Zhang, Koren: On the Difficulty of Evaluating Baselines, 2019 (raters as evidence).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numba import prange
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from spark_rank.compiled import njit
from spark_rank.errors import InputDataError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_BIAS_SHRINKAGE = 5.0
# initial values, in standard deviations of the ratings
_START_SPREAD = 0.05
_START_NOISE = 0.2
_START_LEVEL = 0.05
_START_BIAS = 0.25
_START_FACTORS = 0.0125
# relative rounding error of results from float32 second moments
_ROUNDING = 1e-6
# ridge of the regressions of users on their items and of items on their raters, in numbers of rows
_CHOICE_RIDGE = 100.0
# the first rounds only need a rough estimate and use the first users, with at most so many ratings;
# below, the share of the rounds that do so
_BEGIN_WITH = 2_000_000
_BEGINNING = 2 / 3
# memory for the second moments of users
_MOMENT_BYTES = 2 << 30


@dataclass(frozen=True)
class SampledRatings:
    """Training ratings of a sample of users; those of user u are ends[u] to ends[u + 1].

    The order of the users does not depend on ratings, so that the first users are a sample, too.
    `content` has a row of numbers per item.
    """

    items: NDArray[np.int32]
    ratings: FloatArray
    ends: IntArray
    n_items: int
    content: FloatArray | None = None

    @property
    def n_users(self) -> int:
        """Return the number of users."""
        return len(self.ends) - 1

    def beginning(self, ratings: int) -> SampledRatings:
        """Return the first users with at most `ratings` ratings in total; at least one user."""
        users = max(int(np.searchsorted(self.ends, ratings, side="right")) - 1, 1)
        last = self.ends[users]
        return replace(
            self, items=self.items[:last], ratings=self.ratings[:last], ends=self.ends[: users + 1]
        )

    def users(self) -> NDArray[np.int32]:
        """Return the user of every rating."""
        return np.repeat(np.arange(self.n_users, dtype=np.int32), np.diff(self.ends))


@dataclass(frozen=True)
class FactorModel:
    """Factors and biases of items, and the prior of users.

    Attributes
    ----------
    mean : mean rating.
    bias : per item.
    factors : items × D; the first column is 1, so that the first weight is the user's level.
    covariance : D × D, S of the users' weights around their prior means.
    noise : variance of a rating around its prediction.
    choice : (items + 2) × D; the prior mean of a user who rated the items J is
        ``Σ_J choice_j / √|J| + choice_{−2} + choice_{−1} log |J|``, without ratings choice_{−2}.
    item_means : items × D; the prior means of bias and factors; without ratings they follow from
        the content alone, and are 0 without content.
    noise_path : the noise after every round.
    """

    mean: float
    bias: FloatArray
    factors: FloatArray
    covariance: FloatArray
    noise: float
    choice: FloatArray
    item_means: FloatArray
    noise_path: FloatArray

    def whitened(self) -> tuple[FloatArray, FloatArray]:
        """Return factors φ and choice in the prior's own metric, in units of the noise.

        Then a user's weights are a priori standard normal, and a rating has noise 1: ridge
        regression on φ with ridge 1 is the posterior mean.
        """
        root = np.linalg.cholesky(self.covariance / self.noise)
        # z·w = φ·v with φ = rootᵀ z and v = root⁻¹ w
        return self.factors @ root, np.linalg.solve(root, self.choice.T).T


def most_users(rank: int) -> int:
    """Return the number of users whose second moments, twice in float32, fit `_MOMENT_BYTES`."""
    size = (rank + 1) * (rank + 2) // 2
    return max(_MOMENT_BYTES // (8 * size), 1)


def fit_factor_model(
    data: SampledRatings,
    *,
    rank: int,
    rounds: int,
    seed: int,
    choices: bool = True,
    progress: Callable[[int, float], None] | None = None,
    begin_with: int = _BEGIN_WITH,
) -> FactorModel:
    """Estimate the model in `rounds` rounds of EM, each O(ratings · rank² + users · rank³).

    With more than `begin_with` ratings, the first two thirds of the rounds use only the first
    users, with at most so many ratings, and the others continue from there with all users.

    Without `choices`, the prior means of users and items do not depend on who rated what.

    The result depends on the data and the seed alone, not on the number of threads; a change of the
    unit of the ratings only changes the unit of the result. Items without a rating get bias 0 and
    zero factors, or with content what it lets expect. The noise is at least a millionth of the
    variance of the ratings (of 1 if all are equal).

    Raises
    ------
    InputDataError
        If there is no rating.
    """
    if len(data.ratings) == 0:
        raise InputDataError("no ratings to learn item factors from: sample more users")
    unit = float(data.ratings.std()) or 1.0
    path = []
    # sums in BLAS depend on the number of threads
    with threadpool_limits(1, user_api="blas"):
        scaled = replace(data, ratings=data.ratings / unit)
        first_rounds = round(_BEGINNING * rounds) if len(data.ratings) > begin_with else 0
        seen = scaled.beginning(begin_with) if first_rounds else scaled
        estimate = _Estimate(seen, rank, seed, choices)
        for number in range(rounds):
            if number == first_rounds and seen is not scaled:
                estimate = _Estimate(scaled, rank, seed, choices).going_on_from(estimate)
            estimate.update_users()
            estimate.update_choice()
            estimate.update_items()
            estimate.update_item_means()
            path.append(estimate.noise * unit**2)
            if progress is not None:
                progress(number + 1, path[-1])
        estimate.expect_unrated_items()
    return FactorModel(
        estimate.mean * unit,
        estimate.bias * unit,
        estimate.factors,
        estimate.covariance * unit**2,
        estimate.noise * unit**2,
        estimate.choice * unit,
        estimate.item_means * np.array([unit, *np.ones(rank)]),
        np.array(path),
    )


@dataclass(frozen=True)
class _Choices:
    """Who rated what: row r, a user or an item, has `others` ends[r] to ends[r + 1].

    If choices do not `tell` anything, their predictors are 0.
    """

    ends: IntArray
    others: NDArray[np.int32]
    tell: bool = True

    @property
    def log_sizes(self) -> FloatArray:
        """Return the logarithm of every row's number of others; 0 if it has none."""
        return np.log(np.maximum(np.diff(self.ends), 1))

    def summed(self, values: FloatArray) -> FloatArray:
        """Return, for every row, the sum of `values` over its others."""
        return np.asarray(_sums(self.ends, self.others, np.ascontiguousarray(values)))

    def described(self, values: FloatArray) -> FloatArray:
        """Return the predictors of a row's prior mean: the sum over √n, and log n."""
        if not self.tell:
            return np.zeros((len(self.ends) - 1, values.shape[1] + 1))
        sums, log_sizes = self.summed(values), self.log_sizes
        sums /= np.exp(0.5 * log_sizes)[:, None]
        return np.column_stack([sums, log_sizes])


def _regression(seen: FloatArray, targets: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return slopes and constants of a ridge regression on standardised columns."""
    centre, scale = seen.mean(axis=0), seen.std(axis=0)
    scale[scale < 1e-9] = 1.0
    x = (seen - centre) / scale
    gram = x.T @ x + _CHOICE_RIDGE * np.eye(x.shape[1])
    slopes = np.linalg.solve(gram, x.T @ targets) / scale[:, None]
    return slopes, targets.mean(axis=0) - centre @ slopes


class _Estimate:
    """The state of EM. Second moments E[xxᵀ] are rows of packed lower triangles."""

    def __init__(self, data: SampledRatings, rank: int, seed: int, choices: bool) -> None:
        self.data, self.width = data, rank + 1
        self.users = data.users()
        self.mean = float(data.ratings.mean())
        counts = np.bincount(data.items, minlength=data.n_items)
        self.rated = counts > 0
        self.bias: FloatArray = np.bincount(
            data.items, weights=data.ratings - self.mean, minlength=data.n_items
        ) / (counts + _BIAS_SHRINKAGE)
        self.item_order = np.argsort(data.items, kind="stable")
        item_ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.by_user = _Choices(data.ends, data.items, choices)
        self.by_item = _Choices(item_ends, self.users[self.item_order], choices)
        rng = np.random.default_rng(seed)
        self.factors = np.ones((data.n_items, self.width))
        self.factors[:, 1:] = rng.normal(0.0, _START_SPREAD, (data.n_items, rank))
        self.factors[~self.rated, 1:] = 0.0
        self.rows, self.columns = np.tril_indices(self.width)
        self.first = np.flatnonzero(self.columns == 0)  # the packed positions of E[x_0 x]
        self.factor_moments = self.factors[:, self.rows] * self.factors[:, self.columns]
        self.bias_together = np.zeros((data.n_items, self.width))
        self.covariance = np.diag([_START_LEVEL, *np.ones(rank)])
        self.item_prior = np.diag([_START_BIAS, *np.full(rank, _START_FACTORS)])
        self.noise = _START_NOISE
        # less noise is rounding error, and at 0 the precisions overflow
        self.least_noise = _ROUNDING
        self.prior_means = np.zeros((data.n_users, self.width))
        self.weights = np.zeros((data.n_users, self.width))
        self.weight_moments = np.zeros((data.n_users, len(self.rows)), dtype=np.float32)
        self.choice = np.zeros((data.n_items + 2, self.width))
        n_content = 0 if data.content is None else data.content.shape[1]
        self.choice_slopes = np.zeros((self.width + 1, self.width))
        self.item_slopes = np.zeros((self.width + 1 + n_content, self.width))
        self.item_constants = np.zeros(self.width)
        self.item_means = np.zeros((data.n_items, self.width))
        # rows are the rated items, in order
        self.item_posteriors = np.zeros((int(self.rated.sum()), self.width))
        self.item_moments = np.zeros((int(self.rated.sum()), len(self.rows)), dtype=np.float32)

    def going_on_from(self, other: _Estimate) -> _Estimate:
        """Continue from the items and priors that were estimated from other users.

        An item that they have not rated starts from its prior.
        """
        for name in ("bias", "factors", "factor_moments", "bias_together", "covariance",
                     "item_prior", "noise", "choice", "item_slopes",
                     "item_constants"):  # fmt: skip
            setattr(self, name, getattr(other, name))
        sums = self.by_user.described(self.choice[:-2])
        self.prior_means = sums[:, :-1] + sums[:, [-1]] * self.choice[-1] + self.choice[-2]
        self.item_means = self._expected_items()
        return self

    def update_users(self) -> None:
        """Replace the users' posteriors.

        An item's bias is correlated with its factors, which gives the same shift as in
        `update_items`.
        """
        precision = np.linalg.inv(self.covariance)
        targets = self.data.ratings - self.mean - self.bias[self.data.items]
        together = self.by_user.summed(self.bias_together)
        shifts = self.prior_means @ precision - together / self.noise
        self.weights, self.weight_moments, _ = _posteriors(
            self.data.ends, self.data.items, targets, self.factors,
            self.factor_moments.astype(np.float32), precision, shifts, self.noise,
        )  # fmt: skip

    def update_choice(self) -> None:
        """Regress the users' weights on the items they rated; S is the residual covariance."""
        described = np.column_stack([self.factors, self.bias])
        seen = self.by_user.described(described)
        slopes, constants = _regression(seen, self.weights)
        self.choice_slopes = slopes[:-1]
        self.choice[:-2] = described @ self.choice_slopes
        self.choice[-2], self.choice[-1] = constants, slopes[-1]
        self.prior_means = seen @ slopes + constants
        moments = self.weight_moments.mean(axis=0, dtype=np.float64)
        self.covariance = self._around(self.prior_means, self.weights, moments)

    def update_item_means(self) -> None:
        """Regress bias and factors on raters and content; the residual covariance is T."""
        seen = self._known_of_items()[self.rated]
        self.item_slopes, self.item_constants = _regression(seen, self.item_posteriors)
        self.item_means = self._expected_items()
        moments = self.item_moments.mean(axis=0, dtype=np.float64)
        self.item_prior = self._around(self.item_means[self.rated], self.item_posteriors, moments)

    def _known_of_items(self) -> FloatArray:
        raters = self.by_item.described(self.prior_means)
        return raters if self.data.content is None else np.hstack([raters, self.data.content])

    def _expected_items(self) -> FloatArray:
        means = self._known_of_items() @ self.item_slopes + self.item_constants
        means[~self.rated] = 0.0
        return means

    def expect_unrated_items(self) -> None:
        """Give items without a rating what their content lets expect, if there is content.

        This is another regression, on the content alone: how few people rated an item says
        something of the item, but that nobody could rate it yet says nothing.
        """
        content, unrated = self.data.content, ~self.rated
        if content is None or not unrated.any():
            return
        slopes, constants = _regression(content[self.rated], self.item_posteriors)
        means = content[unrated] @ slopes + constants
        self.item_means[unrated], self.bias[unrated] = means, means[:, 0]
        self.factors[unrated, 1:] = means[:, 1:]
        described = np.column_stack([self.factors, self.bias])[unrated]
        self.choice[:-2][unrated] = described @ self.choice_slopes

    def _around(self, means: FloatArray, found: FloatArray, moments: FloatArray) -> FloatArray:
        """Return the covariance around the prior means, from posterior means and moments."""
        cross = found.T @ means
        between = cross + cross.T - means.T @ means
        return self._unpacked(moments) - between / len(means)

    def update_items(self) -> None:
        """Replace bias and factors of every item, and the noise.

        An item is a regression of r − mean − w_0 on (1, w_1, …): the users' moments with w_0
        replaced by 1. Since w_0 is uncertain and correlated with the other weights, the regression
        is shifted by their covariances.
        """
        targets = self.data.ratings - self.mean - self.weights[self.users, 0]
        together = self.weight_moments[:, self.first] - self.weights * self.weights[:, [0]]
        level_variance = together[:, 0].copy()
        together[:, 0] = 0.0
        vectors = self.weights.copy()
        vectors[:, 0] = 1.0
        moments = self.weight_moments.copy()
        moments[:, self.first] = vectors
        precision = np.linalg.inv(self.item_prior)
        expected = self.item_means @ precision
        found, packed, misfit = _posteriors(
            self.by_item.ends, self.by_item.others, targets[self.item_order], vectors, moments,
            precision, expected - self.by_item.summed(together) / self.noise, self.noise,
        )  # fmt: skip
        self.bias = np.where(self.rated, found[:, 0], 0.0)
        self.bias_together = packed[:, self.first] - found * found[:, [0]]
        self.bias_together[:, 0] = 0.0  # the 1 before the factors is certain
        self.factors[self.rated, 1:] = found[self.rated, 1:]
        self.item_posteriors, self.item_moments = found[self.rated], packed[self.rated]
        self.factor_moments = packed.astype(np.float64)
        self.factor_moments[:, self.first] = self.factors
        # takes out the prior means, which are in the right sides but not in the ratings
        misfit += 2.0 * self.noise * np.einsum("ij,ij->i", found, expected)
        total = float(misfit.sum()) + float(level_variance[self.users].sum())
        self.noise = max(total / len(targets), self.least_noise)

    def _unpacked(self, packed: FloatArray) -> FloatArray:
        """Return the symmetric matrix; its diagonal is raised by more than float32 rounding errors.

        Otherwise a small variance in some direction could become negative.
        """
        matrix = np.zeros((self.width, self.width))
        matrix[self.rows, self.columns] = packed
        matrix[self.columns, self.rows] = packed
        matrix[np.diag_indices(self.width)] *= 1.0 + _ROUNDING
        return matrix


def _posteriors(
    ends: IntArray,
    others: NDArray[np.int32],
    targets: FloatArray,
    vectors: FloatArray,
    moments: NDArray[np.float32],
    precision: FloatArray,
    shifts: FloatArray,
    noise: float,
) -> tuple[FloatArray, NDArray[np.float32], FloatArray]:
    """Return posterior means, packed second moments and expected squared misfits, row by row."""
    n, width = len(ends) - 1, vectors.shape[1]
    means = np.empty((n, width))
    packed = np.empty((n, moments.shape[1]), dtype=np.float32)
    misfits = np.empty(n)
    _fill_posteriors(
        ends, others, targets, vectors, moments, precision, np.ascontiguousarray(shifts), noise,
        means, packed, misfits,
    )  # fmt: skip
    return means, packed, misfits


@njit(cache=True, parallel=True)
def _fill_posteriors(
    ends: Any, others: Any, targets: Any, vectors: Any, moments: Any, precision: Any, shifts: Any,
    noise: float, means: Any, packed: Any, misfits: Any,
) -> None:  # fmt: skip
    """Solve ``(precision + Σ E[xxᵀ]/noise) mean = shift + Σ x·target/noise`` for every row.

    The sum of packed moments takes one pass over contiguous numbers per rating: nearly all of the
    time of the estimation.
    """
    width = vectors.shape[1]
    size = moments.shape[1]
    for row in prange(len(ends) - 1):
        sums = np.zeros(size)
        right = shifts[row].copy()
        squares = 0.0
        for place in range(ends[row], ends[row + 1]):
            other = others[place]
            target = targets[place]
            squares += target * target
            for p in range(width):
                right[p] += vectors[other, p] * target / noise
        _add_rows(moments, others[ends[row] : ends[row + 1]], sums)
        system = np.empty((width, width))
        k = 0
        for p in range(width):
            for q in range(p + 1):
                system[p, q] = precision[p, q] + sums[k] / noise
                system[q, p] = system[p, q]
                k += 1
        covariance = np.linalg.inv(system)
        mean = covariance @ right
        expected = 0.0
        k = 0
        for p in range(width):
            means[row, p] = mean[p]
            for q in range(p + 1):
                moment = covariance[p, q] + mean[p] * mean[q]
                packed[row, k] = moment
                expected += sums[k] * moment * (1.0 if p == q else 2.0)
                k += 1
        # `right` includes the shift, as if it came from targets, too
        misfits[row] = squares - 2.0 * noise * (mean @ right) + expected


@njit(cache=True, parallel=True)
def _sums(ends: Any, others: Any, values: Any) -> Any:
    """Return, for every row, the sum of `values` over its others, added one by one."""
    sums = np.zeros((len(ends) - 1, values.shape[1]))
    for row in prange(len(sums)):
        for place in range(ends[row], ends[row + 1]):
            for k in range(values.shape[1]):
                sums[row, k] += values[others[place], k]
    return sums


@njit(cache=True)
def _add_rows(rows: Any, chosen: Any, sums: Any) -> None:
    """Add up the chosen rows, four at a time, so that four reads of memory overlap.

    The four are added in single precision, which is as exact as each of them is.
    """
    whole = len(chosen) - len(chosen) % 4
    for k in range(0, whole, 4):
        a, b = rows[chosen[k]], rows[chosen[k + 1]]
        c, d = rows[chosen[k + 2]], rows[chosen[k + 3]]
        for p in range(len(sums)):
            sums[p] += np.float64((a[p] + b[p]) + (c[p] + d[p]))
    for k in range(whole, len(chosen)):
        a = rows[chosen[k]]
        for p in range(len(sums)):
            sums[p] += a[p]
