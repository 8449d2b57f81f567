"""tune: choose hyper-parameters for all users on a sample of them, from training ratings alone."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import Config
from spark_rank.config.schema import TrainConfig
from spark_rank.data.contracts import arrow_schema
from spark_rank.data.tables import BLOCKS, TUNING
from spark_rank.data.workers import by_workers
from spark_rank.engine.crashes import again_with_care
from spark_rank.engine.learning import LearnJob
from spark_rank.engine.selection import MIN_RATINGS
from spark_rank.engine.stage import Stage, StageResult
from spark_rank.engine.store import Run
from spark_rank.engine.tuning import ERRORS_DDL, error_batches, grid_scores
from spark_rank.errors import ConfigError, InputDataError
from spark_rank.learners.errors import LearnerError
from spark_rank.stages.training import LEARNED_COLUMNS, learn_job, specs_of, target_blocks
from spark_rank.wording import count_of


def tune(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Score every point of the grids that are chosen on a sample."""
    specs = [spec for spec in specs_of(config.train) if spec.grid and spec.selection == "sample"]
    if not specs:
        raise ConfigError("tune: no learner in train.learners has a grid to choose from for all")
    job = learn_job(config.train, specs, spark, run)
    errors = _sample_errors(_sample(config, run), job)
    if len(errors) == 0:
        raise InputDataError(
            f"tune: no user has the {_least_ratings(config.train)} training ratings that choosing "
            "hyper-parameters takes: leave the grids out"
        )
    try:
        rows = grid_scores(specs, errors, job.limits.scale)
    except LearnerError as error:
        raise InputDataError(f"tune: {error}") from None
    table = pa.Table.from_pylist(rows, arrow_schema(TUNING.columns))
    written = run.write(TUNING, spark.createDataFrame(table).coalesce(1))
    best = {row["learner"]: row["candidate"] - 1 for row in rows if row["chosen"]}
    points = {spec.label: spec.candidates()[best[spec.label]] for spec in specs}
    words = "; ".join(f"{label}: {_in_words(spec.grid, points[label])}"
                      for label, spec in zip(points, specs, strict=True))  # fmt: skip
    failures = errors.column("detail").drop_null().to_pylist()
    if failures:
        words += f"; left out {count_of(len(failures), 'failure')}, the first: {failures[0]}"
    facts = {"chosen": points, "failures": len(failures)}
    return StageResult(words, {TUNING.table: written}, facts)


def _sample_errors(sample: DataFrame, job: LearnJob) -> pa.Table:
    def errors(care: bool) -> pa.Table:
        work = partial(error_batches, job=replace(job, isolated=care))
        return by_workers(sample, work, ERRORS_DDL).toArrow()

    return again_with_care(errors, "tune", "the sample")


def chosen_for_all(config: Config, run: Run) -> dict[str, dict[str, Any]]:
    """Return the hyper-parameters that were chosen, by label, for the grids of this config."""
    if not is_needed(config):
        return {}
    record = run.record("tune") or {}
    if record["settings"] != json.loads(json.dumps(_deciding_settings(config))):
        raise ConfigError(
            f"run {run.run_id!r} has chosen hyper-parameters for other settings than these: give "
            "the new run a name of its own with --set run_id=NAME, or go back to what they were"
        )
    chosen: dict[str, dict[str, Any]] = record["facts"]["chosen"]
    return chosen


def is_needed(config: Config) -> bool:
    """Tell whether a learner has a grid that is chosen from once for all."""
    return any(entry.grid and entry.selection == "sample" for entry in config.train.learners)


def _sample(config: Config, run: Run) -> DataFrame:
    """Return the blocks of the users with the least hashes, of those that can be learned."""
    draw = F.xxhash64(F.lit(config.seed), F.lit("tune"), "user_id")
    targets = target_blocks(config.train, run.read(BLOCKS))
    able = targets.where(F.col("n_train") >= _least_ratings(config.train))
    picked = able.orderBy(draw, "user_id").limit(config.tune.users)
    picked = picked.select(*LEARNED_COLUMNS)
    return picked.repartition(run.spark.sparkContext.defaultParallelism * 4, "user")


def _least_ratings(settings: TrainConfig) -> int:
    return max(settings.min_ratings, MIN_RATINGS)


def _in_words(grid: Any, point: dict[str, Any]) -> str:
    return ", ".join(f"{name} {point[name]}" for name in grid)


def _deciding_settings(config: Config) -> Any:
    entries = [entry for entry in config.train.learners if entry.grid]
    settings = config.train
    return {
        "tune": {"users": config.tune.users},
        "learners": [
            {"name": entry.label, "learner": entry.learner, "item_offset": entry.item_offset,
             "params": entry.params, "grid": entry.grid}
            for entry in entries if entry.selection == "sample"
        ],
        "min_ratings": settings.min_ratings,
        "max_kernel_ratings": settings.max_kernel_ratings,
        "landmarks": settings.landmarks,
        "folds": settings.folds,
        "targets": [settings.targets_min, settings.targets_max],
    }  # fmt: skip


STAGE = Stage(
    name="tune",
    run=tune,
    settings=_deciding_settings,
    needs=lambda config: ("features", "prepare"),
)
