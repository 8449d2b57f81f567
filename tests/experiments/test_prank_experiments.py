"""The experiments of the PRank paper against naive twins."""

from __future__ import annotations

import numpy as np
import pytest
from studies import run_all, study_of

from spark_rank.experiments.curves import online_curve, rounds_shown
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
