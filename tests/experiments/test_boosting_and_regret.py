"""AdaBoost, regret and the batch of PRank: against closed forms, a solver, and learners by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from studies import generated_ratings, run_all, study_of

from spark_rank.experiments import EXPERIMENTS
from spark_rank.experiments.best_fixed_rule import best_fixed_rule, surrogate_loss
from spark_rank.experiments.boosting import (
    MIXED,
    SEPARABLE,
    adaboost,
    base_rankers,
    draw_set,
    measures,
)
from spark_rank.experiments.frame import Result
from spark_rank.experiments.regret import EASY, HARD
from spark_rank.learners import MulticlassPerceptron, PRank
from spark_rank.rank_rule import ranks_from_scores


def at_end(results: list[Result], metric: str, part: str) -> dict[str, float]:
    last = max(r.x for r in results if r.x is not None)
    return {
        r.method: r.value for r in results
        if (r.metric, r.part, r.x) == (metric, part, last) and r.value is not None
    }  # fmt: skip


def test_adaboost_descends_to_the_least_sum_of_exponentials() -> None:
    study = study_of("boosting", {"examples": 200, "features": 2, "values": 3})
    X, y = draw_set(study, MIXED, 0)
    sign = np.where(y > 0, 1.0, -1.0)
    for constant in (False, True):
        rankers = base_rankers(X, constant=constant)
        least = minimize(
            lambda a, h=rankers: np.exp(-sign * (a @ h)).sum(),
            np.zeros(len(rankers)),
            jac=lambda a, h=rankers: -h @ (sign * np.exp(-sign * (a @ h))),
            method="BFGS",
        ).fun  # fmt: skip
        values = [measures(s, y)["log F_Ada"] for s in adaboost(X, y, 5000, constant=constant)]
        assert (np.diff(values) <= 1e-12).all()
        assert np.exp(values[-1]) == pytest.approx(least, rel=1e-3)


def test_with_a_constant_the_classes_balance_and_rankboost_is_met() -> None:
    study = study_of(
        "boosting", {"repeats": 1, "examples": 200, "features": 2, "values": 3, "rounds": 5000}
    )
    separable, mixed = run_all(study)
    balance = at_end(mixed, "log F+/F-", MIXED)
    assert balance["AdaBoost with a constant"] == pytest.approx(0.0, abs=3e-3)
    objective = at_end(mixed, "log F_Rank", MIXED)
    # RankBoost stops where a round gains less than a millionth
    assert objective["AdaBoost with a constant"] == pytest.approx(objective["RankBoost"], abs=3e-3)
    assert at_end(separable, "AUC", SEPARABLE)["RankBoost"] == pytest.approx(1.0)


def sequence(m: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(m, 2))
    scores = X @ [1.0, -1.0] + noise * rng.normal(size=m)
    return X, ranks_from_scores(scores, np.array([-0.5, 0.7]))


def test_the_best_fixed_rule_is_certified() -> None:
    X, ranks = sequence(60, 0.8)
    found = best_fixed_rule(X, ranks, 3)
    assert found.gap <= 1e-6 * found.loss
    assert found.loss == pytest.approx(surrogate_loss(X, ranks, found.coef, found.thresholds))

    def loss(v: np.ndarray) -> float:
        return surrogate_loss(X, ranks, v[:2], v[2:])

    start = np.concatenate([found.coef, found.thresholds])
    tried = minimize(loss, start, method="Nelder-Mead", options={"maxiter": 3000})
    assert found.lower <= tried.fun + 1e-9
    assert found.loss <= loss(np.array([1.0, -1.0, -0.5, 0.7]))
    predicted = ranks_from_scores(X @ found.coef, found.thresholds)
    assert np.abs(predicted - ranks).sum() <= found.loss + 1e-9


def test_a_sequence_without_noise_costs_the_best_rule_nothing() -> None:
    X, ranks = sequence(40, 0.0)
    keep = np.abs((X @ [1.0, -1.0])[:, None] - [-0.5, 0.7]).min(axis=1) > 0.05
    found = best_fixed_rule(X[keep], ranks[keep], 3)
    assert found.loss == pytest.approx(0.0, abs=1e-6)


def test_regret_is_loss_beyond_the_fixed_rule() -> None:
    study = study_of("regret", {"repeats": 1, "rounds": 150, "shown": 4})
    easy, hard = run_all(study)
    for results, part in ((easy, EASY), (hard, HARD)):
        losses, regrets = (
            at_end(results, "loss so far", part),
            at_end(results, "regret so far", part),
        )
        fixed = losses.pop("best fixed rule")
        bound = losses.pop("mistake bound", None)
        assert regrets == pytest.approx({name: loss - fixed for name, loss in losses.items()})
        assert (bound is None) == (part == HARD)
        if bound is not None:
            assert losses["PRank"] <= bound
            assert fixed == pytest.approx(0.0, abs=1e-6)
        gaps = at_end(results, "relative gap of the fixed rule", part)
        assert gaps["best fixed rule"] < 1e-6


def test_half_of_a_viewers_ratings_are_learned_in_a_batch() -> None:
    data = generated_ratings(20, 40)
    study = study_of("prank_batch", {"repeats": 3, "overs": [8, 20]}, {"ratings": data})
    units = EXPERIMENTS["prank_batch"].units(study)
    assert len(units) == 6
    group, repeat, target = units[4]
    assert (group, repeat) == (1, 1)
    results = EXPERIMENTS["prank_batch"].run_unit(study, units[4])
    items, ratings = data.of_user(target)
    order = study.generator("order", repeat).permutation(len(items))
    viewers = [u for u in np.flatnonzero(data.n_ratings > 20) if u != target]
    X = data.columns_of(np.array(viewers), items[order], np.full(len(viewers), 3.0)) - 3.0
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300)
    y, n = data.ranks(ratings[order]), len(items) // 2
    for name, learner in (
        ("PRank", PRank(5)), ("MCP", MulticlassPerceptron(5)),
        ("PRank averaged", PRank(5, readout="averaged")),
    ):  # fmt: skip
        loss = np.abs(learner.fit(X[:n], y[:n]).predict(X[n:]) - y[n:]).mean()
        (found,) = [r.value for r in results if r.method == name]
        assert found == pytest.approx(loss)
    assert {r.part for r in results} == {"more than 20 ratings"}


@pytest.mark.parametrize(
    ("name", "settings"),
    [("prank_batch", {"overs": [900]}), ("prank_ratings_100", {"over": 900}),
     ("oap_ratings", {"over": 900}), ("mprank_table1", {"test_min": 900, "test_max": 1000})],
)  # fmt: skip
def test_thresholds_that_nobody_passes_leave_no_units(name: str, settings: dict[str, int]) -> None:
    data = generated_ratings(20, 40)
    key = "MovieLens" if name == "mprank_table1" else "ratings"
    study = study_of(name, settings, {key: data})
    assert list(EXPERIMENTS[name].units(study)) == []
