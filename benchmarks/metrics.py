"""How the metrics grow with a user's items, and how many users a batch measures per second.

Medians of one run, on one thread. Run: ``python benchmarks/metrics.py``.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from spark_rank.metrics import (
    auc,
    auc_interval,
    average_precision,
    batch_metrics,
    batch_roc,
    compare_paired,
    describe,
    exact_rank_rate,
    margin_loss,
    mean_1norm_difference,
    mean_squared_difference,
    ndcg,
    nearest_ranks,
    pair_cost,
    pairwise_misranking,
    precision,
    rank_loss,
    recall,
    roc_curve,
)

SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
LEVELS = (1.0, 2.0, 3.0, 4.0, 5.0)
SETTINGS: dict[str, Any] = {"top": 10, "relevant_from": 4.0, "epsilon": 0.25, "levels": LEVELS}
Vector = np.ndarray
Metric = Callable[[Vector, Vector], object]

METRICS: dict[str, Metric] = {
    "MSD": mean_squared_difference,
    "M1D": mean_1norm_difference,
    "misranking": pairwise_misranking,
    "c_HR, n = 2": lambda h, y: pair_cost(h, y, "hr", 2),
    "c_HMP, n = 2": lambda h, y: pair_cost(h, y, "hmp", 2),
    "c_SVR, n = 2": lambda h, y: pair_cost(h, y, "svr", 2, 0.25),
    "rank loss": lambda h, y: rank_loss(nearest_ranks(h, LEVELS), nearest_ranks(y, LEVELS)),
    "exact ranks": lambda h, y: exact_rank_rate(nearest_ranks(h, LEVELS), nearest_ranks(y, LEVELS)),
    "AUC": lambda h, y: auc(h, y >= 4.0),
    "AUC interval": lambda h, y: auc_interval(h, y >= 4.0),
    "ROC curve": lambda h, y: roc_curve(h, y >= 4.0),
    "margin loss": lambda h, y: margin_loss(h, y, 0.5),
    "margin, m levels": lambda h, y: margin_loss(h, y + 1e-6 * h[::-1], 0.5),
    "misr., m levels": lambda h, y: pairwise_misranking(h, y + 1e-6 * h[::-1]),
    "NDCG@10": lambda h, y: ndcg(h, y, 10),
    "precision@10": lambda h, y: precision(h, y, 10, 4.0),
    "recall@10": lambda h, y: recall(h, y, 10, 4.0),
    "AP@10": lambda h, y: average_precision(h, y, 10, 4.0),
    "all, batch_metrics": lambda h, y: batch_metrics(
        h, y, [0, len(h)], on_rating_scale=[True], **SETTINGS
    ),
    "bare argsort": lambda h, y: np.argsort(h),
}


def sample(m: int, seed: int = 0) -> tuple[Vector, Vector]:
    """Scores, and ratings of five levels that follow them with noise."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(3.5, 0.7, m)
    return scores, np.clip(np.rint(scores + rng.normal(0, 1, m)), 1, 5)


def median_seconds(run: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats + 1):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return statistics.median(times[1:])


def growth() -> None:
    print("one user: microseconds at m items, and the slope of log time over log m from 10,000 on")
    print(f"{'':20}" + "".join(f"{m:>12,}" for m in SIZES) + "   slope")
    for name, metric in METRICS.items():
        times = []
        for m in SIZES:
            h, y = sample(m)
            times.append(median_seconds(partial(metric, h, y), max(3, 20_000 // m)))
        slope = np.polyfit(np.log(SIZES[2:]), np.log(times[2:]), 1)[0]
        print(f"{name:20}" + "".join(f"{t * 1e6:12,.1f}" for t in times) + f"{slope:8.2f}")


def batches(users: int = 20_000) -> None:
    rng = np.random.default_rng(1)
    sizes = np.maximum(1, rng.lognormal(np.log(100) - 0.5, 1.0, users)).astype(int)
    ends = np.concatenate([[0], np.cumsum(sizes)])
    h, y = sample(int(ends[-1]), seed=2)
    scales, grid = np.ones(users, bool), np.linspace(0, 1, 101)

    def argsorts() -> None:
        for start, stop in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            np.argsort(h[start:stop])

    runs: dict[str, Callable[[], object]] = {
        "batch_metrics": lambda: batch_metrics(h, y, ends, on_rating_scale=scales, **SETTINGS),
        "batch_roc, 101 rates": lambda: batch_roc(h, y, ends, relevant_from=4.0, grid=grid),
        "bare argsort per user": argsorts,
    }
    print(f"\n{users:,} users, {sizes.mean():.0f} items in the mean, {sizes.max():,} at most")
    for name, run in runs.items():
        seconds = median_seconds(run, 5)
        print(f"  {name:24}{users / seconds:12,.0f} users/s{seconds / users * 1e6:8.2f} µs each")


def over_users(users: int = 480_000) -> None:
    rng = np.random.default_rng(3)
    a = rng.normal(1.5, 0.5, users)
    b = a + rng.normal(0.01, 0.1, users)
    print(f"\n{users:,} users")
    print(f"  describe        {median_seconds(lambda: describe(a), 3) * 1e3:8.0f} ms")
    print(f"  compare_paired  {median_seconds(lambda: compare_paired(a, b), 3) * 1e3:8.0f} ms")


def main() -> None:
    growth()
    batches()
    over_users()


if __name__ == "__main__":
    main()
