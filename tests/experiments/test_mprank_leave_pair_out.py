"""Leave-pair-out as an experiment: every way against learning again, pair by pair."""

from __future__ import annotations

import numpy as np
import pytest
from studies import generated_ratings, run_all, study_of

from spark_rank.experiments.mprank_loo import refitted
from spark_rank.experiments.printed_leave_pair_out import approximate_leave_pair_out, pair_costs
from spark_rank.experiments.reviewer_problems import Problem
from spark_rank.learners import MPRank
from spark_rank.learners.kernels import Kernel


def drawn_problem(m: int, seed: int = 0) -> Problem:
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((m, 4)), rng.integers(1, 6, m).astype(float)
    return Problem(X, y, X, y)


def test_refitting_is_what_the_exact_form_gives() -> None:
    problem = drawn_problem(11)
    for C in (1.0, 30.0):
        model = MPRank(C, kernel="rbf", gamma=0.2).fit(problem.X, problem.y)
        exact = model.leave_pair_out(problem.X, problem.y)
        assert refitted(problem, C, 0.2) == pytest.approx(exact, rel=1e-10)


def test_proposition_2_is_exact_with_the_means_of_the_refitted_scores() -> None:
    problem, m, C = drawn_problem(9, seed=3), 9, 8.0
    gram, ridge = Kernel("rbf", 0.2)(problem.X, problem.X), m / (2.0 * C)
    uneven = gram - gram.mean(axis=1, keepdims=True)
    U = uneven @ np.linalg.inv(uneven - uneven.mean(axis=0) + ridge * np.eye(m))
    drift, true = np.zeros((m, m)), np.zeros((m, m))
    for i in range(m):
        for j in range(m):
            if i == j:
                continue
            kept = np.delete(np.arange(m), [i, j])
            own = gram[np.ix_(kept, kept)]
            own = own - own.mean(axis=1, keepdims=True)
            own = own - own.mean(axis=0)
            y = problem.y[kept]
            alpha = np.linalg.solve(own + ridge * np.eye(m - 2), y - y.mean())
            # the paper's h has no constant: w is a sum of centred items
            h = (gram[:, kept] - gram[:, kept].mean(axis=1, keepdims=True)) @ alpha
            drift[i, j] = h.mean() - problem.y.mean()
            true[i, j] = ((h[j] - problem.y[j]) - (h[i] - problem.y[i])) ** 2
    found = pair_costs(U, U @ (problem.y - problem.y.mean()) - problem.y, drift)
    off = ~np.eye(m, dtype=bool)
    np.testing.assert_allclose(found[off], true[off], rtol=1e-9)
    model = MPRank(C, kernel="rbf", gamma=0.2).fit(problem.X, problem.y)
    exact = model.leave_pair_out(problem.X, problem.y)
    assert true[off].mean() == pytest.approx(exact, rel=1e-9)
    approximate = approximate_leave_pair_out(gram, problem.y, ridge)
    assert approximate == pytest.approx(true[off].mean(), rel=0.3)
    assert approximate != pytest.approx(true[off].mean(), rel=1e-6)


def test_a_unit_compares_all_ways() -> None:
    settings = {
        "users": 8, "test_min": 20, "test_max": 60, "references": 20, "reference_min": 60,
        "reference_max": 120, "Cs": [1, 100], "refit_most": 18,
    }  # fmt: skip
    study = study_of("mprank_loo", settings, {"ratings": generated_ratings(150, 120)})
    units = run_all(study)
    assert len(units) == 8
    found = [{(r.metric, r.method, r.x): r.value for r in unit} for unit in units]
    refit = [one for one in found if ("pair error", "refitting, few ratings", 1.0) in one]
    assert 0 < len(refit) < 8  # by their number of ratings
    for one in refit:
        exact = one["pair error", "exact leave-pair-out", 100.0]
        assert one["pair error", "refitting, few ratings", 100.0] == pytest.approx(exact, rel=1e-9)
    for one in found:
        # of two values of C the better one for the held-out ratings is no worse than either
        best = min(one["pair error", "held-out ratings", x] for x in (1.0, 100.0))
        assert one["held-out MSD", "C by held-out ratings", None] == best
        assert one["held-out MSD", "C by leave-pair-out", None] >= best
