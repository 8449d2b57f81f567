"""How evenly users' work falls into buckets, and how long the last cores are alone with it.

``python benchmarks/buckets.py`` reckons, for users as active as Netflix's, what learning each
bucket takes (by the costs that learners declare), and how much longer than an even share the
buckets take on some cores that each go on with the next one: in the order of their numbers, of the
bytes of their files (Spark's own order), and of their times (the stage ``train``).
"""

from __future__ import annotations

import heapq

import numpy as np
import pyarrow as pa

from spark_rank.config import Config
from spark_rank.config.schema import LearnerConfig, TrainConfig
from spark_rank.stages.heaviest_first import bucket_seconds

USERS, MEDIAN, SPREAD, MOST = 480_000, 96.0, 1.25, 17_700
BUCKETS, DRAWS = 64, 5
LEARNERS = {
    "mprank linear and with a kernel": [
        LearnerConfig(name="mprank_linear"),
        LearnerConfig(params={"kernel": "linear+rbf"}),
    ],
    "ranksvm with a kernel": [LearnerConfig(learner="ranksvm", params={"kernel": "rbf"})],
}


def drawn(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return every user's number of ratings and bucket."""
    ratings = MEDIAN * np.exp(SPREAD * rng.normal(size=USERS))
    return np.clip(ratings, 1, MOST).astype(int), rng.integers(0, BUCKETS, USERS)


def finished(seconds: np.ndarray, cores: int) -> float:
    """Return when the last of some tasks ends, begun in order by whichever core is free."""
    free = [0.0] * cores
    for task in seconds:
        heapq.heapreplace(free, free[0] + task)
    return max(free)


def measure(config: Config, cores: int) -> list[float]:
    """Return, over an even share: the longest bucket, and the end in each of three orders."""
    rows = []
    for draw in range(DRAWS):
        ratings, buckets = drawn(np.random.default_rng(draw))
        columns = {"bucket": buckets, "n_train": (ratings + 1) // 2}
        sizes = pa.table(columns).group_by(["bucket", "n_train"]).aggregate([([], "count_all")])
        seconds = bucket_seconds(config, sizes.rename_columns([*columns, "users"]), BUCKETS)
        of_bytes = np.bincount(buckets, ratings, BUCKETS)
        orders = (np.arange(BUCKETS), np.argsort(-of_bytes), np.argsort(-seconds))
        even = seconds.sum() / cores
        ends = [finished(seconds[order], cores) / even for order in orders]
        rows.append([seconds.max() / seconds.mean(), *ends])
    return [float(value) for value in np.mean(rows, axis=0)]


def main() -> None:
    print("| | cores | longest bucket, of the mean | by number | by bytes | longest first |")
    print("|---|---|---|---|---|---|")
    for name, learners in LEARNERS.items():
        for cores in (2, 16):
            found = measure(Config(train=TrainConfig(learners=learners)), cores)
            print(f"| {name} | {cores} | " + " | ".join(f"{value:.3f}" for value in found) + " |")


if __name__ == "__main__":
    main()
