"""What data scientists expect of an estimator: scikit-learn's own checks, and a few promises."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from spark_rank.learners import (
    OAP,
    ConstantScorer,
    ItemOffsetScorer,
    Learner,
    MPRank,
    MulticlassPerceptron,
    PRank,
    RankBoost,
    RankSVM,
    SVRank,
    WidrowHoff,
)
from spark_rank.learners.errors import (
    ConvergenceWarning,
    InvalidDataError,
    NotFittedError,
    not_fitted,
)

sklearn = pytest.importorskip("sklearn", reason="the checks are scikit-learn's")

Array = NDArray[np.float64]
_SCORES = "items are ordered by scores, so that learners that predict have a decision_function"
_NO_FEATURES = "without features a learner learns a constant, and a job goes on"
_COLUMN = "a column of targets is refused, as it may be a mistake"
_SHARED = {
    "check_estimators_empty_data_messages": _NO_FEATURES,
    "check_supervised_y_2d": _COLUMN,
    "check_regressors_no_decision_function": _SCORES,
}
LEARNERS: list[tuple[Learner, dict[str, str]]] = [
    (MPRank(), _SHARED),
    (MPRank(100.0, kernel="rbf"), _SHARED),
    (SVRank(), _SHARED),
    (RankSVM(tol=1e-12), _SHARED),
    (RankBoost(n_rounds=5), _SHARED),
    (PRank(), _SHARED),
    (PRank(update="romma", readout="averaged"), _SHARED),
    (WidrowHoff(eta=0.01), _SHARED),
    (MulticlassPerceptron(), _SHARED),
    (OAP(n_members=3), _SHARED),
    (ConstantScorer(), _SHARED),
]


def shown(each: Any) -> str:
    return repr(each) if isinstance(each, Learner) else ""


@pytest.mark.parametrize(("learner", "excused"), LEARNERS, ids=shown)
def test_the_checks_of_scikit_learn_pass(learner: Learner, excused: dict[str, str]) -> None:
    from sklearn.utils.estimator_checks import check_estimator

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(
            learner, expected_failed_checks=excused, on_skip=None, on_fail=None
        )
    failed = [
        (result["check_name"], str(result["exception"])[:200])
        for result in results
        if result["status"] == "failed"
    ]
    assert failed == []
    assert len(results) > 40


def test_the_item_offset_is_no_estimator_of_its_own() -> None:
    """It learns from an offset, which the checks do not give."""
    with pytest.raises(InvalidDataError, match="needs an offset"):
        ItemOffsetScorer().fit(np.ones((3, 2)), [1.0, 2.0, 3.0])


def problem(m: int = 60) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, 4))
    return X, np.clip(np.round(3.0 + X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=m)), 1, 5)


EACH: list[Learner] = [
    MPRank(), MPRank(kernel="rbf"), SVRank(), RankSVM(), RankBoost(5), PRank(), WidrowHoff(),
    MulticlassPerceptron(), OAP(n_members=3), PRank(kernel="poly"), PRank(readout="voted"),
]  # fmt: skip


@pytest.mark.parametrize("learner", EACH, ids=shown)
def test_columns_in_another_order_are_refused(learner: Any) -> None:
    X, y = problem()
    table = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    model = sklearn.base.clone(learner).fit(table, y)
    assert model.n_features_in_ == 4
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    expected = model.decision_function(X)
    assert np.array_equal(model.decision_function(table), expected)
    for wrong, words in (
        (table[["b", "a", "c", "d"]], "another order than in fit"),
        (table.rename(columns={"d": "e"}), "missing: d; unknown: e"),
        (table[["a", "b", "c"]], "missing: d; unknown: none"),
    ):
        for ask in (model.decision_function, getattr(model, "predict", model.decision_function)):
            with pytest.raises(InvalidDataError, match=words):
                ask(wrong)
        with pytest.raises(InvalidDataError, match=words):
            model.score(wrong, y)
    assert np.array_equal(model.decision_function(table[model.feature_names_in_]), expected)
    assert not hasattr(model.fit(X, y), "feature_names_in_")
    if not hasattr(model, "partial_fit"):
        return
    stream = sklearn.base.clone(learner).partial_fit(table, y)
    with pytest.raises(InvalidDataError, match="another order"):
        stream.partial_fit(table[["b", "a", "c", "d"]], y)


@pytest.mark.parametrize("learner", EACH, ids=shown)
def test_a_learner_read_back_knows_how_many_features_it_takes(learner: Any) -> None:
    X, y = problem()
    model = sklearn.base.clone(learner).fit(X, y)
    again = type(model).from_params(model.to_params())
    assert again.n_features_in_ == 4
    with pytest.raises(InvalidDataError, match="X has 3 features, but it is expecting 4"):
        again.decision_function(X[:, :3])


def test_scores_are_those_of_scikit_learn() -> None:
    from sklearn.metrics import mean_absolute_error, r2_score, roc_auc_score

    X, y = problem()
    weights = np.random.default_rng(1).integers(0, 4, len(y)).astype(float)
    for learner in (MPRank(), SVRank(), ConstantScorer()):
        model: Any = learner.fit(X[:40], y[:40])
        predicted = model.predict(X)
        assert model.score(X, y) == pytest.approx(r2_score(y, predicted))
        weighted = r2_score(y, predicted, sample_weight=weights)
        assert model.score(X, y, weights) == pytest.approx(weighted)
    offset = np.linspace(0.0, 1.0, len(y))
    model = MPRank().fit(X, y, offset=offset)
    expected = r2_score(y, model.predict(X, offset=offset))
    assert model.score(X, y, offset=offset) == pytest.approx(expected)
    for learner in (RankSVM(), RankBoost(5)):
        model = learner.fit(X[:40], y[:40])
        h = model.decision_function(X)
        ordered = [
            (h[i] > h[j]) for i in range(60) for j in range(60) if y[i] > y[j]
        ]  # fmt: skip
        assert model.score(X, y) == pytest.approx(np.mean(ordered))
        liked = (y > 3).astype(float)
        exact = RankSVM().fit(X[:40], y[:40])
        assert exact.score(X, liked) == pytest.approx(
            roc_auc_score(liked, exact.decision_function(X))
        )
        assert np.isnan(model.score(X[:2], [1.0, 1.0]))
    rows = np.repeat(np.arange(60), weights.astype(int))
    ranker = RankSVM().fit(X, y)
    assert ranker.score(X, y, weights) == pytest.approx(ranker.score(X[rows], y[rows]))
    for ordinal in (PRank(5), WidrowHoff(5), MulticlassPerceptron(5), OAP(5, n_members=3)):
        model = ordinal.fit(X[:40], y[:40].astype(int))
        loss = mean_absolute_error(y, model.predict(X))
        assert model.score(X, y) == pytest.approx(-loss)


def test_searches_of_scikit_learn_need_no_scorer() -> None:
    from sklearn.model_selection import GridSearchCV, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = problem()
    search = GridSearchCV(RankSVM(), {"C": [1e-4, 1e-2]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.8
    assert cross_val_score(make_pipeline(StandardScaler(), PRank(5)), X, y, cv=3).mean() < 0.0


@pytest.mark.parametrize("kind", [PRank, WidrowHoff, MulticlassPerceptron, OAP])
def test_any_ordered_levels_are_ranks(kind: Any) -> None:
    X, y = problem()
    words = np.array(["awful", "poor", "fair", "good", "great"])
    few = {"n_members": 5} if kind is OAP else {}
    by_rank = kind(5, **few).fit(X, y.astype(int))
    ranks = by_rank.predict(X)
    half = kind(**few).fit(X, y / 2.0, levels=[0.5, 1.0, 1.5, 2.0, 2.5])
    assert np.array_equal(half.predict(X), ranks / 2.0)
    named = kind(**few).fit(X, words[y.astype(int) - 1], levels=words)
    assert named.predict(X).tolist() == words[ranks - 1].tolist()
    kinds = pd.Categorical(words[y.astype(int) - 1], categories=words, ordered=True)
    for column in (kinds, pd.Series(kinds)):
        assert kind(**few).fit(X, column).predict(X).tolist() == named.predict(X).tolist()
    assert named.score(X, words[y.astype(int) - 1]) == pytest.approx(by_rank.score(X, y))
    again = kind.from_params(named.to_params())
    assert again.predict(X).tolist() == named.predict(X).tolist()
    parts = kind(**few).partial_fit(X[:3], y[:3] / 2.0, levels=[0.5, 1.0, 1.5, 2.0, 2.5])
    assert np.array_equal(parts.partial_fit(X[3:], y[3:] / 2.0).predict(X), half.predict(X))
    found = kind(**few).fit(X, 10.0 * y)
    assert found.levels_.tolist() == (10.0 * np.unique(y)).tolist()


def test_levels_that_make_no_order_are_refused() -> None:
    X, y = problem()
    for given, words in (
        ({"y": y, "levels": [1, 2, 3]}, "none of the levels 1, 2, 3"),
        ({"y": y, "levels": [1, 2, 2]}, "different values"),
        ({"y": np.full(60, 2.0)}, "1 level"),
        ({"y": np.array(["a", "b"] * 30)}, "array of real numbers"),
        ({"y": np.full(60, np.nan)}, "NaN"),
    ):
        with pytest.raises(InvalidDataError, match=words):
            PRank().fit(X, **given)
    with pytest.raises(ValueError, match="levels are for n_ranks=None"):
        PRank(5).fit(X, y, levels=[1, 2, 3, 4, 5])
    stream = PRank().partial_fit(X[:2], [1.0, 2.0])
    with pytest.raises(InvalidDataError, match="none of the levels"):
        stream.partial_fit(X, y)


def test_who_has_not_learned_says_so_with_the_error_of_scikit_learn() -> None:
    from sklearn.exceptions import NotFittedError as OfScikitLearn

    X, _ = problem()
    for learner in [*EACH, ConstantScorer()]:
        model: Any = sklearn.base.clone(learner)
        with pytest.raises(OfScikitLearn):
            model.decision_function(X)
        with pytest.raises(NotFittedError, match="call fit first"):
            model.decision_function(X)
    error = pickle.loads(pickle.dumps(not_fitted("call fit")))  # noqa: S301
    assert isinstance(error, NotFittedError)
    assert str(error) == "call fit"


@pytest.mark.parametrize(
    "learner",
    [
        MPRank(10.0, solver="online", tol=1e-12, max_rounds=2),
        SVRank(1e3, tol=1e-12, max_iter=2),
        SVRank(1e3, kernel="rbf", tol=1e-12, max_iter=2),
        RankSVM(10.0, tol=1e-12, max_iter=2),
    ],
    ids=shown,
)
def test_a_solver_that_stops_early_warns(learner: Any) -> None:
    from sklearn.exceptions import ConvergenceWarning as OfScikitLearn

    X, y = problem()
    with pytest.warns(OfScikitLearn, match="before its tolerance"):
        learner.fit(X, y)
    with pytest.warns(ConvergenceWarning, match="raise max_"):
        learner.fit(X, y)
    assert not learner.converged_
    patient = learner.set_params(**{"tol": 1e-2, "C": 1e-3})
    patient.set_params(**({"max_rounds": 500} if "max_rounds" in patient.get_params() else
                          {"max_iter": 500}))  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert patient.fit(X, y).converged_


def test_a_linear_model_is_small() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 100)), rng.integers(1, 6, 1000).astype(float)
    for model in (MPRank(), MPRank(solver="primal"), SVRank(), RankSVM(1e-5, max_iter=20)):
        model.fit(X, y)
        copy = pickle.loads(pickle.dumps(model))  # noqa: S301
        assert len(pickle.dumps(model)) < 3000
        assert np.array_equal(copy.decision_function(X), model.decision_function(X))
        held = [value.size for value in vars(model).values() if isinstance(value, np.ndarray)]
        assert max(held) <= 1000  # the residuals, which a pickled copy does without
    assert MPRank().fit(X, y).leave_pair_out(X, y) > 0.0
    with pytest.raises(InvalidDataError, match="the 1000 examples of fit"):
        MPRank().fit(X, y).leave_pair_out(X[:9], y[:9])


def test_learners_load_neither_spark_nor_scikit_learn() -> None:
    script = (
        "import sys, numpy as np\n"
        "from spark_rank.learners import MPRank\n"
        "try:\n    MPRank().decision_function(np.ones((1, 1)))\n"
        "except ValueError as error:\n    assert 'call fit first' in str(error)\n"
        "sys.exit(bool({'pyspark', 'py4j', 'sklearn', 'pandas'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
