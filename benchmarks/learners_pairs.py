"""Time the pair learners: SVRank and RankSVM to a certified gap, RankBoost per round.

    OMP_NUM_THREADS=1 python benchmarks/learners_pairs.py

Every figure is the best of a few repeats in this one process; comparisons are ratios of two such
figures. scikit-learn (a development dependency) provides the solver over explicit pairs.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVR, LinearSVR

from spark_rank.learners.rankboost import RankBoost
from spark_rank.learners.ranksvm import RankSVM
from spark_rank.learners.svrank import SVRank

Floats = NDArray[np.float64]


def main() -> None:
    print("SVRank and RankSVM, to a certified relative gap of 1e-4")
    for m in (200, 2000):
        for d, kernel in ((20, "linear"), (300, "linear"), (20, "rbf")):
            gap_table(m, d, kernel)
    print("\nusers with few ratings, d = 20, linear kernel, users a second on one thread")
    small_users()
    print("\nSVRank beside solvers of the pair-based programme, m = 200 (19,900 pairs), n = 1")
    against_pairs()
    print("\nRankBoost, 100 rounds, reviewers' ratings, 70 % missing")
    boosting()


def best_of(repeats: int, call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the shortest time in seconds, and what the call returned."""
    shortest, result = np.inf, None
    for _ in range(repeats):
        start = time.perf_counter()
        result = call()
        shortest = min(shortest, time.perf_counter() - start)
    return shortest, result


def ratings(m: int, d: int) -> tuple[Floats, Floats]:
    """One user with m ratings of 1 to 5, of items with d features."""
    rng = np.random.default_rng(m + d)
    X = rng.normal(size=(m, d))
    taste = rng.normal(size=d) / np.sqrt(d)
    return X, np.clip(np.round(3.3 + X @ taste + 0.7 * rng.normal(size=m)), 1, 5)


def gap_table(m: int, d: int, kernel: str) -> None:
    X, y = ratings(m, d)
    pairs = m * (m - 1) / 2
    learners: list[SVRank | RankSVM] = [
        SVRank(C, power=power, kernel=kernel) for C in (1.0, 100.0, 1e4) for power in (1, 2)
    ]
    learners += [RankSVM(C / pairs, kernel=kernel) for C in (1.0, 100.0, 1e4)]
    for learner in learners:
        learner.fit(X, y)
        seconds, _ = best_of(3, lambda learner=learner: learner.fit(X, y))  # type: ignore[misc]
        name = f"{type(learner).__name__} n={getattr(learner, 'power', 1)} C={learner.C:.3g}"
        print(
            f"  m={m:5d} d={d:3d} {kernel:6s} {name:26s} {1e3 * seconds:8.1f} ms"
            f"   {learner.n_iter_:3d} rounds   gap {learner.duality_gap_:.1e}"
        )


def small_users() -> None:
    for m in (30, 50, 100):
        X, y = ratings(m, 20)
        for C in (1.0, 10.0, 100.0):
            learners = [SVRank(C), SVRank(C, power=2), RankSVM(2.0 * C / (m * (m - 1)))]
            seconds = [
                best_of(200, lambda learner=learner: learner.fit(X, y))[0]  # type: ignore[misc] # noqa: B023
                for learner in learners
            ]
            rates = ", ".join(
                f"{type(learner).__name__} n={getattr(learner, 'power', 1)} {1.0 / duration:8,.0f}"
                for learner, duration in zip(learners, seconds, strict=True)
            )
            print(f"  m={m:4d} C={C:<4g} {rates}")


def against_pairs() -> None:
    X, y = ratings(200, 20)
    # features of the Gaussian kernel, exact on these items: what a linear solver needs
    factor = np.linalg.cholesky(rbf_kernel(X, gamma=0.05) + 1e-10 * np.eye(200))
    for C in (1.0, 100.0):
        for kernel, features in (("linear", X), ("rbf", factor)):
            ours = SVRank(C, kernel=kernel, gamma=0.05)
            optimum = SVRank(C, kernel=kernel, gamma=0.05, tol=1e-9).fit(X, y).objective_
            ours.fit(X, y)
            seconds, _ = best_of(20, lambda ours=ours: ours.fit(X, y))  # type: ignore[misc]
            above = ours.objective_ / optimum - 1.0
            print(
                f"  C={C:<5g} {kernel:6s} SVRank {1e3 * seconds:7.2f} ms   objective {above:+.1e}"
            )
            limits = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 25, 30, 40, 60, 80, 100)
            descents = [
                LinearSVR(
                    C=C / 200**2, epsilon=0.25, fit_intercept=False, tol=1e-12, max_iter=limit
                )
                for limit in limits
            ]
            smo = SVR(kernel="linear", C=C / 200**2, epsilon=0.25, cache_size=2000)
            for name, repeats, peers in (
                ("coordinate descent to 1e-4 (LinearSVR)", 5, descents),
                ("SMO (SVR), default tolerance", 1, [smo]),
            ):
                duration, excess = first_within(peers, repeats, features, y, ours, optimum)
                print(
                    f"      {name:38s} {1e3 * duration:9.1f} ms   {duration / seconds:8.0f} x"
                    f"   objective {excess:+.1e}"
                )


def first_within(
    peers: list[Any], repeats: int, features: Floats, y: Floats, ours: SVRank, optimum: float
) -> tuple[float, float]:
    """Return time and excess of the first peer within 1e-4 of the optimum, or else of the last.

    The time begins where SVRank's does, with items: the pairs have to be built.
    """
    for peer in peers:
        duration, fitted = best_of(repeats, lambda peer=peer: fit_pairs(peer, features, y))  # type: ignore[misc]
        coef = fitted.coef_.ravel()
        excess = objective(features @ coef - y, coef, ours) / optimum - 1.0
        if excess <= 1e-4:
            break
    return duration, excess


def fit_pairs(peer: Any, features: Floats, y: Floats) -> Any:
    first, second = np.triu_indices(len(y), 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # stopped early on purpose
        return peer.fit(features[first] - features[second], y[first] - y[second])


def objective(residuals: Floats, coef: Floats, learner: SVRank) -> float:
    differences = np.abs(residuals[:, None] - residuals[None, :])
    cost = np.maximum(differences - learner.epsilon, 0.0).sum()
    return float(coef @ coef + learner.C / len(residuals) ** 2 * cost)


def reviews(m: int, d: int) -> tuple[Floats, Floats]:
    """Ratings of m items by d reviewers, most of them missing, and by the user."""
    rng = np.random.default_rng(m + d)
    taste = rng.normal(size=m)
    X = np.clip(np.round(3 + taste[:, None] * rng.normal(size=d) + rng.normal(size=(m, d))), 1, 5)
    X[rng.random((m, d)) < 0.7] = np.nan
    return X, np.clip(np.round(3 + taste + 0.7 * rng.normal(size=m)), 1, 5)


def boosting() -> None:
    sizes = [(500, 75), (500, 300), (2000, 75), (2000, 300), (8000, 300), (2000, 1200)]
    products, times = [], []
    for m, d in sizes:
        X, y = reviews(m, d)
        for missing in ("median", "abstain"):
            whole, _ = best_of(5, lambda: RankBoost(100, missing=missing).fit(X, y))  # noqa: B023
            short, _ = best_of(5, lambda: RankBoost(1, missing=missing).fit(X, y))  # noqa: B023
            per_round = (whole - short) / 99
            print(
                f"  m={m:5d} d={d:4d} {missing:8s} {1e3 * whole:8.1f} ms, of which sorting"
                f" {1e3 * short:7.1f} ms; {1e6 * per_round:8.1f} µs a round,"
                f" {1e9 * per_round / (m * d):5.2f} ns per m·d"
            )
            products.append(m * d)
            times.append(per_round)
    slope = np.polyfit(np.log(products), np.log(times), 1)[0]
    print(f"  time per round grows as (m·d)^{slope:.2f}")


if __name__ == "__main__":
    main()
