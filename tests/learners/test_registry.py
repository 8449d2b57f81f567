"""What every learner of the registry promises, whatever it learns."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from spark_rank.learners import REGISTRY, MPRank
from spark_rank.learners.errors import (
    InvalidDataError,
    InvalidParameterError,
    LearnerError,
    NotFittedError,
    NumericFailureError,
)

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(40, 5)), RNG.normal(size=(9, 5))
Y = RNG.integers(1, 6, 40)


def make(name: str) -> Any:
    learner = REGISTRY[name]
    return learner(**({"n_ranks": 5} if "n_ranks" in learner.parameters else {}))


@pytest.mark.parametrize("name", REGISTRY)
def test_exports_plain_values_and_scores_the_same_bits_when_read_back(name: str) -> None:
    fitted = make(name).fit(X, Y)
    params = fitted.to_params()
    for key, value in params.items():
        plain = value is None or isinstance(value, (bool, int, float, str))
        assert plain or (isinstance(value, np.ndarray) and value.ndim == 1), key
    again = REGISTRY[name].from_params(params)
    np.testing.assert_array_equal(again.decision_function(NEW), fitted.decision_function(NEW))  # type: ignore[attr-defined]
    assert again.get_params() == fitted.get_params()


@pytest.mark.parametrize("name", REGISTRY)
def test_inputs_stay_as_they_were_and_fit_returns_the_learner(name: str) -> None:
    features, ranks = X.copy(), Y.copy()
    learner = make(name)
    assert learner.fit(features, ranks) is learner
    np.testing.assert_array_equal(features, X)
    np.testing.assert_array_equal(ranks, Y)


@pytest.mark.parametrize("name", REGISTRY)
def test_fitting_twice_gives_the_same_bits(name: str) -> None:
    learner = make(name).fit(X, Y)
    first = learner.decision_function(NEW)
    np.testing.assert_array_equal(learner.fit(X, Y).decision_function(NEW), first)
    np.testing.assert_array_equal(make(name).fit(X, Y).decision_function(NEW), first)


@pytest.mark.parametrize("name", REGISTRY)
@pytest.mark.parametrize(
    ("features", "ratings"),
    [
        (np.empty((0, 5)), []),
        (X, Y[:3]),
        (X[:, 0], Y),
        (X, np.where(Y == 3, np.nan, Y)),
        (np.where(X > 2, np.inf, X), Y),
    ],
)
def test_bad_data_has_a_name(name: str, features: Any, ratings: Any) -> None:
    with pytest.raises(InvalidDataError):
        make(name).fit(features, ratings)


@pytest.mark.parametrize("name", REGISTRY)
def test_one_example_and_equal_ratings_give_a_finite_model(name: str) -> None:
    for features, ratings in ((X[:1], Y[:1]), (X, np.full(40, 3))):
        assert np.isfinite(make(name).fit(features, ratings).decision_function(NEW)).all()


@pytest.mark.parametrize("name", REGISTRY)
def test_scoring_before_learning_has_a_name(name: str) -> None:
    with pytest.raises(NotFittedError, match="call fit"):
        make(name).decision_function(NEW)


@pytest.mark.parametrize("name", REGISTRY)
def test_every_parameter_refuses_what_is_out_of_its_range(name: str) -> None:
    for parameter in REGISTRY[name].parameters:
        learner = make(name).set_params(**{parameter: object()})
        with pytest.raises(InvalidParameterError, match=f"^{parameter}="):
            learner.fit(X, Y)


@pytest.mark.parametrize("name", [name for name in REGISTRY if "C" in REGISTRY[name].parameters])
def test_a_constant_of_zero_is_refused(name: str) -> None:
    with pytest.raises(LearnerError, match="C=0.* a number above 0"):
        make(name).set_params(C=0).fit(X, Y)


@pytest.mark.parametrize("name", ["mprank", "svrank", "ranksvm"])
@pytest.mark.parametrize("kernel", ["linear", "poly", "linear+rbf", "precomputed"])
def test_scores_that_overflow_are_an_error(name: str, kernel: str) -> None:
    # beside a Gaussian of little weight the linear part alone has to explain the ratings
    learner = make(name).set_params(kernel=kernel, C=1e5, rbf_weight=1e-9)
    features = 1e-2 * X
    learner.fit(features @ features.T if kernel == "precomputed" else features, Y)
    signs = np.sign(RNG.normal(size=(100, 40 if kernel == "precomputed" else 5)))
    with pytest.raises(NumericFailureError, match="scale the features down"):
        learner.decision_function(1.7e308 * signs)


NUMBERS: dict[type, Any] = {int: (np.int64, np.int32), float: (np.float64, np.float32)}


@pytest.mark.parametrize("name", REGISTRY)
def test_numbers_of_numpy_are_numbers(name: str) -> None:
    plain = make(name).fit(X, Y)
    for parameter, value in plain.get_params().items():
        for kind in NUMBERS.get(type(value), ()):
            if kind(value).item() != value:
                continue  # single precision cannot say it
            learner = make(name).set_params(**{parameter: kind(value)}).fit(X, Y)
            np.testing.assert_array_equal(
                learner.decision_function(NEW), plain.decision_function(NEW)
            )
            assert type(learner.to_params()[parameter]) is type(value)
    for kind in (np.float32, np.float64):
        for parameter in ("C", "tau", "eta", "smoothing"):
            if parameter in REGISTRY[name].parameters:
                with pytest.raises(InvalidParameterError, match=f"^{parameter}="):
                    make(name).set_params(**{parameter: kind(np.inf)}).fit(X, Y)


@pytest.mark.parametrize("name", REGISTRY)
def test_truth_values_of_numpy_are_no_numbers(name: str) -> None:
    for parameter, value in make(name).get_params().items():
        if isinstance(value, (int, float)):
            with pytest.raises(InvalidParameterError, match=f"^{parameter}="):
                make(name).set_params(**{parameter: np.True_}).fit(X, Y)


def test_a_path_takes_any_list_of_values() -> None:
    expected = MPRank.path(X, Y, [1.0, 10.0]).leave_pair_out
    for Cs in (np.array([1, 10]), np.array([1.0, 10.0]), (C for C in (1, 10))):
        path = MPRank.path(X, Y, Cs)
        np.testing.assert_array_equal(path.leave_pair_out, expected)
        np.testing.assert_array_equal(path.Cs, [1.0, 10.0])
    with pytest.raises(InvalidParameterError, match="a list of values"):
        MPRank.path(X, Y, 1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", REGISTRY)
@pytest.mark.parametrize(
    ("features", "ratings"),
    [
        ([["a", "b"]] * 40, Y),
        (X.astype(str), Y),
        ([[1.0, 2.0], [3.0]], [1, 2]),
        (X + 1j, Y),
        (csr_array(X + 1j), Y),
        (X, ["good"] * 40),
        (X, Y + 0j),
        (X, [[1], [2, 3]] * 20),
    ],
)
def test_what_is_no_array_of_real_numbers_has_a_name(
    name: str, features: Any, ratings: Any
) -> None:
    with pytest.raises(InvalidDataError, match="real numbers|sparse"):
        make(name).fit(features, ratings)


@pytest.mark.parametrize("name", REGISTRY)
def test_features_without_columns_leave_a_finite_model(name: str) -> None:
    assert np.isfinite(make(name).fit(X[:, :0], Y).decision_function(NEW[:, :0])).all()


@pytest.mark.parametrize("name", REGISTRY)
def test_what_is_missing_in_an_export_has_a_name(name: str) -> None:
    params = make(name).fit(X, Y).to_params()
    for key in params:
        if not key.endswith("_shape"):
            rest = {other: value for other, value in params.items() if other != key}
            with pytest.raises(InvalidParameterError, match=f"{key} is missing"):
                REGISTRY[name].from_params(rest)


JSON = [
    *((name, {}) for name in REGISTRY),
    *(("oap", {"combine": combine}) for combine in ("bagging", "voted")),
    *(("prank", {"readout": readout}) for readout in ("averaged", "voted")),
    *(
        ("prank", {"kernel": "rbf", "readout": readout})
        for readout in ("last", "averaged", "voted")
    ),
    *((name, {"kernel": "rbf"}) for name in ("mprank", "svrank", "ranksvm")),
    ("rankboost", {"missing": "abstain"}),
]


@pytest.mark.parametrize(("name", "options"), JSON)
def test_an_export_goes_through_json(name: str, options: dict[str, Any]) -> None:
    fitted = make(name).set_params(**options).fit(X, Y)
    text = json.dumps(fitted.to_params(), default=np.ndarray.tolist)
    again: Any = REGISTRY[name].from_params(json.loads(text))
    np.testing.assert_array_equal(again.decision_function(NEW), fitted.decision_function(NEW))
    if hasattr(fitted, "predict"):
        np.testing.assert_array_equal(again.predict(NEW), fitted.predict(NEW))
    if hasattr(fitted, "partial_fit") and name not in ("mprank", "oap"):
        on, again = (learner.partial_fit(NEW, Y[:9]) for learner in (fitted, again))
        np.testing.assert_array_equal(again.decision_function(X), on.decision_function(X))


def minus_rank_loss(learner: Any, features: Any, ratings: Any) -> float:
    return -float(np.abs(learner.decision_function(features) - ratings).mean())


@pytest.mark.parametrize("name", REGISTRY)
def test_scikit_learn_searches_a_grid(name: str) -> None:
    learner = make(name)
    names = ("C", "epochs", "tau", "n_rounds")
    grid = {parameter: [1, 0.5][: 1 + (parameter in ("C", "tau"))] for parameter in names
            if parameter in learner.parameters}  # fmt: skip
    search = GridSearchCV(learner, grid, scoring=minus_rank_loss, cv=3).fit(X, Y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    np.testing.assert_array_equal(
        search.best_estimator_.decision_function(NEW),
        clone(learner).set_params(**search.best_params_).fit(X, Y).decision_function(NEW),
    )


def test_scikit_learn_cuts_both_sides_of_a_precomputed_kernel() -> None:
    scoring = "neg_mean_squared_error"
    by_kernel = GridSearchCV(MPRank(kernel="precomputed"), {"C": [0.5, 5.0]}, scoring=scoring, cv=3)
    by_features = GridSearchCV(MPRank(solver="dual"), {"C": [0.5, 5.0]}, scoring=scoring, cv=3)
    np.testing.assert_allclose(
        by_kernel.fit(X @ X.T, Y).cv_results_["mean_test_score"],
        by_features.fit(X, Y).cv_results_["mean_test_score"],
    )


@pytest.mark.parametrize(
    "name", [name for name in REGISTRY if hasattr(REGISTRY[name], "partial_fit")]
)
def test_a_sequence_in_parts_is_the_sequence(name: str) -> None:
    whole, parts = make(name).partial_fit(X, Y), make(name)
    for rows in (slice(0, 7), slice(7, 8), slice(8, None)):
        assert parts.partial_fit(X[rows], Y[rows]) is parts
    np.testing.assert_array_equal(parts.decision_function(NEW), whole.decision_function(NEW))
    for features, ratings in ((X[:, :2], Y), (X, Y[:3]), (np.where(X > 2, np.inf, X), Y)):
        with pytest.raises(InvalidDataError):
            parts.partial_fit(features, ratings)
        np.testing.assert_array_equal(parts.decision_function(NEW), whole.decision_function(NEW))
    again = REGISTRY[name].from_params(parts.to_params())
    np.testing.assert_array_equal(again.decision_function(NEW), whole.decision_function(NEW))  # type: ignore[attr-defined]
