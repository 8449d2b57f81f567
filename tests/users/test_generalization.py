"""Bounds of model rows equal the formulas, evaluated by hand."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose

from spark_rank.learners import MPRank, RankSVM
from spark_rank.learners.kernels import Kernel
from spark_rank.metrics import margin_bound, stability_bound
from spark_rank.users.generalization import BoundFacts, bound_columns

FACTS = BoundFacts(
    frozenset({"mine"}),
    squared_radius=9.0,
    rating_range=4.0,
    offset_range=2.0,
    margin=0.5,
    delta=0.1,
)


def bounds(learner: str = "mine", **changes: Any) -> tuple[float, float]:
    made = {"mine": MPRank, "svm": RankSVM}.get(learner, MPRank)
    row = {"learner": learner, "status": "learned", "kernel": "linear", "gamma": None,
           "hyperparameters": json.dumps(made(C=0.5).get_params()), "offset_weight": 0.0,
           "n_train": 11, "norm": 0.7, "expected_norm": None, "train_msd": 0.3,
           "train_margin_loss": 0.2}  # fmt: skip
    batch = pa.RecordBatch.from_pylist([row | changes])
    found = bound_columns(batch, FACTS)
    return float(found["stability_bound"][0]), float(found["margin_bound"][0])


def hyper(**params: Any) -> str:
    return json.dumps(MPRank(**params).get_params())


def test_the_linear_kernel_takes_the_largest_item() -> None:
    stability, margin = bounds()
    M = 4.0 * (1.0 + np.sqrt(9.0 * 0.5))
    assert stability == stability_bound(
        0.3, m=11, C=0.5, kappa_squared=9.0, M=M, delta=0.1, power=2
    )
    assert margin == margin_bound(0.2, m=5, rho=0.5, radius=3.0, norm_bound=0.7, delta=0.1)


def test_an_offset_widens_the_targets_and_a_fixed_ridge_is_another_trade_off() -> None:
    wider = stability_bound(
        0.3, m=11, C=0.5, kappa_squared=9.0, M=6.0 * (1.0 + np.sqrt(4.5)), delta=0.1, power=2
    )
    assert bounds(offset_weight=1.0)[0] == wider
    assert bounds(expected_norm=0.5)[0] == bounds()[0]
    with_prior = stability_bound(
        0.3, m=11, C=0.5, kappa_squared=9.0, M=(6.0 + 2 * 3.0 * 0.5) * (1.0 + np.sqrt(4.5)),
        delta=0.1, power=2,
    )  # fmt: skip
    assert_allclose(bounds(offset_weight=1.0, expected_norm=0.5)[0], with_prior)
    C = 0.5 * 0.5 * 11
    fixed = stability_bound(
        0.3, m=11, C=C, kappa_squared=9.0, M=4.0 * (1.0 + np.sqrt(9 * C)), delta=0.1, power=2
    )
    assert_allclose(bounds(hyperparameters=hyper(C=0.5, ridge="fixed"))[0], fixed)
    # a ridge of 2 + 11/4 is that of C = 11 / (2 · ridge)
    C = 11 / (2 * (2.0 + 11 / 4))
    grown = stability_bound(
        0.3, m=11, C=C, kappa_squared=9.0, M=4.0 * (1.0 + np.sqrt(9 * C)), delta=0.1, power=2
    )
    grows = hyper(C=0.5, ridge="fixed", growth=0.25)
    assert_allclose(bounds(hyperparameters=grows)[0], grown)


@pytest.mark.parametrize(
    ("kernel", "params", "gamma"),
    [
        ("rbf", {"rbf_weight": 2.0}, 0.3),
        ("linear+rbf", {"rbf_weight": 0.5}, 0.3),
        ("poly", {"degree": 3, "coef0": 2.0}, 0.3),
    ],
)
def test_no_item_has_a_greater_kernel_value(
    kernel: str, params: dict[str, Any], gamma: float
) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 4))
    X *= 3.0 / np.linalg.norm(X, axis=1)[:, None]  # every ‖x‖² is the squared radius
    own = Kernel(kernel, gamma, **params)
    largest = max(float(own(x[None, :], x[None, :])[0, 0]) for x in X)
    text = hyper(C=0.5, kernel=kernel, **params)
    margin = bounds(kernel=kernel, gamma=gamma, hyperparameters=text)[1]
    assert_allclose(
        margin,
        margin_bound(0.2, m=5, rho=0.5, radius=largest**0.5, norm_bound=0.7, delta=0.1),
        rtol=1e-9,
    )


def test_models_without_a_bound_have_none() -> None:
    assert np.isnan(bounds(learner="svm")[0])  # the hinge is not the cost that is measured
    assert np.isfinite(bounds(learner="svm")[1])
    for missing in ({"status": "fallback"}, {"status": "failed"}, {"norm": None}):
        assert np.isnan(bounds(**missing)).all()
    assert np.isnan(bounds(train_margin_loss=None)[1])
