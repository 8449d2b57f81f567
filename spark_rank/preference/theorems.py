"""Tests the theorems on QuickSort and sort-by-degree on random tournaments.

Every row compares a measured ratio of mean losses (or mean number of calls) with the theorem's
value. Intervals are at 99.9 %, so that a run of some dozens of rows rarely fails by chance.

References
----------
Ailon, Mohri: An Efficient Reduction of Ranking to Classification. Balcan et al.: Robust
Reductions from Ranking to Classification. Martínez: Partial Quicksort (calls for the first k).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spark_rank.preference.aggregation import aggregate_majorities
from spark_rank.preference.errors import InvalidSettingError
from spark_rank.preference.losses import preference_loss, ranking_loss
from spark_rank.preference.preferences import Counted
from spark_rank.preference.ready_made import from_matrix
from spark_rank.preference.regrets import decomposition_row, regret_rows
from spark_rank.preference.sorting import degree_rank, quicksort_rank
from spark_rank.preference.theorem_rows import TheoremRow, at_most, equality
from spark_rank.preference.tournaments import (
    THREE_CYCLE,
    noisy_tournament,
    random_tournament,
    random_truth,
    transitive_tournament,
)
from spark_rank.preference.weights import Weight, kemeny, top_k

FloatArray = NDArray[np.float64]

_NOISE = 0.1  # share of reversed pairs in the noisy tournaments
_MAX_EXACT = 15  # greatest number of items for which the optimal order is computed
# the least loss of a small tournament is often 0; several runs of each narrow the interval
_RUNS = 10
_GOOD_FIT = 0.99  # R² that a growth law must reach
_ROUNDING = 1e-12
_MOST_ENUMERATED = 20  # tournaments whose every run of QuickSort is enumerated


def run_theorems(
    seed: int = 0, trials: int = 200, sizes: tuple[int, ...] = (5, 10, 20, 50, 100, 200)
) -> list[TheoremRow]:
    """Test all theorems at all sizes; the result depends only on the arguments.

    `trials` is the number of random tournaments per row; `sizes` are numbers of items.
    O(trials Σ n²) time. Rows that need the optimal order are tested up to 15 items only.
    """
    if trials < 2 or not sizes or min(sizes) < 3:
        raise InvalidSettingError(
            f"trials={trials}, sizes={sizes}: give at least 2 trials and sizes from 3"
        )
    rows: list[TheoremRow] = []
    # each group has its own generator, so that adding to one does not change the others
    streams = np.random.default_rng(seed).spawn(6)
    for n in sizes:
        rows += _losses(n, trials, streams[0])
        if n <= _MAX_EXACT:
            rows += _against_optimal(n, trials, streams[1])
    rows += [_deterministic_lower_bound(), _quicksort_on_the_cycle(trials, streams[2])]
    rows += regret_rows(trials, streams[5])
    rows.append(decomposition_row(min(trials, _MOST_ENUMERATED), streams[5]))
    for n in sizes:
        rows += _calls(n, trials, streams[3])
    return rows + _fits(sizes, trials, streams[4])


def _losses(n: int, trials: int, rng: np.random.Generator) -> Iterator[TheoremRow]:
    """Test the losses of QuickSort and sort-by-degree, relative to the preference's own loss."""
    for kind in ("random", "noisy"):
        by_h, by_quicksort, by_degree = _sample_losses(n, kind, trials, rng, bipartite=True)
        yield equality("quicksort bipartite = 1", kind, n, (by_quicksort, by_h), 1.0)
        yield at_most("degree bipartite <= 2", kind, n, (by_degree, by_h), 2.0)
        by_h, by_quicksort, by_degree = _sample_losses(n, kind, trials, rng)
        yield at_most("quicksort general <= 2", kind, n, (by_quicksort, by_h), 2.0)
        # no theorem: single tournaments exceed 2 (the 3-cycle reaches 3), their average does not
        yield at_most("degree general, on average <= 2", kind, n, (by_degree, by_h), 2.0)
        k = max(n // 4, 1)
        by_h, by_quicksort, _ = _sample_losses(n, kind, trials, rng, weight=top_k(k))
        yield at_most("quicksort top-k weight <= 2", kind, n, (by_quicksort, by_h), 2.0, k=k)


def _sample_losses(
    n: int,
    kind: str,
    trials: int,
    rng: np.random.Generator,
    *,
    bipartite: bool = False,
    weight: Weight = kemeny,
) -> FloatArray:
    """Return the losses of h, of QuickSort's order and of the degrees' order, one per trial."""
    losses = np.empty((3, trials))
    for trial in range(trials):
        truth = random_truth(n, rng, bipartite=bipartite)
        prefer = from_matrix(_tournament(kind, truth, n, rng))
        losses[:, trial] = (
            preference_loss(prefer, truth, weight),
            ranking_loss(quicksort_rank(range(n), prefer, rng), truth, weight),
            ranking_loss(degree_rank(range(n), prefer), truth, weight),
        )
    return losses


def _against_optimal(n: int, trials: int, rng: np.random.Generator) -> Iterator[TheoremRow]:
    """Test QuickSort against σ_opt = argmin L(h, σ): the factors 2 and 3."""
    for kind in ("random", "noisy"):
        losses = np.empty((3, trials))
        for trial in range(trials):
            matrix = _tournament(kind, random_truth(n, rng, bipartite=False), n, rng)
            prefer, optimal = from_matrix(matrix), aggregate_majorities(matrix, "exact").order
            orders = [quicksort_rank(range(n), prefer, rng) for _ in range(_RUNS)]
            losses[:, trial] = (
                preference_loss(prefer, optimal),
                np.mean([ranking_loss(order, optimal) for order in orders]),
                np.mean([preference_loss(prefer, order) for order in orders]),
            )
        least, to_optimal, to_order = losses
        theorem = "L(quicksort, optimal) <= 2 L(h, optimal)"
        yield at_most(theorem, kind, n, (to_optimal, least), 2.0)
        theorem = "L(h, quicksort) <= 3 L(h, optimal)"
        yield at_most(theorem, kind, n, (to_order, least), 3.0)


def _tournament(kind: str, truth: list[Any], n: int, rng: np.random.Generator) -> FloatArray:
    return random_tournament(n, rng) if kind == "random" else noisy_tournament(truth, rng, _NOISE)


def _deterministic_lower_bound() -> TheoremRow:
    """Enumerate all answers to the 3-cycle: each has a bipartite truth that makes it lose 2 L(h).

    Sort-by-degree attains the factor, so 2 is the best that a deterministic algorithm can have.
    """
    prefer = from_matrix(THREE_CYCLE)
    worst = [
        max(
            _of(ranking_loss(order, truth)) / _of(preference_loss(prefer, truth))
            for truth in _splits_of_three()
        )
        for order in itertools.permutations(range(3))
    ]
    least = min(worst)
    theorem = "deterministic on the 3-cycle >= 2"
    holds = least >= 2.0 - _ROUNDING
    return TheoremRow(theorem, "enumerated", 3, None, 1, least, None, None, 2.0, holds)


def _quicksort_on_the_cycle(trials: int, rng: np.random.Generator) -> TheoremRow:
    """Run QuickSort on the 3-cycle under the truths that a deterministic algorithm fails."""
    prefer = from_matrix(THREE_CYCLE)
    truths = [truth for truth in _splits_of_three() if len(truth[0]) == 1]
    losses = np.empty((2, trials))
    for trial in range(trials):
        # the truth is chosen before the algorithm draws
        truth = truths[trial % len(truths)]
        order = quicksort_rank(range(3), prefer, rng)
        losses[:, trial] = preference_loss(prefer, truth), ranking_loss(order, truth)
    return equality("quicksort on the 3-cycle = 1", "random", 3, (losses[1], losses[0]), 1.0)


def _splits_of_three() -> list[list[frozenset[int]]]:
    everything = frozenset(range(3))
    tops = [frozenset(top) for size in (1, 2) for top in itertools.combinations(range(3), size)]
    return [[top, everything - top] for top in tops]


def _calls(n: int, trials: int, rng: np.random.Generator) -> Iterator[TheoremRow]:
    """Test the mean number of calls with transitive preferences against its closed form."""
    calls = _count_calls(n, None, trials, rng, transitive=True)
    yield equality("calls = 2(n+1)H_n - 4n", "transitive", n, (calls,), expected_calls(n, n))
    for k in _tops(n):
        calls = _count_calls(n, k, trials, rng, transitive=True)
        yield equality(
            "calls for the first k", "transitive", n, (calls,), expected_calls(n, k), k=k
        )


def expected_calls(n: int, k: int) -> float:
    """Return the expected calls of QuickSort for the first k of n items, h being transitive.

    ``2n + 2(n+1)H_n − 2(n+3−k)H_{n+1−k} − 6k + 6``, which for k = n is 2(n+1)H_n − 4n.
    """
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, n + 2))])
    both = (n + 1) * harmonic[n] - (n + 3 - k) * harmonic[n + 1 - k]
    return float(2.0 * n + 2.0 * both - 6.0 * k + 6.0)


def _fits(sizes: tuple[int, ...], trials: int, rng: np.random.Generator) -> list[TheoremRow]:
    """Fit the laws of growth to the mean calls on random, non-transitive tournaments."""
    points = [(n, n) for n in sizes]
    whole = _fit_row("calls ~ n log n", points, trials, rng)
    points = [(n, k) for n in sizes for k in _tops(n)]
    return [whole, _fit_row("calls ~ n + k log k", points, trials, rng)]


def _fit_row(
    theorem: str, points: list[tuple[int, int]], trials: int, rng: np.random.Generator
) -> TheoremRow:
    """Fit ``a + b·n + c·k ln k`` (b = 0 where k = n) by least squares; `measured` is R²."""
    means = np.array([_count_calls(n, k, trials, rng, transitive=False).mean() for n, k in points])
    n, k = np.array(points, dtype=np.float64).T
    columns = [np.ones(len(points)), k * np.log(k)]
    if (n != k).any():
        columns.append(n)
    fit = _r_squared(np.stack(columns, axis=1), means)
    holds = fit is not None and fit >= _GOOD_FIT
    largest = int(n.max())
    return TheoremRow(theorem, "random", largest, None, trials, fit, None, None, _GOOD_FIT, holds)


def _r_squared(design: FloatArray, values: FloatArray) -> float | None:
    """Return R², None unless there are more points than coefficients."""
    if len(values) <= design.shape[1]:
        return None
    left = values - design @ np.linalg.lstsq(design, values)[0]
    return 1.0 - float(left @ left) / float(((values - values.mean()) ** 2).sum())


def _count_calls(
    n: int, k: int | None, trials: int, rng: np.random.Generator, *, transitive: bool
) -> FloatArray:
    draw = transitive_tournament if transitive else random_tournament
    calls = np.empty(trials)
    for trial in range(trials):
        prefer = Counted(from_matrix(draw(n, rng)))
        quicksort_rank(range(n), prefer, rng, top=k)
        calls[trial] = prefer.calls
    return calls


def _tops(n: int) -> list[int]:
    return sorted({max(n // 10, 1), max(n // 4, 1), max(n // 2, 1)})


def _of(loss: float | None) -> float:
    """Return a loss that is not None; raise if there are fewer than two items."""
    if loss is None:
        raise InvalidSettingError("losses need at least two items: give larger sizes")
    return loss
