"""The experiments of the MPRank paper on generated ratings, against naive twins."""

from __future__ import annotations

import dataclasses
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from studies import generated_ratings, run_all, study_of

from spark_rank.experiments import EXPERIMENTS
from spark_rank.experiments.frame import Result, Study
from spark_rank.experiments.mprank_candidates import (
    Candidates,
    choose,
    staged_scores,
    trial_results,
    trial_scores,
)
from spark_rank.experiments.reviewer_problems import (
    TIED,
    draw_problem,
    draw_reviewers,
    measured,
    tied_pairs,
    users_between,
)
from spark_rank.learners import MPRank, RankBoost, SVRank

TABLE1 = {
    "repeats": 2, "test_reviewers": 5, "test_min": 20, "test_max": 60, "references": 12,
    "group_limits": [30, 60, 90], "held_out": 4, "Cs": [1, 30], "epsilons": [0.3],
    "rounds": [2, 5], "movielens_gammas": [0.02],
}  # fmt: skip


@pytest.fixture(scope="module")
def study() -> Study:
    return study_of("mprank_table1", TABLE1, {"MovieLens": generated_ratings(150, 120)})


def test_halves_and_features_are_those_of_the_paper(study: Study) -> None:
    ratings = study.data["MovieLens"]
    reviewers = users_between(ratings, 30, 60)
    counts = np.array([len(ratings.of_user(u)[0]) for u in range(ratings.n_users)])
    assert set(reviewers) == {u for u in range(150) if 30 <= counts[u] <= 60}
    user = int(reviewers[3])
    problem = draw_problem(study, ratings, user, reviewers, len(reviewers), 0)
    items, values = ratings.of_user(user)
    assert sorted([*problem.y, *problem.test_ratings]) == sorted(values.tolist())
    assert len(problem.y) == len(items) // 2
    # every other reviewer is a feature: each row is that of an item of the user
    expected = {}
    for item, value in zip(items, values, strict=True):
        row = []
        for other in reviewers:
            if other == user:
                continue
            own, given = ratings.of_user(int(other))
            row.append(dict(zip(own.tolist(), given, strict=True)).get(item, np.median(given)))
        expected.setdefault(tuple(row), []).append(float(value))
    for rows, rated in ((problem.X, problem.y), (problem.test_items, problem.test_ratings)):
        for row, value in zip(rows, rated, strict=True):
            expected[tuple(row)].remove(value)
    assert not any(expected.values())


def test_halves_do_not_depend_on_the_reviewers(study: Study) -> None:
    ratings = study.data["MovieLens"]
    first, second = (
        draw_problem(study, ratings, 60, users_between(ratings, *group), 5, place)
        for place, group in enumerate(((30, 60), (60, 90)))
    )
    assert (first.y == second.y).all()
    assert first.X.shape == second.X.shape
    assert (first.X != second.X).any()


@pytest.mark.parametrize(("size", "disjoint"), [(10, True), (50, False)])
def test_repeats_share_nobody_if_there_are_enough(study: Study, size: int, disjoint: bool) -> None:
    eligible = np.arange(5, 105)
    drawn = draw_reviewers(study, eligible, held_out=30, repeats=3, size=size, keys=("x",))
    assert len(drawn.held_out) == 25  # a quarter at most
    parts = [set(part.tolist()) for part in drawn.repeats]
    assert [len(part) for part in parts] == [size] * 3
    assert all(not part & set(drawn.held_out.tolist()) for part in parts)
    assert all(part <= set(eligible.tolist()) for part in parts)
    assert all(not a & b for a, b in pairwise(parts)) == disjoint
    assert len({frozenset(part) for part in parts}) == 3


def test_trials_are_those_of_learners_one_by_one(study: Study) -> None:
    ratings = study.data["MovieLens"]
    problem = draw_problem(study, ratings, 70, users_between(ratings, 30, 60), 12, 0)
    candidates = Candidates([1, 30], [0.02, 0.1], [0.3, 1.0], [1, 4, 9])
    found: dict[str, list[np.ndarray]] = {}
    for method, scores in trial_scores(problem, candidates):
        found.setdefault(method, []).append(scores)
    for method, learner in (("MPRank", MPRank), ("MPRank by M1D", MPRank), ("SVRank", SVRank)):
        points = candidates.of(method)
        assert len(found[method]) == len(points)
        for point, scores in zip(points, found[method], strict=True):
            alone = learner(kernel="rbf", **point).fit(problem.X, problem.y)
            expected = alone.decision_function(problem.test_items)
            np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=1e-6)
    for point, scores in zip(candidates.of("RankBoost"), found["RankBoost"], strict=True):
        boosted = RankBoost(point["rounds"]).fit(problem.X, problem.y)
        assert (scores == boosted.decision_function(problem.test_items)).all()
    costs = trial_results(problem, candidates, part="p")
    by_method = {m: [r.value for r in costs if r.method == m] for m in found}
    costs_of = {"MPRank": "MSD", "MPRank by M1D": "M1D", "SVRank": "M1D", "RankBoost": "misranking"}
    for method, metric in costs_of.items():
        own = [measured(scores, problem.test_ratings)[metric] for scores in found[method]]
        assert by_method[method] == own


@given(arrays(float, 12, elements=st.integers(0, 3)), arrays(float, 12, elements=st.integers(1, 3)))
def test_tied_pairs_are_counted_one_by_one(
    scores: NDArray[np.float64], ratings: NDArray[np.float64]
) -> None:
    pairs = [
        scores[i] == scores[j] for i, j in combinations(range(12), 2) if ratings[i] != ratings[j]
    ]
    found = tied_pairs(scores, ratings)
    assert found == (pytest.approx(np.mean(pairs)) if pairs else None)


def test_no_boosting_round_scores_nothing() -> None:
    study = study_of("mprank_table1", TABLE1, {"MovieLens": generated_ratings(150, 120)})
    ratings = study.data["MovieLens"]
    problem = draw_problem(study, ratings, 70, users_between(ratings, 30, 60), 12, 0)
    tied = dataclasses.replace(problem, y=np.full(len(problem.y), 3.0))
    assert (staged_scores(tied, [5])[0] == 0).all()


def test_the_least_mean_cost_is_chosen() -> None:
    candidates = Candidates([1, 10, 100], [0.1], [0.3], [2])
    costs = {("a", 0): [3, 1], ("a", 1): [1, 2], ("a", 2): [2, 1], ("b", 2): [5], ("b", 1): [5]}
    results = [
        Result("MPRank", "MSD", float(v), part=part, x=float(x))
        for (part, x), values in costs.items()
        for v in values
    ]
    results.append(Result("MPRank", "MSD", None, part="a", x=0.0))
    chosen = choose(results, candidates)
    assert chosen["a"]["MPRank"]["C"] == 10  # a tie with 100, which comes later
    assert chosen["b"]["MPRank"]["C"] == 10


def test_table1_measures_every_learner_on_every_test_reviewer(study: Study) -> None:
    experiment = EXPERIMENTS["mprank_table1"]
    pilot = experiment.pilot
    assert pilot is not None
    trials = [r for unit in pilot.units(study) for r in pilot.run_unit(study, unit)]
    assert {r.part for r in trials} == {"MovieLens 30-60", "MovieLens 60-90"}
    chosen = dataclasses.replace(study, chosen=pilot.choose(study, trials))
    results = [r for unit in run_all(chosen) for r in unit]
    held_out = {r.target for r in trials}
    tested = {r.target for r in results}
    assert len(held_out) == 4
    assert len(tested) == 10
    assert not held_out & tested
    methods = {r.method for r in results}
    assert methods == {"constant", "MPRank", "MPRank by M1D", "SVRank", "RankBoost",
                       "RankBoost, 100 rounds"}  # fmt: skip
    assert len(results) == 2 * 10 * 6 * 4
    assert all(r.value == 1 for r in results if (r.method, r.metric) == ("constant", TIED))
    again = [r for unit in run_all(chosen) for r in unit]
    assert again == results
    by_key = {(r.part, r.target, r.method, r.metric): r.value for r in results}
    ratings = study.data["MovieLens"]
    user = ratings.user_ids.tolist().index(results[0].target)
    for group, part in enumerate(("MovieLens 30-60", "MovieLens 60-90")):
        own = users_between(ratings, *((30, 60), (60, 90))[group])
        problem = draw_problem(study, ratings, user, own, 12, group)
        model = MPRank(kernel="rbf", **chosen.chosen[part]["MPRank"]).fit(problem.X, problem.y)
        expected = measured(model.decision_function(problem.test_items), problem.test_ratings)
        for metric, value in expected.items():
            assert by_key[part, results[0].target, "MPRank", metric] == value


def test_published_figures_are_for_parts_that_are_measured() -> None:
    experiment = EXPERIMENTS["mprank_table1"]
    settings = experiment.settings()
    parts = {claim.part for claim in experiment.claims(settings)}
    figures = experiment.published(settings)
    assert {figure.part for figure in figures} == parts
    assert sum(not figure.again for figure in figures) == 6 * 3 * 2 + 4 * 2


@pytest.mark.parametrize("name", ["mprank_table1", "mprank_table2"])
def test_both_rows_of_rankboost_have_the_published_figure_and_one_counts(name: str) -> None:
    experiment = EXPERIMENTS[name]
    rows = ("RankBoost", "RankBoost, 100 rounds")
    found = {
        (figure.method, figure.part, figure.metric): figure
        for figure in experiment.published(experiment.settings())
        if figure.method in rows
    }
    places = {(part, metric) for _, part, metric in found}
    assert {metric for _, metric in places} == {"MSD", "M1D", "misranking"}
    for place in places:
        own, after = (found[row, *place] for row in rows)
        assert (own.value, own.reach, own.source) == (after.value, after.reach, after.source)
        assert (own.again, after.again) == (False, True)


def test_a_statement_is_the_papers_only_where_its_table_has_the_group() -> None:
    experiment = EXPERIMENTS["mprank_table1"]
    settings = experiment.settings()
    printed = {(figure.part, figure.metric) for figure in experiment.published(settings)}
    for claim in experiment.claims(settings):
        by_the_paper = claim.source != "ours"
        if claim.higher != "constant":
            assert by_the_paper == ((claim.part, claim.metric) in printed)
    compared = {(c.metric, c.lower, c.higher) for c in experiment.claims(settings)}
    assert ("M1D", "MPRank", "SVRank") in compared


def test_online_rounds_come_to_the_batch_solution() -> None:
    settings = {"users": 2, "ratings": 60, "references": 15, "reference_min": 20, "Cs": [1, 10],
                "rounds": 60, "eta": 0.05, "timed": [20]}  # fmt: skip
    study = study_of("mprank_online", settings, {"ratings": generated_ratings(150, 120)})
    counts = study.data["ratings"].n_ratings
    experiment = EXPERIMENTS["mprank_online"]
    nearest = sorted(np.abs(counts - 60))[1]
    assert all(abs(counts[user] - 60) <= nearest for (user,) in experiment.units(study))
    for unit in run_all(study):
        found = {(r.metric, r.method, r.x): r.value for r in unit}
        excess = [v for (m, method, _), v in found.items()
                  if (m, method) == ("excess cost", "exact step")]  # fmt: skip
        assert excess == sorted(excess, reverse=True)
        assert excess[-1] < 1e-6 < excess[0]
        batch = found["MSD", "batch", None]
        above = "MSD above the batch solution's"
        assert found[above, "exact step", 60.0] == pytest.approx(0.0, abs=1e-3 * batch)
        assert abs(found[above, "exact step", 1.0]) > abs(found[above, "exact step", 60.0])
        assert found["MSD", "exact step, stopped", None] == pytest.approx(batch, rel=0.05)
        for figure in experiment.published(study.settings):  # the text's, for either step
            assert found[figure.metric, figure.method, figure.x] > 0
            assert figure.value == 120.0
    assert experiment.timings is not None
    timed = experiment.timings(study)
    assert {(t.method, t.x) for t in timed} == {("batch", 20.0), ("on-line", 20.0)}
    assert all(t.seconds > 0 for t in timed)


def test_bounds_hold_on_generated_ratings() -> None:
    settings = {"users": 3, "sizes": [8, 30], "references": 20, "reference_min": 30}
    study = study_of("bounds", settings, {"ratings": generated_ratings(150, 120)})
    for unit in run_all(study):
        found = {(r.metric, r.method, r.x): r.value for r in unit}
        msd = "MSD above the training MSD"
        assert found[msd, "stability bound", 30.0] < found[msd, "stability bound", 8.0]
        for x in (8.0, 30.0):
            assert found[msd, "measured", x] < found[msd, "stability bound", x]
            costs = "training and held-out cost"
            gap = found[costs, "held-out MSD", x] - found[costs, "training MSD", x]
            assert found[msd, "measured", x] == pytest.approx(gap)
            ranks = "misranking above the margin loss"
            assert found[ranks, "measured", x] < found[ranks, "margin bound", x]
