"""Regrets and QuickSort's decomposition: against runs, and the losses of the package."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from spark_rank.preference import preference_loss, quicksort_rank, ranking_loss
from spark_rank.preference.aggregation import aggregate_majorities
from spark_rank.preference.ready_made import from_matrix
from spark_rank.preference.regrets import (
    decomposition,
    decomposition_row,
    least_losses,
    losses_of,
    mean_truth,
    order_chances,
    regret_rows,
)
from spark_rank.preference.sorting import degree_rank
from spark_rank.preference.tournaments import THREE_CYCLE, random_tournament, random_truth


def test_the_chances_of_orders_are_those_of_runs() -> None:
    rng = np.random.default_rng(0)
    h = random_tournament(5, rng)
    before = np.zeros((5, 5))
    for _ in range(6000):
        order = quicksort_rank(range(5), from_matrix(h), rng)
        for i, j in itertools.combinations(range(5), 2):
            before[order[i], order[j]] += 1.0 / 6000
    np.testing.assert_allclose(order_chances(h), before, atol=0.035)  # over five deviations
    np.testing.assert_allclose(decomposition(h), 1.0)
    np.testing.assert_allclose(decomposition(THREE_CYCLE), 1.0)


def test_losses_are_those_of_the_package() -> None:
    rng = np.random.default_rng(1)
    truths = [random_truth(5, rng, bipartite=True) for _ in range(3)]
    h = random_tournament(5, rng)
    prefer, order = from_matrix(h), degree_rank(range(5), from_matrix(h))
    of_h, of_quicksort, of_degree = losses_of(h, mean_truth(truths))
    assert of_h == pytest.approx(np.mean([preference_loss(prefer, truth) for truth in truths]))
    assert of_degree == pytest.approx(np.mean([ranking_loss(order, truth) for truth in truths]))
    assert of_quicksort == pytest.approx(of_h)  # the bipartite equality
    runs = [quicksort_rank(range(5), prefer, rng) for _ in range(3000)]
    mean = np.mean([ranking_loss(run, truth) for run in runs for truth in truths])
    assert of_quicksort == pytest.approx(mean, abs=0.02)


def test_the_least_losses_are_the_least() -> None:
    rng = np.random.default_rng(2)
    above = mean_truth([random_truth(5, rng, bipartite=True) for _ in range(3)])
    of_h, of_order = least_losses(above)
    tried = [losses_of(random_tournament(5, rng), above)[0] for _ in range(500)]
    assert of_h <= min(tried) + 1e-12
    assert of_h <= of_order + 1e-12
    # Kemeny's order of the complete majorities is the best order
    majorities = (1.0 + above - above.T) / 2.0
    best = aggregate_majorities(majorities, "exact").order
    places = np.argsort(best)
    puts = (places[:, None] < places).astype(float)
    assert of_order == pytest.approx(2.0 * (puts * above.T).sum() / 20.0)


def test_every_bound_holds_and_would_fail_if_it_were_tighter() -> None:
    rows = list(regret_rows(30, np.random.default_rng(3)))
    assert len(rows) == 8
    assert all(row.holds for row in rows)
    assert decomposition_row(5, np.random.default_rng(4)).holds
    quicksort = [row.measured for row in rows if row.theorem.startswith("quicksort")]
    assert all(0.5 < ratio <= 1.0 + 1e-9 for ratio in quicksort)
