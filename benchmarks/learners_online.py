"""How fast the online learners are: shares of what bare loops do, all measured in one run.

python benchmarks/learners_online.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np
from numba import njit
from numpy.typing import NDArray

from spark_rank.learners.feature_maps import polynomial_features
from spark_rank.learners.oap import OAP
from spark_rank.learners.prank import PRank

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def ordinal_data(n_examples: int, n_features: int) -> tuple[Floats, Ints]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_examples, n_features))
    scores = X @ rng.normal(size=n_features) / np.sqrt(n_features)
    cuts = [-1.0, -0.3, 0.3, 1.0]
    noisy = scores + 0.3 * rng.normal(size=n_examples)
    return X, np.searchsorted(cuts, noisy).astype(np.int64) + 1


def synthetic_data(n_examples: int) -> tuple[Floats, Ints]:
    """Return the synthetic problem of Crammer & Singer and Harrington, on its explicit map."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(n_examples, 2))
    noisy = 10 * (x[:, 0] - 0.5) * (x[:, 1] - 0.5) + rng.normal(0.0, 0.125, n_examples)
    ranks = 1 + (noisy[:, None] > [-1.0, -0.1, 0.25, 1.0]).sum(axis=1)
    return polynomial_features(x), ranks


def bare_loop(X: Floats, amounts: Floats, coef: Floats, scores: Floats) -> None:
    """Only the dot products and the updates of a PRank run whose Σ τ_r are known."""
    for t in range(X.shape[0]):
        score = 0.0
        for i in range(X.shape[1]):
            score += coef[i] * X[t, i]
        scores[t] = score
        if amounts[t] != 0.0:
            for i in range(X.shape[1]):
                coef[i] += amounts[t] * X[t, i]


@njit(fastmath=True)
def sum_of_entries(X: Floats) -> float:
    """Read everything once: the memory's own limit."""
    total = 0.0
    for t in range(X.shape[0]):
        for i in range(X.shape[1]):
            total += X[t, i]
    return total


bare_in_order = njit(bare_loop)
bare_reordered = njit(fastmath=True)(bare_loop)


def numpy_as_printed(X: Floats, ranks: Ints, n_ranks: int) -> Floats:
    """PRank's listing, line by line; only w·x and w + Σ τ x are NumPy's."""
    w, b = np.zeros(X.shape[1]), np.zeros(n_ranks - 1)
    for x, y in zip(X, ranks, strict=True):
        score = w @ x
        predicted = min([r + 1 for r in range(n_ranks - 1) if score - b[r] < 0] + [n_ranks])
        if predicted != y:
            tau = np.zeros(n_ranks - 1)
            for r in range(n_ranks - 1):
                side = -1 if y <= r + 1 else 1
                if (score - b[r]) * side <= 0:
                    tau[r] = side
            w, b = w + tau.sum() * x, b - tau
    return w


def numpy_vectorised(X: Floats, ranks: Ints, n_ranks: int) -> Floats:
    """PRank with NumPy's help in everything inside a round."""
    w, b = np.zeros(X.shape[1]), np.zeros(n_ranks - 1)
    sides = np.where(np.arange(n_ranks + 1)[:, None] <= np.arange(1, n_ranks), -1, 1)
    for x, y in zip(X, ranks, strict=True):
        score = w @ x
        if b.searchsorted(score, side="right") + 1 != y:
            tau = np.where((score - b) * sides[y] <= 0, sides[y], 0)
            w += tau.sum() * x
            b -= tau
    return w


def sum_of_taus(X: Floats, ranks: Ints) -> Floats:
    run = PRank(5, readout="voted").fit(X, ranks)
    amounts = np.zeros(len(X))
    amounts[run.support_rounds_ - 1] = run.support_coef_
    return amounts


def best_seconds(calls: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Time the calls in turn, so that a busy moment hits all; return each one's best."""
    best = dict.fromkeys(calls, float("inf"))
    for call in calls.values():
        call()
    for _ in range(repeats):
        for name, call in calls.items():
            begin = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - begin)
    return best


def prank_speed(n_examples: int) -> None:
    X, ranks = ordinal_data(n_examples, 300)
    amounts, scores, some = sum_of_taus(X, ranks), np.empty(len(X)), 2_000
    check_that_all_learn_the_same(X, ranks, amounts)
    calls: dict[str, Callable[[], object]] = {
        "PRank.fit": lambda: PRank(5).fit(X, ranks),
        "bare loop, updates given": lambda: bare_in_order(X, amounts, np.zeros(300), scores),
        "the same, sums reordered": lambda: bare_reordered(X, amounts, np.zeros(300), scores),
        "reading the examples": lambda: sum_of_entries(X),
        "NumPy, vectorised": lambda: numpy_vectorised(X[:some], ranks[:some], 5),
        "NumPy, as printed": lambda: numpy_as_printed(X[:some], ranks[:some], 5),
    }
    seconds = best_seconds(calls, repeats=15)
    print(f"PRank, d = 300, {len(X)} examples ({X.nbytes / 1e6:.0f} MB), "
          f"{np.count_nonzero(amounts)} updates of w")  # fmt: skip
    rounds = {name: some if "NumPy" in name else len(X) for name in calls}
    fit = len(X) / seconds["PRank.fit"]
    for name, value in seconds.items():
        speed = rounds[name] / value
        print(f"  {name:26s} {speed:12,.0f} examples/s {1e9 / speed:8.1f} ns each   "
              f"PRank.fit is {fit / speed:7.2f} of it")  # fmt: skip
    print()


def check_that_all_learn_the_same(X: Floats, ranks: Ints, amounts: Floats) -> None:
    coef, some = np.zeros(X.shape[1]), 2_000
    bare_in_order(X, amounts, coef, np.empty(len(X)))
    np.testing.assert_allclose(coef, PRank(5).fit(X, ranks).coef_, rtol=1e-6, atol=1e-6)
    expected = PRank(5).fit(X[:some], ranks[:some]).coef_
    for naive in (numpy_as_printed, numpy_vectorised):
        np.testing.assert_allclose(naive(X[:some], ranks[:some], 5), expected)


def oap_speed() -> None:
    X, ranks = synthetic_data(50_000)
    calls: dict[str, Callable[[], object]] = {"PRank": partial(PRank(5).fit, X, ranks)}
    for tau in (0.3, 0.6, 0.9):
        calls[f"OAP τ = {tau}"] = partial(OAP(5, tau=tau).fit, X, ranks)
    calls["OAP Poisson"] = partial(OAP(5, sampling="poisson").fit, X, ranks)
    seconds = best_seconds(calls, repeats=9)
    print("OAP, N = 100 on 50,000 × 6, as a multiple of 100 runs of PRank.fit")
    for name, value in seconds.items():
        share = value / seconds["PRank"] / (1 if name == "PRank" else 100)
        print(f"  {name:26s} {value * 1e3:9.2f} ms   {share:6.2f}")
    print()


if __name__ == "__main__":
    prank_speed(20_000)
    prank_speed(4_000)  # as many as the processor's cache holds
    oap_speed()
