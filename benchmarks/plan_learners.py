"""CPU time of a user in training, by learner, beside the cost that the learner declares.

``python benchmarks/plan_learners.py [learner kernel …]`` learns generated users of m training
ratings on d features, as a Spark worker does (`learn_batches`, one thread), and prints by learner
the least and the greatest ratio of a measured time to `Learner.cost`.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import sys
import time

import numpy as np
import pyarrow as pa

from spark_rank.features.files import FeatureFiles, ItemFeatures, MappedFile
from spark_rank.learners.costs import model_cost
from spark_rank.users.fitting import Limits
from spark_rank.users.learning import LearnJob, learn_batches
from spark_rank.users.rank_scale import RankScale
from spark_rank.users.specs import BASELINE_SPECS, LearnerSpec

NO_FILES = FeatureFiles(*(MappedFile(name, "") for name in ("matrix", "offset", "prior", "ids")))
LIMITS = Limits(RankScale((1.0, 2.0, 3.0, 4.0, 5.0)), 4000, 500, 5)
ITEMS = 5000
SIZES, WIDTHS = (10, 40, 150, 500, 1500), (32, 100, 300)
LEAST_CPU = 0.15
CASES: dict[str, LearnerSpec] = {
    f"{learner} {kernel}": LearnerSpec(
        "it",
        learner,
        item_offset=kernel == "linear",
        params={"kernel": kernel} if kernelled else {},
    )
    for learner, kernels, kernelled in (
        ("mprank", ("linear", "rbf", "linear+rbf"), True),
        ("svrank", ("linear", "rbf"), True),
        ("ranksvm", ("linear", "rbf"), True),
        ("prank", ("linear", "rbf"), True),
        ("rankboost", ("linear",), False),
        ("widrow_hoff", ("linear",), False),
        ("multiclass_perceptron", ("linear",), False),
    )
    for kernel in kernels
}


def features(width: int) -> ItemFeatures:
    rng = np.random.default_rng(0)
    return ItemFeatures(
        rng.normal(0.0, 0.3, (ITEMS, width)).astype(np.float32),
        rng.normal(0.0, 0.3, ITEMS),
        np.empty((0, width), dtype=np.float32),
        pa.array([str(item) for item in range(ITEMS)]),
    )


def users(count: int, size: int) -> pa.RecordBatch:
    """Return users with as many ratings held out as to learn from."""
    rng = np.random.default_rng(size)
    items = [rng.choice(ITEMS, 2 * size, replace=False) for _ in range(count)]
    ratings = [rng.integers(1, 6, 2 * size).astype(np.float32) for _ in range(count)]
    return pa.record_batch(
        {
            "user": pa.array(range(count), pa.int32()),
            "user_id": pa.array([str(user) for user in range(count)]),
            "items": pa.array(items, pa.list_(pa.int32())),
            "ratings": pa.array(ratings, pa.list_(pa.float32())),
            "n_train": pa.array([size] * count, pa.int32()),
            "bucket": pa.array([0] * count, pa.int32()),
        }
    )


def cpu_per_user(specs: tuple[LearnerSpec, ...], size: int, width: int) -> float:
    job = LearnJob(NO_FILES, specs, {}, 3, 1.0, LIMITS)
    shared, count, spent = features(width), 2, 0.0
    list(learn_batches(iter([users(2, size)]), job, lambda files: shared))  # compiles
    while spent < LEAST_CPU and count < 2000:
        count = min(2000, count * 4)
        made = users(count, size)
        started = time.process_time()
        list(learn_batches(iter([made]), job, lambda files: shared))
        spent = time.process_time() - started
    return spent / count


def measure_learners(wanted: list[str]) -> None:
    cells = [(size, width) for size in SIZES for width in WIDTHS]
    before = np.array([cpu_per_user(BASELINE_SPECS, *cell) for cell in cells])
    limits = {"most_kernel": LIMITS.max_kernel_ratings, "landmarks": LIMITS.landmarks}
    for name, spec in CASES.items():
        if not wanted or name in wanted:
            both = np.array([cpu_per_user((*BASELINE_SPECS, spec), *cell) for cell in cells])
            declared = np.array([model_cost(spec, *cell, **limits) for cell in cells])
            ratios = np.maximum(both - before, 1e-6) / declared
            print(f"{name:<24}{ratios.min():6.2f} to {ratios.max():6.2f}", flush=True)


if __name__ == "__main__":
    measure_learners(sys.argv[1:])
