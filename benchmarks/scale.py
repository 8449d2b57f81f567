"""One model per user at scale: against a bare NumPy loop, and the default path against MLlib ALS.

Generated, Netflix-shaped ratings (17,770 items) are put where `ingest` leaves them and prepared.
Then, in one session:

* linear and Gaussian MPRank on the ratings of a panel of 300 reviewers, `train` and `evaluate`,
  against the same mathematics in a bare NumPy loop over the same blocks and features, in as many
  processes as there are cores: no Spark, no model written, no metric but the MSD; first without
  the two baselines, which the loop does not learn either, then with them;
* the default configuration (factors, prior, its learners), `features`, `train` and `evaluate`;
* then `recommend`, ten items for every user, against the products of weights and features and
  NumPy's ten greatest of them, as many processes as there are cores: nobody's rated items are left
  out, nothing is read or written while the time is taken;
* `rank`, everybody's held-out items in the order of the scores;
* MLlib ALS, rank 20, 10 iterations, its fit alone, on the same training ratings, cached.

Run: ``python benchmarks/scale.py [ratings] [folder] [run]`` (1,000,000; a temporary folder). A
folder that holds the ratings already is used again; with the name of a run in the store `folder`,
such as ``benchmarks/ingest.py`` leaves, its blocks are.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from machine import Watch
from prepare import ingested
from pyspark.ml.recommendation import ALS
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from scipy.linalg import lapack
from threadpoolctl import threadpool_limits

from spark_rank.config import Config, LearnerConfig, TrainConfig, load_config
from spark_rank.config.schema import FeaturesConfig, RecommendConfig
from spark_rank.data.blocks import training_part
from spark_rank.session.session import spark_session
from spark_rank.stages import STAGES
from spark_rank.stages.runner import run_stage
from spark_rank.store.run import Run
from spark_rank.tables.contracts import BLOCKS, MODELS
from spark_rank.users.batches import ragged

ROOT = Path(__file__).parents[1]
SETTINGS = {
    "spark.master": f"local[{os.cpu_count()}]",
    "spark.driver.memory": "5g",
    "spark.sql.shuffle.partitions": "32",
}
PANEL = FeaturesConfig(kind="panel", panel_size=300)
# the width of the Gaussian is given, so that the bare loop need not look for it
GAMMA = 0.002
TOP = 10
TOGETHER = 118  # users whose products are 8 MB
# enough ratings that the JVM compiles what it would compile in the middle of what is measured
WARM_UP = 1_000_000
LEARNERS = {
    "linear": LearnerConfig("mprank", "linear", params={"C": 0.1}),
    "rbf": LearnerConfig("mprank", "rbf", params={"C": 30.0, "kernel": "rbf", "gamma": GAMMA}),
}


def branch(run: Run, name: str, *stages: str) -> Run:
    """Return another run on the same ingested and prepared tables, and those of `stages`."""
    other = Run(run.spark, run.root.rsplit("/runs/", 1)[0], f"{run.run_id}-{name}")
    here, there = (Path(each.root.removeprefix("file:")) for each in (run, other))
    there.mkdir(exist_ok=True)
    records = {stage: run.record(stage) or {} for stage in ("ingest", "prepare", *stages)}
    tables = [table for record in records.values() for table in record["tables"]]
    for table in (*tables, *(["feature_files"] if "features" in stages else [])):
        if not (there / table).exists() and (here / table).exists():
            (there / table).symlink_to(here / table)
    (there / "manifest").mkdir(exist_ok=True)
    for stage in records:
        record = here / "manifest" / f"{stage}.json"
        (there / "manifest" / record.name).write_text(record.read_text())
    return other


def stage(name: str, config: Config, run: Run) -> Watch:
    with Watch() as watch:
        run_stage(STAGES[name], config, run.spark, run)
    tail = " ".join(f"{share:.0%}" for share in watch.timeline()[-5:])
    print(
        f"    {name:<10}{watch.seconds:8.1f} s, {watch.cpu_seconds:.0f} CPU s, {watch.use:4.0%} of "
        f"the cores busy, in its last five twentieths {tail}; JVM {watch.jvm_gigabytes:.1f} GB, "
        f"largest worker {watch.worker_gigabytes:.2f} GB",
        flush=True,
    )
    return watch


def bare(run: Run, kind: str) -> tuple[float, float]:
    """Return seconds and mean MSD of the NumPy loop over the same blocks and features."""
    matrix, offset = feature_files(run)
    blocks = sorted(Path(run.path(BLOCKS.table).removeprefix("file:")).rglob("*.parquet"))
    work = [(str(path), matrix, offset, kind) for path in blocks]
    # new interpreters: what the JVM's parent holds is no business of theirs
    with multiprocessing.get_context("spawn").Pool(os.cpu_count()) as pool:
        pool.map(abs, range(os.cpu_count() or 1))
        started = time.perf_counter()
        sums = list(pool.imap_unordered(bare_file, work))
        seconds = time.perf_counter() - started
    total, users = np.sum(sums, axis=0)
    return seconds, float(total / users)


def feature_files(run: Run) -> tuple[str, str]:
    """Return where a run's features and offsets are."""
    record = json.loads(run.files.read_text(run.path("manifest/features.json")))
    folder = Path(run.path("feature_files").removeprefix("file:"))
    names = [record["facts"]["files"][part]["name"] for part in ("matrix", "offset")]
    return str(folder / names[0]), str(folder / names[1])


def bare_file(work: tuple[str, str, str, str]) -> tuple[float, int]:
    path, matrix, offset, kind = work
    features, offsets = (
        np.load(matrix, mmap_mode="r", allow_pickle=False),
        np.load(offset, mmap_mode="r", allow_pickle=False),
    )
    loop = {"linear": bare_linear, "rbf": bare_gaussian}[kind]
    total, users = 0.0, 0
    with threadpool_limits(1):
        for batch in pq.ParquetFile(path).iter_batches(
            1000, columns=["items", "ratings", "n_train"]
        ):
            items, ends = ragged(batch.column("items"))
            ratings, _ = ragged(batch.column("ratings"))
            for row, n in enumerate(batch.column("n_train").to_pylist()):
                own = slice(ends[row], ends[row + 1])
                if n < 3 or ends[row + 1] - ends[row] - n < 2:
                    continue
                X = np.asarray(features)[items[own]].astype(np.float64)
                known = np.asarray(offsets)[items[own]]
                y = ratings[own].astype(np.float64)
                scores = loop(X[:n], y[:n] - known[:n], X[n:]) + known[n:]
                total += 2.0 * float((scores - y[n:]).var())
                users += 1
    return total, users


def bare_linear(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> np.ndarray:
    ridge = len(y) / (2.0 * LEARNERS["linear"].params["C"])
    mean, middle = X.mean(axis=0), y.mean()
    centred, targets = X - mean, y - middle
    if len(y) > X.shape[1]:
        system = centred.T @ centred
        system.flat[:: len(system) + 1] += ridge
        w = lapack.dposv(system, centred.T @ targets, lower=1)[1]
    else:
        system = centred @ centred.T
        system.flat[:: len(system) + 1] += ridge
        w = centred.T @ lapack.dposv(system, targets, lower=1)[1]
    return X_test @ w + (middle - mean @ w)


def bare_gaussian(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> np.ndarray:
    ridge = len(y) / (2.0 * LEARNERS["rbf"].params["C"])
    norms, middle = (X**2).sum(axis=1), y.mean()
    system = np.exp(-GAMMA * (norms[:, None] + norms[None, :] - 2.0 * (X @ X.T)))
    means = system.mean(axis=0)
    system += means.mean() - means[:, None] - means[None, :]
    system.flat[:: len(system) + 1] += ridge
    alpha = lapack.dposv(system, y - middle, lower=1)[1]
    others = (X_test**2).sum(axis=1)
    kernel = np.exp(-GAMMA * (others[:, None] + norms[None, :] - 2.0 * (X_test @ X.T)))
    return kernel @ alpha + (middle - means @ alpha)


def fit_als(run: Run) -> tuple[Watch, float]:
    """Return what fitting takes, and the mean over users of the MSD on what is held out."""
    train = training_part(run.read(BLOCKS), "user").cache()
    train.count()
    with Watch() as watch:
        model = ALS(
            rank=20, maxIter=10, regParam=0.1, userCol="user", itemCol="item",
            ratingCol="rating", seed=0, coldStartStrategy="drop",
        ).fit(train)  # fmt: skip
    train.unpersist()
    held_out = run.read(BLOCKS).select("user", F.explode(F.expr(
        "slice(arrays_zip(items, ratings), n_train + 1, size(items))")).alias("entry"))  # fmt: skip
    pairs = held_out.select("user", F.col("entry.items").alias("item"), "entry.ratings")
    error = F.col("ratings") - F.col("prediction")
    per_user = model.transform(pairs).groupBy("user").agg((2 * F.var_pop(error)).alias("msd"),
                                                          F.count("*").alias("n"))  # fmt: skip
    found = per_user.where("n > 1").agg(F.avg("msd")).head()
    return watch, found[0] if found else float("nan")


def held_out_msd(run: Run) -> dict[str, float]:
    means = (run.record("evaluate") or {})["facts"]["means"]
    return {name: values["msd"] for name, values in means.items()}


def against_bare(run: Run, kind: str) -> None:
    """Hold one learner alone, as the loop has it, against the loop; then beside the baselines."""
    print(f"  {kind} MPRank on 300 reviewers")
    loop = None
    for baselines in (False, True):
        other = branch(run, f"{kind}-beside-baselines" if baselines else kind)
        learned = TrainConfig(learners=[LEARNERS[kind]], baselines=baselines)
        config = Config(features=PANEL, train=learned)
        stage("features", config, other)
        loop = loop or bare(other, kind)
        watches = [stage(name, config, other) for name in ("train", "evaluate")]
        ours = sum(watch.seconds for watch in watches)
        seconds, msd = loop
        print(
            f"    {'beside two baselines' if baselines else 'alone'}: bare loop {seconds:.1f} s "
            f"(MSD {msd:.4f}); train {watches[0].seconds / seconds:.2f}, with evaluate "
            f"{ours / seconds:.2f} times as long (MSD {held_out_msd(other)[kind]:.4f})",
            flush=True,
        )


def against_als(run: Run) -> None:
    config = load_config(ROOT / "conf" / "default.yaml", [])
    other = branch(run, "default")
    print("  the default configuration")
    watches = [stage(name, config, other) for name in ("features", "train", "evaluate")]
    ours = sum(watch.seconds for watch in watches)
    cpu = sum(watch.cpu_seconds for watch in watches)
    lists_against_bare(other, config)
    stage("rank", config, branch(other, "ranked", "features", "train"))
    als, msd = fit_als(other)
    print(
        f"    ALS rank 20, 10 iterations: fit {als.seconds:.1f} s, {als.cpu_seconds:.0f} CPU s, "
        f"MSD {msd:.4f}; ours, with metrics, {ours:.1f} s, {cpu:.0f} CPU s, "
        f"{ours / als.seconds:.2f} times as long, {cpu / als.cpu_seconds:.2f} times the CPU, MSD "
        + ", ".join(f"{name} {value:.4f}" for name, value in held_out_msd(other).items()),
        flush=True,
    )


def lists_against_bare(run: Run, config: Config) -> None:
    print("  lists of ten unseen items for every user")
    bare = bare_lists(run)
    for turn, bottom in enumerate((0, config.recommend.bottom, 0)):
        other = branch(run, f"lists-{turn}", "features", "train")
        asked = replace(config, recommend=RecommendConfig(top=TOP, bottom=bottom))
        watch = stage("recommend", asked, other)
        print(
            f"    and the {bottom} worst: bare products and their top {TOP} {bare:.1f} s, "
            f"recommend {watch.seconds / bare:.2f} times as long, "
            f"{watch.cpu_seconds / bare / (os.cpu_count() or 1):.2f} times the CPU",
            flush=True,
        )


def bare_lists(run: Run) -> float:
    """Return the seconds of the products and their top-k, all cores at work."""
    matrix, offset = feature_files(run)
    models = sorted(Path(run.path(MODELS.table).removeprefix("file:")).rglob("*.parquet"))
    with multiprocessing.get_context("spawn").Pool(os.cpu_count()) as pool:
        pool.map(abs, range(os.cpu_count() or 1))
        spent = pool.map(bare_top, [(str(path), matrix, offset) for path in models], chunksize=1)
    return sum(spent) / (os.cpu_count() or 1)


def bare_top(work: tuple[str, str, str]) -> float:
    path, matrix, offset = work
    features = np.column_stack([np.load(matrix), np.load(offset)]).astype(np.float32)
    table = pq.read_table(path, columns=["learner", "weights"]).filter(
        pc.field("learner") == "mprank_linear"
    )
    weights, _ = ragged(table.column("weights").combine_chunks())
    models = np.column_stack([weights.reshape(len(table), -1), np.ones(len(table), np.float32)])
    room = np.empty((TOGETHER, len(features)), np.float32)
    started = time.perf_counter()
    with threadpool_limits(1):
        for start in range(0, len(models), TOGETHER):
            block = models[start : start + TOGETHER]
            scores = np.matmul(block, features.T, out=room[: len(block)])
            best = np.argpartition(scores, len(features) - TOP, axis=1)[:, -TOP:]
            order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1)
            np.take_along_axis(best, order, axis=1)
    return time.perf_counter() - started


def warm_up(spark: SparkSession, folder: str) -> None:
    run = ingested(spark, WARM_UP, folder)
    run_stage(STAGES["prepare"], Config(), spark, run)
    for compare in (lambda run: against_bare(run, "linear"), against_als):
        compare(run)


def prepared(spark: SparkSession, ratings: int, folder: str, name: str | None) -> Run:
    """Return a run with user blocks: the one of that name, or one of generated ratings."""
    if name is not None:
        return Run(spark, folder, name)
    run = ingested(spark, ratings, folder)
    run_stage(STAGES["prepare"], Config(), spark, run)
    return run


def main(ratings: int, folder: str, name: str | None = None) -> None:
    with spark_session("scale benchmark", SETTINGS) as spark:
        print("warming up")
        warm_up(spark, tempfile.mkdtemp(dir=folder))
        run = prepared(spark, ratings, folder, name)
        sizes = run.read(BLOCKS).agg(F.count("*"), F.sum(F.size("items"))).head() or (0, 0)
        print(f"{sizes[1]:,} ratings of {sizes[0]:,} users, {os.cpu_count()} cores")
        comparisons: list[Callable[[Run], None]] = [
            against_als,
            lambda run: against_bare(run, "linear"),
            lambda run: against_bare(run, "rbf"),
        ]
        for compare in comparisons:
            compare(run)


if __name__ == "__main__":
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    if len(sys.argv) > 2:
        Path(sys.argv[2]).mkdir(parents=True, exist_ok=True)
        main(wanted, str(Path(sys.argv[2]).resolve()), *sys.argv[3:4])
    else:
        with tempfile.TemporaryDirectory() as scratch:
            main(wanted, scratch)
