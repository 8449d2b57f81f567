"""What a Spark worker's CPU spends on a user in training, learner by learner, without Spark.

Blocks and features are generated: as many ratings per user as in Netflix's data (median 118, mean
209), 32 features with a prior, the learners of ``conf/kernel.yaml``. The last line is all of them
with users in child processes, as after a crash. One thread; the least CPU time of three runs.

Run: ``python benchmarks/worker.py [users]``.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_limits

from spark_rank.config import load_config
from spark_rank.features.files import FeatureFiles, ItemFeatures, MappedFile
from spark_rank.stages.training import specs_of
from spark_rank.users.fitting import Limits
from spark_rank.users.learning import LearnJob, learn_batches
from spark_rank.users.rank_scale import RankScale
from spark_rank.users.specs import BASELINE_SPECS

ITEMS, WIDTH, BATCH, REPEATS = 17_770, 32, 2000, 3
NO_FILES = FeatureFiles(*(MappedFile(name, "") for name in ("matrix", "offset", "prior", "ids")))
LIMITS = Limits(RankScale((1.0, 2.0, 3.0, 4.0, 5.0)), 4000, 500, 5)


def features() -> ItemFeatures:
    rng = np.random.default_rng(0)
    return ItemFeatures(
        rng.normal(0.0, 0.1, (ITEMS, WIDTH)).astype(np.float32),
        rng.normal(0.0, 0.3, ITEMS),
        rng.normal(0.0, 0.1, (ITEMS + 2, WIDTH)).astype(np.float32),
        pa.array([str(item) for item in range(ITEMS)]),
    )


def blocks(users: int) -> list[pa.RecordBatch]:
    rng = np.random.default_rng(1)
    sizes = np.clip(np.exp(rng.normal(np.log(118.0), 1.07, users)), 8, 8000).astype(int)
    table = pa.table(
        {
            "user": pa.array(range(users), pa.int32()),
            "user_id": pa.array([str(user) for user in range(users)]),
            "items": pa.array(
                [rng.choice(ITEMS, n, replace=False) for n in sizes], pa.list_(pa.int32())
            ),
            "ratings": pa.array(
                [rng.integers(1, 6, n).astype(np.float32) for n in sizes], pa.list_(pa.float32())
            ),
            "n_train": pa.array((sizes + 1) // 2, pa.int32()),
            "bucket": pa.array(np.zeros(len(sizes), np.int32)),
        }
    )
    return table.to_batches(max_chunksize=BATCH)


def cpu_seconds(made: list[pa.RecordBatch], job: LearnJob, shared: ItemFeatures) -> float:
    times = []
    for _ in range(REPEATS + 1):  # the first compiles
        started = sum(os.times()[:4])  # of children, too
        for _ in learn_batches(iter(made), job, lambda files: shared):
            pass
        times.append(sum(os.times()[:4]) - started)
    return min(times[1:])


def main(users: int) -> None:
    config = load_config(Path(__file__).parents[1] / "conf" / "kernel.yaml", [])
    made, shared = blocks(users), features()
    own = specs_of(config.train)
    choices = {"the baselines": [], **{f"and {spec.label}": [spec] for spec in own}}
    print(f"{users:,} users, CPU time of a user:")
    for name, specs in {**choices, "all": own}.items():
        job = LearnJob(NO_FILES, (*BASELINE_SPECS, *specs), {}, 3, 1.0, LIMITS)
        tell(name, cpu_seconds(made, job, shared) / users)
    # as after a crash; the last of the choices is all of them
    tell("all, isolated", cpu_seconds(made, replace(job, isolated=True), shared) / users)


def tell(name: str, seconds: float) -> None:
    print(f"  {name:<20}{seconds * 1e6:7.0f} µs", flush=True)


if __name__ == "__main__":
    with threadpool_limits(1):
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 4000)
