"""Learners beside other recommenders: one split for all, features without held-out ratings."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from studies import generated_ratings, run_all, study_of
from test_peers import draw_split

from spark_rank.experiments import EXPERIMENTS
from spark_rank.experiments.alternating import als_scores, solved
from spark_rank.experiments.frame import Study
from spark_rank.experiments.modern_methods import LEARNERS, PEERS, peer_scores, predicted
from spark_rank.experiments.rating_set import RatingSet
from spark_rank.experiments.shared_halves import (
    factor_features,
    item_offsets,
    reference_task,
    rows_of,
    split_of,
)
from spark_rank.experiments.summary import Found, compare, summarise
from spark_rank.learners import ConstantScorer, ItemOffsetScorer

SETTINGS = {"users": 6, "held_out": 3, "rank": 2, "factor_rounds": 2, "references": 10,
            "reference_min": 8, "chunk": 4}  # fmt: skip


@pytest.fixture(scope="module")
def study() -> Study:
    return study_of("modern", SETTINGS, {"ratings": generated_ratings(60, 50)})


def test_least_squares_factors_solve_the_normal_equations() -> None:
    split = draw_split(0)
    rng = np.random.default_rng(1)
    factors = rng.standard_normal((split.n_items, 3))
    found = solved(split.ends, split.items, split.ratings, factors, 0.4)
    for user, (first, last) in enumerate(zip(split.ends[:-1], split.ends[1:], strict=True)):
        Z, r = factors[split.items[first:last]], split.ratings[first:last]
        gradient = Z.T @ (Z @ found[user] - r) + 0.4 * (last - first) * found[user]
        np.testing.assert_allclose(gradient, 0.0, atol=1e-9)
    scores = als_scores(split, rank=2, ridge=0.1, rounds=3, seed=0)
    unknown = ~np.isin(split.test_items, split.items)
    assert unknown.any()
    means = [split.ratings[a:b].mean() for a, b in zip(split.ends, split.ends[1:], strict=False)]
    np.testing.assert_allclose(scores[unknown], np.array(means)[split.held_out_users()][unknown])


def test_everything_is_split_into_halves(study: Study) -> None:
    ratings, split = study.data["ratings"], split_of(study)
    for user in range(ratings.n_users):
        own, held_out = rows_of(split, user)
        items = [*split.items[own], *split.test_items[held_out]]
        values = [*split.ratings[own], *split.test_ratings[held_out]]
        expected = dict(zip(*ratings.of_user(user), strict=True))
        assert dict(zip(items, values, strict=True)) == expected
        assert 0 <= (own.stop - own.start) - (held_out.stop - held_out.start) <= 1


def test_features_know_no_held_out_rating(study: Study) -> None:
    ratings, split, user = study.data["ratings"], split_of(study), 40
    before = reference_task(study, split, user, 10, 8)
    changed = np.array(ratings.ratings)
    order = {(u, i): p for p, (u, i) in enumerate(zip(
        np.repeat(np.arange(60), ratings.n_ratings), ratings.items, strict=True))}  # fmt: skip
    for other, item in zip(split.held_out_users(), split.test_items, strict=True):
        place = order[other, item]
        changed[place] = 6.0 - changed[place]
    moved: RatingSet = dataclasses.replace(ratings, ratings=changed)
    other_study = dataclasses.replace(study, data={"ratings": moved})
    other_split = split_of(other_study)
    assert (other_split.test_ratings != split.test_ratings).any()
    after = reference_task(other_study, other_split, user, 10, 8)
    np.testing.assert_array_equal(before.X, after.X)
    np.testing.assert_array_equal(before.test_features, after.test_features)
    first, second = (
        factor_features(data, 0, 2, 2).task(own, user)
        for data, own in ((ratings, split), (moved, other_split))
    )
    np.testing.assert_array_equal(first.X, second.X)
    np.testing.assert_array_equal(first.test_offset, second.test_offset)
    np.testing.assert_array_equal(item_offsets(split), item_offsets(other_split))


def test_reviewers_are_others(study: Study) -> None:
    split, user = split_of(study), 40
    task = reference_task(study, split, user, 1000, 8)
    others = [u for u in range(60) if u != user and split.ends[u + 1] - split.ends[u] >= 8]
    own, held_out = rows_of(split, user)
    items = [*split.items[own], *split.test_items[held_out]]
    rows = np.vstack([task.X, task.test_features])
    for column, reviewer in enumerate(others):
        given = rows_of(split, reviewer)[0]
        known = dict(zip(split.items[given], split.ratings[given], strict=True))
        expected = [known.get(item, np.median(split.ratings[given])) - 3.0 for item in items]
        np.testing.assert_array_equal(rows[:, column], expected)


def test_baselines_predict_ratings(study: Study) -> None:
    """They are those of the package: errors of a prediction mean nothing at another level."""
    split = split_of(study)
    for peer, learner, offsets in (
        ("constant", ConstantScorer(), np.zeros(split.n_items)),
        ("item offset", ItemOffsetScorer(), item_offsets(split)),
    ):
        ((_, scores),) = peer_scores(peer, split, 0)
        for user in range(len(split.ends) - 1):
            own, held_out = rows_of(split, user)
            known, asked = split.items[own], split.test_items[held_out]
            none = np.empty((len(known), 0)), np.empty((len(asked), 0))
            fitted = learner.fit(none[0], split.ratings[own], offset=offsets[known])
            expected = fitted.decision_function(none[1], offset=offsets[asked])
            np.testing.assert_allclose(scores[held_out], expected)


def test_a_failure_is_a_result_without_a_value(study: Study) -> None:
    split = split_of(study)
    task = reference_task(study, split, 40, 10, 8)
    overflowing = {"eta": 1e300, "epochs": 5}
    assert predicted(LEARNERS["factors"]["WH"], overflowing, task, np.arange(1.0, 6.0)) is None


def assert_errors_agree(found: list[Found]) -> None:
    """Errors have a mean and a variance around it, of which the MSD is twice the latter."""
    values = {(r.method, r.target, r.metric): r.value for r in (one.result for one in found)}
    squares = []
    for (method, target, metric), value in values.items():
        if metric == "RMSE" and value is not None:
            msd, mae = values[method, target, "MSD"], values[method, target, "MAE"]
            squares.append((value**2, msd / 2, mae**2))
    rmse, variance, mae = np.array(squares).T
    assert len(rmse) > 6 * len(PEERS)
    assert (variance <= rmse * (1 + 1e-9)).all()
    assert (rmse - variance <= mae * (1 + 1e-9)).all(), "no mean error is above the mean size"
    assert (mae <= rmse * (1 + 1e-9)).all()
    assert (variance < 0.999 * rmse).any()


def test_all_methods_are_measured_on_the_same_users(study: Study) -> None:
    experiment = EXPERIMENTS["modern"]
    pilot = experiment.pilot
    assert pilot is not None
    trials = [r for unit in pilot.units(study) for r in pilot.run_unit(study, unit)]
    ready = dataclasses.replace(study, chosen=pilot.choose(study, trials))
    units = run_all(ready)
    found = [Found(number, r) for number, unit in enumerate(units) for r in unit]
    methods = {*PEERS, *(f"{n} ({kind})" for kind, own in LEARNERS.items() for n in own)}
    assert set(ready.chosen) == methods
    users: dict[str, set] = {}
    for one in found:
        users.setdefault(one.result.method, set()).add(one.result.target)
    assert users.keys() == methods
    assert len({frozenset(own) for own in users.values()}) == 1
    assert len(users["ALS"]) == 6
    summary = {(r.method, r.metric): r for r in summarise(experiment, ready.settings, found)}
    assert summary["ALS", "MSD"].n == 6
    assert summary["RankBoost (factors)", "MSD"].n == 0
    mean = np.mean([one.result.value for one in found
                    if (one.result.method, one.result.metric) == ("ALS", "MSD")])  # fmt: skip
    assert summary["ALS", "MSD"].mean == pytest.approx(mean)
    assert_errors_agree(found)
    tested = compare(experiment, ready.settings, found)
    assert all(claim.n <= 6 for claim in tested)
    assert all(claim.n == 6 for claim in tested if claim.metric in ("MSD", "M1D", "misranking"))
    metrics = {"MSD", "M1D", "misranking", "RMSE", "MAE", "NDCG@10", "precision@10", "recall@10",
               "MAP@10"}  # fmt: skip
    assert {claim.metric for claim in tested} == metrics
    # whichever way a metric counts, MPRank is said to be the better one
    mprank = "MPRank, Gaussian too (factors)"
    for claim in tested:
        better = claim.higher if claim.metric.endswith("@10") else claim.lower
        assert better == mprank
    assert all(0.0 <= claim.wilcoxon_p <= claim.wilcoxon_p_holm <= 1.0 for claim in tested)
