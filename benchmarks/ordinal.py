"""Ordinal learners beside those of mord and scikit-learn: rank loss, exact ranks, misranking, time.

``ordinal.py [--users 60] [u.data]`` measures generated problems and, if MovieLens-100K's ``u.data``
is given, the ratings of single users. Every learner with a trade-off gets it from five values by
three folds of its training part; the time is that of the last fit. What is not installed is left
out, and said. Intervals are at 95 %, over problems or users.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spark_rank.learners import OAP, MPRank, PRank, RankSVM
from spark_rank.metrics import pairwise_misranking, t_interval
from spark_rank.rank_rule import nearest_whole

FloatArray = NDArray[np.float64]
GRID = [0.01, 0.1, 1.0, 10.0, 100.0]
EPOCHS = 10
HEAD = ("method", "rank loss", "exact rank", "misranking", "ms a fit, median")


class Problem(NamedTuple):
    """Features and ranks, of training and for testing."""

    X: FloatArray
    y: FloatArray
    X_test: FloatArray
    y_test: FloatArray
    n_ranks: int


class Method(NamedTuple):
    """A learner, the name of its trade-off, if any, and whether it only orders."""

    make: Any
    grid: str | None = None
    orders: bool = False


def methods(n_ranks: int) -> dict[str, Method]:
    """Return what is measured and installed."""
    found = {
        "PRank averaged": Method(lambda: PRank(n_ranks, readout="averaged", epochs=EPOCHS)),
        "PRank averaged, ROMMA": Method(
            lambda: PRank(n_ranks, readout="averaged", update="romma", epochs=EPOCHS)
        ),
        "PRank averaged, PA": Method(
            lambda: PRank(n_ranks, readout="averaged", update="pa", epochs=EPOCHS), "C"
        ),
        "OAP-BPM, 20 members": Method(lambda: OAP(n_ranks, n_members=20)),
        "MPRank, rounded": Method(MPRank, "C"),
        "RankSVM, C per pair": Method(lambda: RankSVM(loss="mean", tol=1e-3), "C", True),
    }
    if importlib.util.find_spec("sklearn"):
        from sklearn.linear_model import LogisticRegression, Ridge

        found["scikit-learn LogisticRegression"] = Method(
            lambda: LogisticRegression(max_iter=1000), "C"
        )
        found["scikit-learn Ridge, rounded"] = Method(Ridge, "alpha")
    if importlib.util.find_spec("mord"):
        import mord

        for name in ("LogisticAT", "LogisticIT", "OrdinalRidge"):
            found[f"mord {name}"] = Method(getattr(mord, name), "alpha")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ratings", nargs="?", type=Path, help="u.data of MovieLens-100K")
    parser.add_argument("--problems", type=int, default=30, help="generated problems of each kind")
    parser.add_argument("--users", type=int, default=60, help="users of the ratings")
    given = parser.parse_args()
    missing = [name for name in ("mord", "sklearn") if not importlib.util.find_spec(name)]
    if missing:
        print(f"left out, because not installed: {', '.join(missing)}\n")
    for title, problems in (
        ("generated, 200 examples, 10 features", generated(given.problems, 200, 10)),
        ("generated, 1000 examples, 50 features", generated(given.problems, 1000, 50)),
    ):
        show(title, problems)
    if given.ratings is not None:
        show(f"ratings of {given.users} users", users(given.ratings, given.users))


def generated(n: int, m: int, d: int) -> Iterator[Problem]:
    """Yield problems with ranks 1 to 5 cut from a noisy linear score, of unequal sizes."""
    for seed in range(n):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((2 * m, d))
        scores = X @ rng.standard_normal(d) / np.sqrt(d) + 0.5 * rng.standard_normal(2 * m)
        y = 1.0 + np.searchsorted(np.quantile(scores, [0.1, 0.3, 0.7, 0.9]), scores)
        yield Problem(X[:m], y[:m], X[m:], y[m:], 5)


def users(path: Path, n: int) -> Iterator[Problem]:
    """Yield the halves of users' ratings; features are the ratings of the 50 most active others."""
    rows = np.loadtxt(path, dtype=np.int64)[:, :3]
    ratings = np.zeros((rows[:, 0].max() + 1, rows[:, 1].max() + 1))
    ratings[rows[:, 0], rows[:, 1]] = rows[:, 2]
    counts = (ratings > 0).sum(axis=1)
    active = np.argsort(-counts, kind="stable")[:51]
    rng = np.random.default_rng(0)
    eligible = np.flatnonzero((counts >= 60) & ~np.isin(np.arange(len(counts)), active))
    for user in rng.permutation(eligible)[:n]:
        items = rng.permutation(np.flatnonzero(ratings[user]))
        panel = ratings[active[:50]][:, items].T
        X = np.where(panel > 0, panel - 3.0, 0.0)
        half, y = len(items) // 2, ratings[user, items]
        yield Problem(X[:half], y[:half], X[half:], y[half:], 5)


def show(title: str, problems: Iterator[Problem]) -> None:
    """Measure every method on every problem, and print a table."""
    found: dict[str, list[tuple[float, ...]]] = {}
    for problem in problems:
        for name, method in methods(problem.n_ranks).items():
            found.setdefault(name, []).append(measured(method, problem))
    print(f"{title}\n| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
    for name, rows in found.items():
        *columns, times = [np.array(values) for values in zip(*rows, strict=True)]
        # a median, since the first fits compile, and other work delays some
        cells = [*map(cell, columns), f"{np.median(times):.2f}"]
        print(f"| {name} | {' | '.join(cells)} |")
    print()


def measured(method: Method, problem: Problem) -> tuple[float, ...]:
    """Return rank loss, share of exact ranks, misranking and milliseconds of one problem."""
    learner = chosen(method, problem)
    started = time.perf_counter()
    learner.fit(problem.X, problem.y)
    milliseconds = 1e3 * (time.perf_counter() - started)
    scores = scores_of(learner, problem.X_test)
    misranking = pairwise_misranking(scores, problem.y_test)
    if method.orders:
        return np.nan, np.nan, misranking or 0.0, milliseconds
    ranks = ranks_of(learner, problem.X_test, problem.n_ranks)
    errors = np.abs(ranks - problem.y_test)
    return errors.mean(), (errors == 0).mean(), misranking or 0.0, milliseconds


def chosen(method: Method, problem: Problem) -> Any:
    """Return the learner with the trade-off of the least loss over three folds of training."""
    if method.grid is None:
        return method.make()
    folds = np.arange(len(problem.y)) % 3
    losses = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # solvers that stop early in a search
        for value in GRID:
            loss = 0.0
            for fold in range(3):
                train, test = folds != fold, folds == fold
                learner = method.make().set_params(**{method.grid: value})
                learner.fit(problem.X[train], problem.y[train])
                if method.orders:
                    scores = scores_of(learner, problem.X[test])
                    loss += pairwise_misranking(scores, problem.y[test]) or 0.0
                else:
                    ranks = ranks_of(learner, problem.X[test], problem.n_ranks)
                    loss += float(np.abs(ranks - problem.y[test]).sum())
            losses.append(loss)
    return method.make().set_params(**{method.grid: GRID[int(np.argmin(losses))]})


def scores_of(learner: Any, X: FloatArray) -> FloatArray:
    """Return one number per row: a score, or the expected rank of a classifier."""
    if hasattr(learner, "predict_proba"):
        return np.asarray(learner.predict_proba(X) @ np.asarray(learner.classes_, float))
    scorer = getattr(learner, "decision_function", None) or learner.predict
    return np.asarray(scorer(X))


def ranks_of(learner: Any, X: FloatArray, n_ranks: int) -> FloatArray:
    """Return predicted ranks; real numbers are rounded half up and clipped."""
    return np.clip(nearest_whole(np.asarray(learner.predict(X), float)), 1, n_ranks)


def cell(values: FloatArray) -> str:
    """Return mean and half of the interval; nothing where there are no values."""
    if np.isnan(values).all():
        return ""
    interval = t_interval(values, 0.95)
    reach = "" if interval is None else f" ± {(interval.high - interval.low) / 2:.3f}"
    return f"{values.mean():.3f}{reach}"


if __name__ == "__main__":
    main()
