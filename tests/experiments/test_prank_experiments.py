"""The experiments of the PRank paper against naive twins."""

from __future__ import annotations

import numpy as np
import pytest
from studies import generated_ratings, run_all, study_of

from spark_rank.experiments import EXPERIMENTS
from spark_rank.experiments.curves import online_curve, rounds_shown
from spark_rank.experiments.prank_ellipses import cell_centres, draw_ellipses, true_ranks
from spark_rank.experiments.prank_ratings import mean_so_far_loss
from spark_rank.experiments.product_ranks import draw_product_ranks


def test_ranks_of_points_follow_the_formula() -> None:
    drawn = draw_product_ranks(np.random.default_rng(1), 500, 0.125)
    thresholds = [-np.inf, -1.0, -0.1, 0.25, 1.0]
    for (x1, x2), rank in zip(drawn.points, drawn.noiseless, strict=True):
        value = 10 * ((x1 - 0.5) * (x2 - 0.5))
        assert rank == max(r for r in range(1, 6) if value > thresholds[r - 1])
    # of 500 points near and far from thresholds the noise moves some, and none by more than two
    moved = np.abs(drawn.ranks - drawn.noiseless)
    assert 0 < (moved > 0).mean() < 0.4
    assert moved.max() <= 2
    assert (draw_product_ranks(np.random.default_rng(1), 500, 0.0).ranks == drawn.noiseless).all()


@pytest.mark.parametrize("n_rounds", [1, 5, 60, 61, 7000, 50_000])
def test_curves_show_first_and_last_round(n_rounds: int) -> None:
    shown = rounds_shown(n_rounds)
    assert shown[0] == 1
    assert shown[-1] == n_rounds
    assert len(shown) <= 60
    assert (np.diff(shown) > 0).all()
    averages = np.arange(n_rounds) / 7
    results = online_curve(averages, "m", "loss")
    assert [(r.x, r.value) for r in results] == [(t, averages[int(t) - 1]) for t in shown]


def test_synthetic_sequences_are_learned_as_the_paper_says() -> None:
    study = study_of("prank_synthetic", {"repeats": 2, "rounds": 200})
    first, second = run_all(study)
    assert [r.value for r in first] != [r.value for r in second]
    assert [r.value for r in run_all(study)[1]] == [r.value for r in second]
    drawn = draw_product_ranks(study.generator("sequence", 1), 200, 0.125)
    curve = {r.x: r.value for r in second if r.method == "PRank"}
    expected = naive_kernel_prank(drawn.points, drawn.ranks)
    assert curve == pytest.approx({t: expected[int(t) - 1] for t in curve})
    assert {r.method for r in second} == {"PRank", "WH 0.1", "WH-unit 1", "MCP"}


def test_a_step_that_is_too_large_is_a_row_and_ends_nothing() -> None:
    # 1 is said to be the published step; on the features as they are the weights overflow
    study = study_of("prank_synthetic", {"repeats": 1, "rounds": 3000, "etas": [1, 0.1]})
    (results,) = run_all(study)
    (failed,) = [r for r in results if r.method == "WH 1"]
    assert (failed.value, failed.x) == (None, 3000.0)
    assert "eta" in (failed.detail or "")
    ends = {r.method: r.value for r in results if r.x == 3000.0}
    assert [name for name, loss in ends.items() if loss is None] == ["WH 1"]
    viewers = study_of("prank_ratings_100", {"repeats": 1, "over": 12, "rounds": 40, "eta": 1e30},
                       {"ratings": generated_ratings(60, 50)})  # fmt: skip
    (results,) = run_all(viewers)
    assert {r.method for r in results if r.value is None} == {"WH", "WH, constant"}
    assert {r.method for r in results if r.value is not None} >= {"PRank", "MCP", "mean so far"}


def naive_kernel_prank(points: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """PRank in kernel form with K(x, z) = (x·z + 1)², round by round, as listed in the paper."""
    thresholds = np.zeros(4)
    supports: list[tuple[np.ndarray, float]] = []
    losses = []
    for x, y in zip(points, ranks, strict=True):
        score = sum(tau * (x @ z + 1) ** 2 for z, tau in supports)
        below = [r for r in range(1, 5) if score - thresholds[r - 1] < 0]
        predicted = min([*below, 5])
        losses.append(abs(predicted - y))
        if predicted != y:
            signs = np.array([-1 if y <= r else 1 for r in range(1, 5)])
            taus = np.where((score - thresholds) * signs <= 0, signs, 0)
            supports.append((x, taus.sum()))
            thresholds -= taus
    return np.cumsum(losses) / np.arange(1, len(losses) + 1)


def test_viewers_are_learned_from_all_the_others() -> None:
    data = generated_ratings(30, 24)
    settings = {"repeats": 3, "over": 12, "rounds": 10}
    study = study_of("prank_ratings_100", settings, {"ratings": data})
    units = EXPERIMENTS["prank_ratings_100"].units(study)
    for (repeat, target), results in zip(units, run_all(study), strict=True):
        items, ratings = data.of_user(target)
        assert len(items) > 12
        order = study.generator("order", repeat).permutation(len(items))[:10]
        others = [u for u in range(30) if data.n_ratings[u] > 12 and u != target]
        rated = [dict(zip(*data.of_user(u), strict=True)) for u in others]
        x = np.array([[own.get(items[i], 3.0) - 3.0 for own in rated] for i in order])
        ranks = ratings[order].astype(int)
        curves = {m: [r.value for r in results if r.method == m] for m in METHODS}
        assert curves["PRank, not scaled"] == pytest.approx(naive_linear_prank(x, ranks))
        unit = x / np.linalg.norm(x, axis=1, keepdims=True)
        assert curves["PRank"] == pytest.approx(naive_linear_prank(unit, ranks))
        assert curves["WH"] == pytest.approx(naive_widrow_hoff(unit, ranks, 1.0))
        assert {r.target for r in results} == {str(data.user_ids[target])}


def test_the_mean_so_far_is_rounded_half_up() -> None:
    # predictions: 3 to begin with, then the nearest to 5, 9/2, 10/3
    losses = mean_so_far_loss(np.array([5, 4, 1, 2]), 5)
    assert losses == pytest.approx([2 / 1, 3 / 2, 7 / 3, 8 / 4])


def test_ellipses_have_their_ranks_and_regions_their_loss() -> None:
    study = study_of("prank_ellipses", {"repeats": 2, "grid": 20})
    drawn = draw_ellipses(study.generator("points", 0), 50)
    assert np.bincount(drawn.ranks).tolist() == [0, 10, 10, 10, 10, 10]
    x, y = drawn.points.T
    assert x**2 + (y / 0.6) ** 2 == pytest.approx((drawn.ranks / 5) ** 2)
    assert (true_ranks(drawn.points) == drawn.ranks).all()
    first, second = run_all(study)
    cells = cell_centres(20)
    inside = cells[:, 0] ** 2 + (cells[:, 1] / 0.6) ** 2 <= 1
    for method in ("PRank", "MCP", "WH"):
        region = [r.value for r in first if (r.method, r.metric) == (method, "region")]
        (loss,) = [r.value for r in first if (r.method, r.x) == (method, None)]
        distances = np.abs(np.array(region) - true_ranks(cells))
        assert loss == pytest.approx(distances[inside].mean())
    # the picture is of the first set only
    assert {r.metric for r in second} == {"rank loss over the plane"}


METHODS = ("PRank", "PRank, not scaled", "WH", "MCP")


def naive_linear_prank(x: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    k, losses = 5, []
    w, b = np.zeros(x.shape[1]), np.zeros(k - 1)
    for row, y in zip(x, ranks, strict=True):
        score = row @ w
        predicted = 1 + int((score >= b).sum())
        losses.append(abs(predicted - y))
        if predicted != y:
            signs = np.where(y <= np.arange(1, k), -1, 1)
            taus = np.where((score - b) * signs <= 0, signs, 0)
            w, b = w + taus.sum() * row, b - taus
    return np.cumsum(losses) / np.arange(1, len(losses) + 1)


def naive_widrow_hoff(x: np.ndarray, ranks: np.ndarray, eta: float) -> np.ndarray:
    w, losses = np.zeros(x.shape[1]), []
    for row, y in zip(x, ranks, strict=True):
        score = row @ w
        losses.append(abs(np.clip(np.floor(score + 0.5), 1, 5) - y))
        w = w + eta * (y - score) * row
    return np.cumsum(losses) / np.arange(1, len(losses) + 1)
