"""Ensembles on one sequence: tasks learn groups of members, a reduce adds up their rounds."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import Config
from spark_rank.config.schema import EnsembleConfig, EnsembleLearnerConfig
from spark_rank.errors import InputDataError
from spark_rank.features.files import distribute_local
from spark_rank.learners import RIVALS
from spark_rank.reader.recorded import oap_params
from spark_rank.records.models import SequenceEnsembleFacts
from spark_rank.sequences.examples import SequenceJob, SequenceSpec, View
from spark_rank.sequences.learning import (
    OUTCOME,
    PART_DDL,
    RESULT_DDL,
    Work,
    sequence_parts,
    sequence_results,
)
from spark_rank.sequences.rivals import RIVAL_DDL, rival_results
from spark_rank.session.workers import by_workers
from spark_rank.stages.ensemble_sources import COEF0, Source, sequence_source
from spark_rank.stages.ensemble_tables import (
    TRIAL_METRICS,
    diversity,
    trial_curves,
    trial_metrics,
    write_rows,
)
from spark_rank.stages.stage import StageResult
from spark_rank.store.run import Run
from spark_rank.tables.contracts import (
    ENSEMBLE_CURVE,
    ENSEMBLE_DIVERSITY,
    ENSEMBLE_METRICS,
    ENSEMBLE_MODELS,
)
from spark_rank.users.ensembles import CURVE_ROUNDS, split_members
from spark_rank.users.member_sums import KEY
from spark_rank.users.prior_scores import Prior

_SCRATCH = "ensemble"

Row = dict[str, Any]


def sequence_ensembles(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Learn the ensembles and their rivals on one sequence."""
    with tempfile.TemporaryDirectory(prefix="spark-rank-") as folder:
        source = sequence_source(config, run, Path(folder))
        distribute_local(spark, Path(folder), source.files)
    job = sequence_job(config, source)
    results = sequence_models(spark, job, config.ensemble.groups)
    results.write.mode("overwrite").parquet(run.scratch_path(_SCRATCH))
    rivals = _rivals(spark, job)
    written = spark.read.parquet(run.scratch_path(_SCRATCH))
    names = [column.name for column in OUTCOME]
    outcomes = _outcomes(job, written.select("trial", "learner", *names).toArrow().to_pylist())
    failures = {label: text for label, trials in outcomes.items() if (text := _failure(trials))}
    if failures:
        label, text = next(iter(failures.items()))
        raise InputDataError(f"ensemble: {label}: {text}")
    rows = run.write(ENSEMBLE_MODELS, _models(spark, written, outcomes))
    tables = _tables(run, config.ensemble, outcomes, rivals)
    trials = len(job.trials)
    failed = {label: text for label, t in rivals.items() if (text := _failure(t))}
    return StageResult(
        f"{source.words}, {trials} trial{'s' if trials > 1 else ''}: " + _losses(outcomes),
        {ENSEMBLE_MODELS.table: rows, **tables},
        SequenceEnsembleFacts(failures=failed, n_ranks=job.n_ranks),
    )


def sequence_job(config: Config, source: Source) -> SequenceJob:
    """Return the job of the workers."""
    settings = config.ensemble
    specs = tuple(
        _spec(entry, view, prior, config.seed)
        for entry, view, prior in zip(settings.learners, source.views, source.prior, strict=True)
    )
    return SequenceJob(
        source.trials, specs, source.n_ranks, config.seed, settings.chunk, source.user
    )


def sequence_models(spark: SparkSession, job: SequenceJob, groups: int | None) -> DataFrame:
    """Return the outcome of every chunk of rounds, the last with its model.

    The rows do not depend on `groups`.
    """
    # one task per core: starting a task takes longer than adding up a few parts
    reducers = spark.sparkContext.defaultParallelism
    placed = member_sums(spark, job, groups).repartition(reducers, *KEY)
    ordered = placed.sortWithinPartitions(*KEY)
    return by_workers(ordered, partial(sequence_results, job=job), RESULT_DDL)


def member_sums(spark: SparkSession, job: SequenceJob, groups: int | None) -> DataFrame:
    """Return the sums of every group of members over every chunk of rounds, a task per group."""
    cores = spark.sparkContext.defaultParallelism
    problems = len(job.trials) * len(job.specs)
    groups_per_problem = groups or -(-cores // problems)
    work = [
        Work(trial, place, first, last)
        for trial in range(len(job.trials))
        for place, spec in enumerate(job.specs)
        for first, last in split_members(spec.params["n_members"], groups_per_problem)
    ]
    tasks = spark.range(0, len(work), 1, len(work))
    return by_workers(tasks, partial(sequence_parts, job=job, work=work), PART_DDL)


def _spec(entry: EnsembleLearnerConfig, view: View, prior: Prior, seed: int) -> SequenceSpec:
    params = oap_params(entry, seed)
    of_kernel: Row = {"kernel": entry.kernel}
    if entry.kernel != "linear":
        of_kernel |= {"gamma": entry.gamma}
        of_kernel |= {"degree": entry.degree, "coef0": COEF0} if entry.kernel == "poly" else {}
        of_kernel |= {} if view.squared else {"budget": entry.budget}
    return SequenceSpec(
        entry.label, params, view, entry.keep_members, entry.kernel,
        None if entry.kernel == "linear" else entry.gamma,
        json.dumps({**params, **of_kernel}, sort_keys=True), prior,
    )  # fmt: skip


def _rivals(spark: SparkSession, job: SequenceJob) -> dict[str, list[Row]]:
    """Learn the rivals from the features of the first ensemble."""
    work = [(trial, name) for trial in range(len(job.trials)) for name in RIVALS]
    tasks = spark.range(0, len(work), 1, len(work))
    learn = partial(rival_results, job=job, work=work, view=job.specs[0].view)
    rows = by_workers(tasks, learn, RIVAL_DDL).toArrow().to_pylist()
    return _outcomes(job, rows, RIVALS)


def _outcomes(
    job: SequenceJob, rows: Sequence[Row], labels: Iterable[str] | None = None
) -> dict[str, list[Row]]:
    """Join the chunks of every trial: one row per learner and trial."""
    names = [spec.label for spec in job.specs] if labels is None else labels
    return {
        label: [
            _trial_outcome(
                sorted(
                    (row for row in rows if row["learner"] == label
                     and row["trial"] == trial.number),
                    key=lambda row: row["first_round"] or 0,
                ),
                trial.number,
            )
            for trial in job.trials
        ]
        for label in names
    }  # fmt: skip


def _trial_outcome(chunks: Sequence[Row], trial: int) -> Row:
    failures = [chunk["failure"] for chunk in chunks if chunk["failure"] is not None]
    if failures:
        return {"trial": trial, "failure": failures[0], "rounds": [], "losses": [],
                **dict.fromkeys(TRIAL_METRICS)}  # fmt: skip
    losses: list[int] = []
    total = n_rounds = 0
    for chunk in chunks:
        assert chunk["first_round"] == n_rounds
        losses += [total + loss for loss in chunk["losses"]]
        total, n_rounds = total + chunk["total"], n_rounds + chunk["n_rounds"]
    rounds = CURVE_ROUNDS[: len(losses)].tolist()
    grid = list(losses)
    if rounds[-1] != n_rounds:  # the curve ends where the sequence does
        rounds, losses = [*rounds, n_rounds], [*losses, total]
    last = {name: chunks[-1][name] for name in TRIAL_METRICS if name != "online_loss"}
    return {"trial": trial, "failure": None, "rounds": rounds, "losses": losses, "grid": grid,
            "online_loss": total / n_rounds, **last}  # fmt: skip


def _failure(trials: Sequence[Row]) -> str | None:
    failed = [trial for trial in trials if trial["failure"] is not None]
    return f"trial {failed[0]['trial']}: {failed[0]['failure']}" if failed else None


def _models(spark: SparkSession, results: DataFrame, outcomes: dict[str, list[Row]]) -> DataFrame:
    """Return the models from the last chunks, with the curves over all chunks."""
    curves = pa.table({
        "learner": [label for label, trials in outcomes.items() for _ in trials],
        "trial": pa.array([t["trial"] for each in outcomes.values() for t in each], pa.int32()),
        "online_loss": [t["online_loss"] for each in outcomes.values() for t in each],
        "curve": pa.array([t["grid"] for each in outcomes.values() for t in each],
                          pa.list_(pa.int64())),
    })  # fmt: skip
    last = results.where(F.col("status").isNotNull()).drop("online_loss", "curve")
    joined = last.join(spark.createDataFrame(curves), ["learner", "trial"])
    return joined.select(*[column.name for column in ENSEMBLE_MODELS.columns])


def _tables(
    run: Run, settings: EnsembleConfig, outcomes: dict[str, list[Row]],
    rivals: dict[str, list[Row]],
) -> dict[str, int]:  # fmt: skip
    all_outcomes = {**rivals, **outcomes}
    models = run.written(ENSEMBLE_MODELS)
    rows_by_table = {
        ENSEMBLE_CURVE: trial_curves(all_outcomes, settings.confidence),
        ENSEMBLE_METRICS: trial_metrics(all_outcomes, settings.confidence),
        ENSEMBLE_DIVERSITY: diversity(models, settings.learners),
    }
    return {table.table: write_rows(run, table, rows) for table, rows in rows_by_table.items()}


def _losses(outcomes: dict[str, list[Row]]) -> str:
    """Return the mean rank loss of every ensemble, on the test part or else online."""
    words = []
    for label, trials in outcomes.items():
        metric = "rank_loss" if trials[0]["rank_loss"] is not None else "online_loss"
        mean = sum(trial[metric] for trial in trials) / len(trials)
        words.append(f"{label} {metric} {mean:.4f}")
    return ", ".join(words)
