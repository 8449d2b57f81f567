"""What `spark-rank plan` reckons with: CPU per user by learner, memory of a worker; and a check.

``python benchmarks/plan.py learners`` learns generated users of m training ratings on d features,
as a Spark worker does (`learn_batches`, one thread, CPU time), for each learner and kernel, and
fits the costs in `spark_rank/planning/rates.py`: seconds per user, per m·d, m·d·min(m, d), m² and
m²·d, none below 0, least relative squares. The last column is the worst cell over its prediction.

``python benchmarks/plan.py memory`` runs what takes the most memory in a worker and in the
driver's Python, each in a process of its own, and prints its greatest resident size.

``python benchmarks/plan.py stages [USERS] [setting …]`` runs the default pipeline on generated
text of USERS / 10 and of USERS users (20,000) in one session, and prints for every stage the CPU
seconds that the larger run took more, over those that the table of rates says; and, from both, the
seconds of a stage without data. Settings are as for ``--set``.

``python benchmarks/plan.py check STORE RUN [setting …]`` holds the plan against a finished run:
expected and measured seconds of every stage, and the memory that Spark saw.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from machine import Watch
from scipy.optimize import least_squares, nnls

from spark_rank.config import Config, load_config
from spark_rank.data.contracts import arrow_schema
from spark_rank.engine import distributions
from spark_rank.engine.fitting import Limits
from spark_rank.engine.learning import LearnJob, learn_batches
from spark_rank.engine.rank_scale import RankScale
from spark_rank.engine.runner import run_stage
from spark_rank.engine.session import spark_session
from spark_rank.engine.specs import BASELINE_SPECS, LearnerSpec
from spark_rank.engine.store import Run
from spark_rank.features.factor_model import SampledRatings, fit_factor_model
from spark_rank.features.files import FeatureFiles, ItemFeatures, MappedFile
from spark_rank.planning.memory import stage_memory
from spark_rank.planning.plan import Layout, expected_seconds
from spark_rank.planning.sizes import Sizes, of_records
from spark_rank.planning.work import stage_work
from spark_rank.stages import pipeline

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


def bases(size: int, width: int) -> list[float]:
    per_rating = size * width
    return [1.0, per_rating, per_rating * min(size, width), size**2, size**2 * width]


def fitted(basis: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """Return costs, none below 0, of least squared logarithm of the ratio."""
    scale = (seconds[:, None] / basis).min(axis=0)
    start, _ = nnls(basis / seconds[:, None], np.ones(len(seconds)))

    def misfit(costs: np.ndarray) -> np.ndarray:
        return np.log(basis @ (costs * scale)) - np.log(seconds)

    found = least_squares(misfit, start / scale + 1e-3, bounds=(0.0, np.inf))
    costs = found.x * scale
    # what is nothing anywhere is nothing
    costs[(basis * costs / seconds[:, None]).max(axis=0) < 0.01] = 0.0
    return np.asarray(costs)


def measure_learners(wanted: list[str]) -> None:
    cells = [(size, width) for size in SIZES for width in WIDTHS]
    basis = np.array([bases(*cell) for cell in cells], dtype=float)
    before = np.array([cpu_per_user(BASELINE_SPECS, *cell) for cell in cells])
    costs = {"baselines": before}
    for name, spec in CASES.items():
        if not wanted or name in wanted:
            both = [cpu_per_user((*BASELINE_SPECS, spec), *cell) for cell in cells]
            costs[name] = np.maximum(np.array(both) - before, 1e-6)
    for name, seconds in costs.items():
        found = fitted(basis, seconds)
        ratio = seconds / (basis @ found)
        worst = ratio[np.argmax(np.abs(np.log(ratio)))]
        terms = ", ".join(f"{value:.2g}" for value in found)
        print(f"{name:<24}({terms})  {worst:.2f}", flush=True)


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
    packed = pa.Table.from_pylist(rows, schema=arrow_schema(distributions._PACKED))
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


DEFAULT = Path(__file__).parents[1] / "conf" / "default.yaml"
CORES = os.cpu_count() or 1
SESSION = {"spark.master": f"local[{CORES}]", "spark.driver.memory": "4g"}


def counted(run: Run) -> Sizes:
    found = of_records(run.records(), run.run_id)
    assert found is not None
    return found


def run_pipeline(config: Config, run: Run) -> dict[str, Watch]:
    watches = {}
    for stage in pipeline(config):
        with Watch() as watches[stage.name]:
            run_stage(stage, config, run.spark, run)
    return watches


def measure_stages(words: list[str]) -> None:
    largest = int(words[0]) if words else 20_000
    with tempfile.TemporaryDirectory() as store, spark_session("plan benchmark", SESSION) as spark:
        found = []
        for users in (200, largest // 10, largest):
            sets = [f"store={store}", f"run_id=users-{users}", f"synthesize.users={users}",
                    "synthesize.format=csv"]  # fmt: skip
            config = load_config(DEFAULT, [*sets, *words[1:]])
            run = Run(spark, store, config.run_id)
            found.append((run_pipeline(config, run), counted(run)))
        (few, small), (many, large) = found[1:]
        print(f"{small.in_words()}; {large.in_words()}; {CORES} cores")
        print(f"{'stage':<12}{'s':>8}{'s':>8}{'CPU s':>8}{'CPU s':>8}{'over table':>12}")
        for stage, watch in many.items():
            works = [stage_work(stage, config, sizes) for sizes in (small, large)]
            least, most = (work.executors + work.driver for work in works)
            cpu = watch.cpu_seconds - few[stage].cpu_seconds
            over = f"{cpu / (most - least):.2f}" if most > least else "-"
            print(
                f"{stage:<12}{few[stage].seconds:8.1f}{watch.seconds:8.1f}"
                f"{few[stage].cpu_seconds:8.1f}{watch.cpu_seconds:8.1f}{over:>12}"
                f"   JVM {watch.jvm_gigabytes:.1f} GB, worker {watch.worker_gigabytes:.2f} GB",
                flush=True,
            )


def check(words: list[str]) -> None:
    store, run_id, *sets = words
    config = load_config(DEFAULT, [f"store={store}", f"run_id={run_id}", *sets])
    with spark_session("plan benchmark", SESSION) as spark:
        run = Run(spark, store, run_id)
        records, sizes = run.records(), counted(run)
        print(sizes.in_words())
        for stage in pipeline(config):
            if (record := records.get(stage.name)) is None:
                continue
            cores = int(record["spark"]["parallelism"])
            waves = len(record["facts"].get("waves", [])) or 1
            layout = Layout(cores, 1, cores, config.prepare.buckets, waves)
            expected = expected_seconds(stage.name, config, sizes, layout, cores)
            memory = stage_memory(stage.name, config, sizes)
            own = cores * memory.worker
            path = run.path(f"run_metrics/{stage.name}.json")
            seen = json.loads(run.files.read_text(path)) if run.files.exists(path) else {}
            peaks = (seen.get("peak_memory_bytes") or {}).get("driver", {})
            python, heap = (peaks.get(name, 0) for name in ("python_processes", "jvm_heap"))
            print(
                f"{stage.name:<12} expected {expected:7.1f} s, measured {record['seconds']:7.1f} s:"
                f" {record['seconds'] / expected:5.2f}; Python expected {own / 1e9:4.1f} GB, seen "
                f"{python / 1e9:4.1f} GB so far; heap {heap / 1e9:4.1f} GB so far",
                flush=True,
            )


if __name__ == "__main__":
    commands: dict[str, Callable[[list[str]], None]] = {
        "learners": measure_learners,
        "memory": measure_memory,
        "stages": measure_stages,
        "check": check,
        "one": lambda words: one(*words),
    }
    commands[sys.argv[1]](sys.argv[2:])
