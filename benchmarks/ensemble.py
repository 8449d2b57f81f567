"""Ensembles: the published experiment, what a second task gains, what Spark costs, every user.

Parts, all by default but `users`, which needs a store:

* `synthetic`: the problem of Crammer & Singer and Harrington, 50,000 examples to learn and 1,000 to
  test, N = 100, 20 trials of fresh examples, all ways to combine and τ of 0.3, 0.6, 0.9, Poisson,
  averaged members for each τ, beside the rivals. Student-t intervals, paired differences, and the
  noiseless rule's own loss as the floor.
* `speed`: one long sequence, N = 100 and 400. A group of all members in one task, two groups in
  two, and the compiled kernel on the same examples without Spark, in one process and by halves in
  two.
* `users`: one PRank for every user by `train`, then N = 20 by `ensemble`, in a run of its own that
  is linked to a prepared one, such as ``benchmarks/ingest.py`` leaves.

Run: ``python benchmarks/ensemble.py [synthetic] [speed] [users STORE RUN]``.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from machine import Watch
from numpy.typing import NDArray
from pyspark.sql import SparkSession
from scale import SETTINGS, branch
from threadpoolctl import threadpool_limits

from spark_rank.config import Config, FeaturesConfig, LearnerConfig, TrainConfig
from spark_rank.config.schema import EnsembleConfig, EnsembleLearnerConfig
from spark_rank.features.files import distribute_local
from spark_rank.learners import OAP, PRank
from spark_rank.learners.feature_maps import polynomial_features
from spark_rank.learners.perceptrons.draws import cumulative_counts, member_keys, presentations
from spark_rank.metrics import t_interval
from spark_rank.session.session import spark_session
from spark_rank.stages import STAGES
from spark_rank.stages.runner import run_stage
from spark_rank.store.run import Run

TRIALS, N_TRAIN, N_TEST, N_MEMBERS = 20, 50_000, 1_000, 100
TAUS = (0.3, 0.6, 0.9)
CUTS = (-1.0, -0.1, 0.25, 1.0)
LONG, LONG_CHUNK = 10_000_000, 65_536
LONG_MEMBERS, REPEATS = (100, 400), 2
USER_MEMBERS = 20

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def examples(rng: np.random.Generator, n: int) -> tuple[Floats, Ints, Ints]:
    """Return points, ranks, and the ranks of the rule without noise."""
    x = rng.uniform(size=(n, 2))
    clean = 10.0 * (x[:, 0] - 0.5) * (x[:, 1] - 0.5)
    noisy = clean + rng.normal(0.0, 0.125, n)
    ranks, best = (1 + (s[:, None] > CUTS).sum(axis=1) for s in (noisy, clean))
    return x, ranks, best


def write_examples(path: Path, x: Floats, ranks: Ints, **columns: Any) -> None:
    ends = pa.array(np.arange(0, x.size + 1, x.shape[1]), pa.int32())
    features = pa.ListArray.from_arrays(ends, pa.array(x.ravel()))
    pq.write_table(pa.table({"features": features, "rank": ranks, **columns}), path)


def ensembles() -> list[EnsembleLearnerConfig]:
    drawn: list[tuple[str, dict[str, Any]]] = [(f"tau {tau}", {"tau": tau}) for tau in TAUS]
    drawn.append(("Poisson", {"sampling": "poisson"}))
    return [
        EnsembleLearnerConfig(
            f"{combine}, {words}", combine, n_members=N_MEMBERS, kernel="poly", **params
        )
        for words, params in drawn
        for combine in ("bpm", "bagging", "voted")
    ]


def synthetic(spark: SparkSession, folder: Path) -> None:
    """Every trial is a sequence of its own; the stage learns all of them."""
    trials = [examples(np.random.default_rng(trial), N_TRAIN + N_TEST) for trial in range(TRIALS)]
    test = np.tile(np.arange(N_TRAIN + N_TEST) >= N_TRAIN, TRIALS)
    x, ranks, best = (np.concatenate(part) for part in zip(*trials, strict=True))
    numbers = np.repeat(np.arange(1, TRIALS + 1), N_TRAIN + N_TEST)
    write_examples(folder / "synthetic.parquet", x, ranks, test=test, trial=numbers)
    settings = EnsembleConfig(sequence=str(folder / "synthetic.parquet"), learners=ensembles())
    run = Run(spark, str(folder), "synthetic")
    with Watch() as watch:
        run_stage(STAGES["ensemble"], Config(ensemble=settings), spark, run)
    errors = np.abs(ranks - best)[test].reshape(TRIALS, -1).mean(axis=1)
    print(f"synthetic, {TRIALS} trials of {N_TRAIN:,} + {N_TEST:,}, N = {N_MEMBERS}: "
          f"{watch.seconds:.1f} s")  # fmt: skip
    print(f"  {'':<28}{'test rank loss':<28}{'least':>8}{'greatest':>10}{'on the way':>12}")
    print(loss_line("rule without noise", errors))
    metrics = {(row["learner"], row["metric"]): row for row in rows_of(run, "ensemble_metrics")}
    for name in dict.fromkeys(learner for learner, _ in metrics):
        loss, online = metrics[name, "rank_loss"], metrics[name, "online_loss"]
        interval = f"[{loss['ci_low']:.4f}, {loss['ci_high']:.4f}]"
        ends = f"{loss['least']:>16.3f}{loss['greatest']:>10.3f}"
        print(f"  {name:<28}{loss['mean']:.4f} {interval}{ends}{online['mean']:>12.4f}")
    paired_differences(run)
    print_diversity(run)
    averaged_members(trials)
    print(flush=True)


def rows_of(run: Run, table: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(run.path(table).removeprefix("file:")).to_pylist()
    return rows


def loss_line(name: str, losses: Floats) -> str:
    interval = t_interval(losses)
    assert interval is not None
    return (f"  {name:<28}{losses.mean():.4f} [{interval.low:.4f}, {interval.high:.4f}]"
            f"{losses.min():>16.3f}{losses.max():>10.3f}")  # fmt: skip


def paired_differences(run: Run) -> None:
    """Hold the mean rule against both votes of the same members, trial by trial."""
    losses: dict[str, dict[int, float]] = {}
    for row in rows_of(run, "ensemble_models"):
        losses.setdefault(row["learner"], {})[row["trial"]] = row["rank_loss"]
    for name in sorted(losses):
        combine, words = name.split(", ")
        if combine != "bpm":
            mean_rule = losses[f"bpm, {words}"]
            gaps = [mean_rule[trial] - loss for trial, loss in sorted(losses[name].items())]
            print(loss_line(f"  bpm less {name}", np.array(gaps)))


def print_diversity(run: Run) -> None:
    print(f"  {'members of':<28}{'angle':>8}{'disagreement':>14}{'updates':>10}{'PRanks':>8}")
    for row in rows_of(run, "ensemble_diversity"):
        if row["combine"] == "bpm":
            print(f"  {row['learner']:<28}{row['angle']:>7.2f}°{row['disagreement']:>13.1%}"
                  f"{row['updates']:>11,.0f}{row['prank_passes']:>8}")  # fmt: skip


def averaged_members(trials: list[tuple[Floats, Ints, Ints]]) -> None:
    """Average each member's rule over its rounds before the mean, beside one averaged PRank."""
    alone = np.empty(len(trials))
    together = np.empty((len(TAUS), len(trials)))
    learn, held_out = slice(0, N_TRAIN), slice(N_TRAIN, None)
    for trial, (x, ranks, _) in enumerate(trials):
        X = polynomial_features(x)
        single = PRank(5, readout="averaged").fit(X[learn], ranks[learn])
        alone[trial] = np.abs(single.predict(X[held_out]) - ranks[held_out]).mean()
        for row, tau in enumerate(TAUS):
            drawn = [
                member_average(X[learn], ranks[learn], trial, j, tau) for j in range(N_MEMBERS)
            ]
            w, b = (np.mean(part, axis=0) for part in zip(*drawn, strict=True))
            predicted = 1 + np.searchsorted(b, X[held_out] @ w, side="right")
            together[row, trial] = np.abs(predicted - ranks[held_out]).mean()
    print(loss_line("one averaged PRank", alone))
    for tau, losses in zip(TAUS, together, strict=True):
        print(loss_line(f"averaged members, tau {tau}", losses))
        print(loss_line("  less one averaged PRank", losses - alone))


def member_average(
    X: Floats, ranks: Ints, trial: int, member: int, tau: float
) -> tuple[Floats, Floats]:
    keys, cumulative = member_keys(0, trial, [member]), cumulative_counts("bernoulli", tau)
    shown = presentations(keys, np.arange(len(X)), cumulative)[0] > 0
    learned = PRank(5, readout="averaged").fit(X[shown], ranks[shown])
    return learned.coef_, learned.thresholds_


def speed(spark: SparkSession, folder: Path) -> None:
    x, ranks, _ = examples(np.random.default_rng(0), LONG)
    write_examples(folder / "long.parquet", x, ranks)
    print(f"one sequence of {LONG:,} examples, {os.cpu_count()} cores, least of {REPEATS}")
    for members in LONG_MEMBERS:
        compare_speed(spark, folder, x, ranks, members)


def compare_speed(spark: SparkSession, folder: Path, x: Floats, ranks: Ints, members: int) -> None:
    entry = EnsembleLearnerConfig(n_members=members, kernel="poly")
    seconds, alone = dict.fromkeys((1, 2), np.inf), dict.fromkeys((1, 2), np.inf)
    for groups in (1, 2) * REPEATS:
        took = task_seconds(spark, folder, EnsembleConfig(
            learners=[entry], sequence=str(folder / "long.parquet"), groups=groups,
            chunk=LONG_CHUNK,
        ))  # fmt: skip
        alone[groups] = min(took[0], alone[groups])
        seconds[groups] = min(took[1], seconds[groups])
    bare = min(bare_seconds(x, ranks, members, 0, members) for _ in range(REPEATS))
    halves = seconds_of_halves(members)
    print(f" N = {members}")
    print(f"  kernel alone, one core     {bare:8.1f} s")
    print(f"  half of it on each of two  {halves:8.1f} s   speed-up {bare / halves:.2f}")
    print(f"  two tasks without reduce   {alone[2]:8.1f} s   speed-up "
          f"{alone[1] / alone[2]:.2f} over one without")  # fmt: skip
    print(f"  one task and the reduce    {seconds[1]:8.1f} s   {seconds[1] / bare:.2f} times")
    print(f"  two tasks and the reduce   {seconds[2]:8.1f} s   speed-up "
          f"{seconds[1] / seconds[2]:.2f}", flush=True)  # fmt: skip


def task_seconds(
    spark: SparkSession, folder: Path, settings: EnsembleConfig
) -> tuple[float, float]:
    """Return the times of the members alone, and with the reduce; nothing is read or compared."""
    from spark_rank.stages.ensemble_sequence import member_sums, sequence_job, sequence_models
    from spark_rank.stages.ensemble_sources import sequence_source

    with tempfile.TemporaryDirectory(dir=folder) as files:
        config = Config(ensemble=settings)
        run = Run(spark, str(folder), "speed")
        source = sequence_source(config, run, Path(files))
        distribute_local(spark, Path(files), source.files)
        job = sequence_job(config, source)
        began = time.perf_counter()
        member_sums(spark, job, settings.groups).write.format("noop").mode("overwrite").save()
        between = time.perf_counter()
        found = sequence_models(spark, job, settings.groups)
        found.write.mode("overwrite").parquet(run.path("results"))
        return between - began, time.perf_counter() - between


def bare_seconds(x: Floats, ranks: Ints, members: int, first: int, last: int) -> float:
    """Return the time of the class on the same examples, chunk by chunk as a task has them."""
    ensemble, group = OAP(5, n_members=members), None
    ends = [*range(0, len(x), LONG_CHUNK), len(x)]
    began = time.perf_counter()
    for start, stop in pairwise(ends):
        X = polynomial_features(x[start:stop])
        group = ensemble.train_members(X, ranks[start:stop], first=first, last=last, resume=group)
    return time.perf_counter() - began


def seconds_of_halves(members: int) -> float:
    """Return the time of two processes with half of the members each: what two cores can give."""
    halves = [(members, 0, members // 2), (members, members // 2, members)]
    # new interpreters, as Spark's workers are; the first time they load the kernel
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        return min(max(pool.map(seconds_of_half, halves, chunksize=1)) for _ in range(REPEATS + 1))


def seconds_of_half(part: tuple[int, int, int]) -> float:
    x, ranks, _ = examples(np.random.default_rng(0), LONG)
    with threadpool_limits(1):  # as in Spark's workers
        return bare_seconds(x, ranks, *part)


def users(spark: SparkSession, store: str, name: str) -> None:
    run = branch(Run(spark, store, name), f"ensemble-{os.getpid()}")
    config = Config(
        features=FeaturesConfig(rank=32),
        train=TrainConfig(learners=[LearnerConfig("prank")]),
        ensemble=EnsembleConfig(learners=[EnsembleLearnerConfig(n_members=USER_MEMBERS)]),
    )
    run_stage(STAGES["features"], config, spark, run)
    watches = {}
    for stage in ("train", "ensemble"):
        with Watch() as watches[stage]:
            run_stage(STAGES[stage], config, spark, run)
    print(f"every user of {name}")
    for stage, watch in watches.items():
        print(f"  {stage:<10}{watch.seconds:8.1f} s, {watch.cpu_seconds:8.1f} CPU s, largest "
              f"worker {watch.worker_gigabytes:.2f} GB")  # fmt: skip
    one, many = watches["train"], watches["ensemble"]
    ratio, cpu_ratio = many.seconds / one.seconds, many.cpu_seconds / one.cpu_seconds
    print(f"  N = {USER_MEMBERS} members take {ratio:.2f} times as long as one PRank and the two "
          f"baselines, {cpu_ratio:.2f} times the CPU "
          f"(at most {1.2 * USER_MEMBERS:.0f} is the aim)", flush=True)  # fmt: skip


def main(arguments: list[str]) -> None:
    parts = [word for word in ("synthetic", "speed") if word in arguments]
    where = arguments[arguments.index("users") + 1 :][:2] if "users" in arguments else None
    if where is not None and len(where) < 2:
        sys.exit("users: name a store and a run in it")
    with (
        tempfile.TemporaryDirectory() as folder,
        spark_session("ensemble benchmark", SETTINGS) as spark,
    ):
        if "synthetic" in parts or not arguments:
            synthetic(spark, Path(folder))
        if "speed" in parts or not arguments:
            speed(spark, Path(folder))
        if where is not None:
            users(spark, *where)


if __name__ == "__main__":
    main(sys.argv[1:])
