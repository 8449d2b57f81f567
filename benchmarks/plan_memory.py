"""Memory of a Python worker and of the driver's Python, as `spark-rank plan` reckons with it.

``python benchmarks/plan_memory.py [kind …]`` runs what takes the most memory, each case in a
process of its own, and prints its greatest resident size. What a worker has beside that under
Spark, ``benchmarks/plan.py run`` shows.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import resource
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa
from plan_learners import CASES, LIMITS, NO_FILES, features, users

from spark_rank.features.factor_model import SampledRatings, fit_factor_model
from spark_rank.frames import distributions
from spark_rank.tables.contract import arrow_schema
from spark_rank.users.learning import LearnJob, learn_batches
from spark_rank.users.specs import BASELINE_SPECS


def statistics_of_a_metric(users: int, learners: int) -> None:
    rng = np.random.default_rng(0)
    ids = rng.integers(-(2**62), 2**62, users)
    rows = [
        {"topic": "msd", "learner": str(learner), "users": ids[part].tobytes(),
         "groups": np.zeros(len(part), np.int8).tobytes(),
         "values": rng.normal(size=len(part)).tobytes()}
        for learner in range(learners)
        for part in np.array_split(np.arange(users), max(1, users // 1000))
    ]  # fmt: skip
    packed = pa.Table.from_pylist(rows, schema=arrow_schema(distributions.PACKED.columns))
    del rows
    groups = ("few", "some", "many")
    distributions.topic_rows(packed, distributions.Statistics(groups, 0.95, 0, {}))


def learn_one(size: int, width: int, name: str) -> None:
    job = LearnJob(NO_FILES, (*BASELINE_SPECS, CASES[name]), {}, 3, 1.0, LIMITS)
    shared = features(width)
    list(learn_batches(iter([users(1, size)]), job, lambda files: shared))


def learn_batch(count: int, width: int, name: str) -> None:
    job = LearnJob(NO_FILES, (*BASELINE_SPECS, CASES[name]), {}, 3, 1.0, LIMITS)
    shared = features(width)
    list(learn_batches(iter([users(count, 100)]), job, lambda files: shared))


def learn_factors(ratings: int, users: int, rank: int) -> None:
    rng = np.random.default_rng(0)
    ends = np.linspace(0, ratings, users + 1).astype(np.int64)
    data = SampledRatings(
        rng.integers(0, 17_770, ratings).astype(np.int32), rng.normal(size=ratings), ends, 17_770
    )
    started = time.process_time()
    fit_factor_model(data, rank=rank, rounds=2, seed=0)
    print(f"{(time.process_time() - started) / 2:.2f} CPU s a round, ", end="")


MEMORY: dict[str, tuple[Callable[..., None], list[tuple[object, ...]]]] = {
    "statistics": (statistics_of_a_metric, [(100_000, 2), (500_000, 2), (1_000_000, 4)]),
    "one user": (
        learn_one,
        [(100, 32, "mprank rbf"), (1000, 32, "mprank rbf"), (2400, 32, "mprank rbf"),
         (2400, 300, "mprank linear"), (2400, 32, "svrank rbf"), (2400, 32, "ranksvm rbf"),
         (2400, 32, "prank rbf")],
    ),
    "1,000 users": (
        learn_batch,
        [(1000, 32, "mprank linear"), (1000, 300, "mprank linear"), (1000, 32, "mprank rbf")],
    ),
    "factors": (
        learn_factors,
        [(100_000, 1000, 32), (1_000_000, 10_000, 32), (1_000_000, 10_000, 64),
         (4_000_000, 40_000, 32)],
    ),
}  # fmt: skip


def measure_memory(wanted: list[str]) -> None:
    for kind, (_, cases) in MEMORY.items():
        for number in range(len(cases)):
            if not wanted or kind in wanted:
                subprocess.run([sys.executable, __file__, "one", kind, str(number)], check=True)


def one(kind: str, number: str) -> None:
    function, cases = MEMORY[kind]
    function(*cases[int(number)])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    print(f"{kind} {cases[int(number)]}: {peak:.3f} GB", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["one"]:
        one(*sys.argv[2:])
    else:
        measure_memory(sys.argv[1:])
