"""What a learner of ranks or of an order may not notice: units, signs and order of features.

Features are eighths, and their numbers powers of two: sums, means and what is done to features are
exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from spark_rank.learners import OAP, MulticlassPerceptron, PRank, RankBoost, WidrowHoff

Floats = NDArray[np.float64]
seeds = st.integers(0, 10**6)
# these learn multiples of smaller and smaller fractions, or of thirds
INEXACT = ("widrow_hoff", "perceptron")
LINEAR: dict[str, Callable[[], Any]] = {
    **{f"prank {readout}": (lambda r=readout: PRank(4, readout=r, epochs=2))
       for readout in ("last", "averaged", "voted")},
    **{f"oap {combine} {sampling}":
       (lambda c=combine, s=sampling: OAP(4, n_members=4, combine=c, sampling=s, tau=0.6))
       for combine in ("bpm", "bagging", "voted") for sampling in ("bernoulli", "poisson")},
    "widrow_hoff": lambda: WidrowHoff(4, eta=0.125),
    "perceptron": lambda: MulticlassPerceptron(4),
}  # fmt: skip
KERNELS: dict[str, Callable[[float], Any]] = {
    f"{kernel} {readout}":
        (lambda g, k=kernel, r=readout: PRank(4, kernel=k, readout=r, gamma=g))
    for kernel in ("poly", "rbf") for readout in ("last", "averaged", "voted")
}  # fmt: skip
each_linear = pytest.mark.parametrize("name", LINEAR)


def sequence(seed: int, n_features: int = 4) -> tuple[Floats, NDArray[np.int64], Floats]:
    rng = np.random.default_rng(seed)
    X, new = rng.integers(-8, 9, (2, 32, n_features)) / 8.0
    return X, rng.integers(1, 5, 32), new


def same_ranks(one: Any, other: Any, new: Floats, moved: Floats) -> None:
    np.testing.assert_array_equal(one.online_loss_, other.online_loss_)
    np.testing.assert_array_equal(one.predict(new), other.predict(moved))
    np.testing.assert_array_equal(one.decision_function(new), other.decision_function(moved))


@each_linear
@given(seed=seeds)
@settings(max_examples=15)
def test_the_sign_of_a_feature_does_not_matter(name: str, seed: int) -> None:
    X, y, new = sequence(seed, 11)
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], 11)
    one, other = LINEAR[name]().fit(X, y), LINEAR[name]().fit(X * signs, y)
    same_ranks(one, other, new, new * signs)


@pytest.mark.parametrize("name", [name for name in LINEAR if name not in INEXACT])
@given(seed=seeds)
@settings(max_examples=15)
def test_the_order_of_features_and_empty_ones_do_not_matter(name: str, seed: int) -> None:
    X, y, new = sequence(seed, 11)
    order = np.random.default_rng(seed).permutation(14)
    moved = [np.pad(rows, ((0, 0), (0, 3)))[:, order] for rows in (X, new)]
    one, other = LINEAR[name]().fit(X, y), LINEAR[name]().fit(moved[0], y)
    same_ranks(one, other, new, moved[1])


@given(seed=seeds, exponent=st.integers(-100, 100))
@settings(max_examples=25)
def test_a_perceptron_has_no_unit(seed: int, exponent: int) -> None:
    X, y, new = sequence(seed)
    unit = 2.0**exponent
    one, other = MulticlassPerceptron(4).fit(X, y), MulticlassPerceptron(4).fit(X * unit, y)
    same_ranks(one, other, new, new * unit)
    np.testing.assert_array_equal(other.coef_, one.coef_ * unit)


@given(seed=seeds, exponent=st.integers(-100, 100))
@settings(max_examples=25)
def test_the_step_size_takes_the_unit_of_the_features(seed: int, exponent: int) -> None:
    X, y, new = sequence(seed)
    unit = 2.0**exponent
    one = WidrowHoff(4, eta=0.1).fit(X, y)
    other = WidrowHoff(4, eta=0.1 / unit**2).fit(X * unit, y)
    same_ranks(one, other, new, new * unit)
    np.testing.assert_array_equal(other.coef_, one.coef_ / unit)


@pytest.mark.parametrize("name", KERNELS)
@given(seed=seeds, exponent=st.integers(-40, 40))
@settings(max_examples=15)
def test_the_width_of_a_kernel_takes_the_unit_of_the_features(
    name: str, seed: int, exponent: int
) -> None:
    X, y, new = sequence(seed)
    unit = 2.0**exponent
    one, other = KERNELS[name](0.5).fit(X, y), KERNELS[name](0.5 / unit**2).fit(X * unit, y)
    same_ranks(one, other, new, new * unit)


# RankBoost


@pytest.mark.parametrize("missing", ["median", "abstain"])
@given(seed=seeds, exponent=st.integers(-200, 200), shift=st.integers(-(2**20), 2**20))
@settings(max_examples=25)
def test_boosting_knows_no_unit_and_no_origin(
    missing: str, seed: int, exponent: int, shift: int
) -> None:
    X, y, new = sequence(seed)
    X[::5, 1] = np.nan
    boosted = RankBoost(15, missing=missing).fit(X, y)
    scores = boosted.decision_function(new)
    for moved in (lambda x: x * 2.0**exponent, lambda x: x + shift):
        other = RankBoost(15, missing=missing).fit(moved(X), y)
        np.testing.assert_array_equal(other.alphas_, boosted.alphas_)
        np.testing.assert_array_equal(other.decision_function(moved(new)), scores)
    for ratings in (y * 1e-300, y * 1e300, y - 1e9, np.exp(y)):
        other = RankBoost(15, missing=missing).fit(X, ratings)
        np.testing.assert_array_equal(other.decision_function(new), scores)


@given(seed=seeds)
@settings(max_examples=25)
def test_boosting_knows_the_order_of_values_alone(seed: int) -> None:
    X, y, new = sequence(seed)
    X[::4, 2] = np.nan
    boosted = RankBoost(15, missing="abstain").fit(X, y)
    other = RankBoost(15, missing="abstain").fit(np.exp(3.0 * X), y)
    np.testing.assert_array_equal(
        other.decision_function(np.exp(3.0 * new)), boosted.decision_function(new)
    )


@given(seed=seeds)
@settings(max_examples=25)
def test_boosting_knows_no_order_of_examples_and_no_copies_of_features(seed: int) -> None:
    X, y, new = sequence(seed)
    boosted = RankBoost(15).fit(X, y)
    order = np.random.default_rng(seed).permutation(len(X))
    for other, rows in (
        (RankBoost(15).fit(X[order], y[order]), new),
        (RankBoost(15).fit(np.hstack([X, X]), y), np.hstack([new, new])),
    ):
        np.testing.assert_array_equal(other.features_, boosted.features_)
        np.testing.assert_allclose(
            other.decision_function(rows), boosted.decision_function(new), rtol=1e-9, atol=1e-9
        )


@given(seed=seeds, shift=st.integers(-1000, 1000))
@settings(max_examples=25)
def test_an_offset_of_boosting_has_no_origin(seed: int, shift: int) -> None:
    X, y, new = sequence(seed)
    offset = np.random.default_rng(seed).integers(-8, 9, 32) / 8.0
    one, other = RankBoost(15).fit(X, y, offset), RankBoost(15).fit(X, y, offset + shift)
    np.testing.assert_array_equal(other.features_, one.features_)
    np.testing.assert_allclose(
        other.decision_function(new, offset), one.decision_function(new, offset), atol=1e-9
    )
