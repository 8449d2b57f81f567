"""evaluate: metrics of every user and learner, their distribution, comparisons, ROC and bounds."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from spark_rank.config import Config
from spark_rank.config.schema import EvaluateConfig, TrainConfig
from spark_rank.config.sections import check_evaluate
from spark_rank.frames import evaluate as frames
from spark_rank.frames.distributions import Statistics, distributions
from spark_rank.learners import learner_class
from spark_rank.reader.recorded import recorded_training
from spark_rank.records.data import IngestFacts
from spark_rank.records.features import FeatureFacts
from spark_rank.records.results import EvaluateFacts
from spark_rank.stages.feature_tables import distribute_files
from spark_rank.stages.list_metrics import list_metrics
from spark_rank.stages.models import all_models, batches_of_models, ensemble_input
from spark_rank.stages.recommend import how_lists_are_made
from spark_rank.stages.stage import Stage, StageResult
from spark_rank.stages.train import status_counts
from spark_rank.stages.training import rank_scale, run_propensities, tasks_by_bucket
from spark_rank.stages.tuned_scores import tuned_scores
from spark_rank.store.run import Run
from spark_rank.tables.contract import Contract
from spark_rank.tables.contracts import (
    BLOCKS,
    ITEM_FEATURES,
    LIST_METRICS,
    METRICS,
    RATINGS,
    ROC,
    SHOWN_METRICS,
    SUMMARY,
    TABLES,
)
from spark_rank.users.evaluating import CURVE, EvaluateJob
from spark_rank.users.generalization import BoundFacts
from spark_rank.users.measuring import CHOSEN, Measures
from spark_rank.users.rank_scale import RankScale
from spark_rank.users.shown_measuring import ShownJob
from spark_rank.users.user_groups import ALL, UserGroups
from spark_rank.wording import count_of


def evaluate(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Compare the held-out scores with the held-out ratings, user by user."""
    training = recorded_training(run)
    measures = _measures(config, training, run)
    groups = measures.groups
    job = EvaluateJob(distribute_files(spark, run), measures)
    tasks = tasks_by_bucket(run)
    evaluated = frames.evaluate(run.read(BLOCKS), all_models(run), job, tasks)
    # kept, because it is read three times
    with batches_of_models(run):
        measured = run.keep(evaluated, "measured")
    rows = {METRICS.table: run.write(METRICS, measured.drop(CURVE))}
    tables = distributions(run.written(METRICS), _statistics(config, groups, measures), tasks)
    tables[ROC.table] = frames.roc(measured, groups)
    if config.evaluate.candidates != "rated":
        tables[LIST_METRICS.table] = list_metrics(config, spark, run, measures)
    if config.evaluate.weights != "none":
        tables[SHOWN_METRICS.table] = _shown_metrics(run, job)
    for name, table in tables.items():
        rows[name] = _write_small(spark, run, TABLES[name], table)
    status = status_counts(run.written(METRICS))
    return StageResult(
        f"metrics of {count_of(rows[METRICS.table], 'model')}",
        rows,
        EvaluateFacts(
            means=_overall(tables[SUMMARY.table], "mean"),
            users=_overall(tables[SUMMARY.table], "users"),
            pooled=_pooled(tables[SUMMARY.table]),
            status=status,
            relevant_from=measures.relevant_from,
            tuned=tuned_scores(run, run.written(METRICS)),
            test=measures.test,
        ),
        rows[METRICS.table] // len(status) if status else None,
    )


def _deciding_settings(config: Config) -> dict[str, Any]:
    """Return the section, and how lists are made where they are measured."""
    settings = dataclasses.asdict(config.evaluate)
    if config.evaluate.candidates != "rated":
        settings["lists"] = how_lists_are_made(config.recommend)
    return settings


def _shown_metrics(run: Run, job: EvaluateJob) -> pa.Table:
    facts = run_propensities("evaluate.weights", run)
    limits = run.range_of(RATINGS, "rating")
    shown_job = ShownJob(job.files, facts, job.measures.scale, limits)
    return frames.shown(run.read(BLOCKS), all_models(run), shown_job, tasks_by_bucket(run))


def _measures(config: Config, training: TrainConfig, run: Run) -> Measures:
    rating_scale = run.facts(IngestFacts).rating_scale
    return measures_of(
        config.evaluate,
        training,
        scale=rank_scale(run),
        limits=(rating_scale.low, rating_scale.high),
        ratings=run.range_of(RATINGS, "rating"),
        offsets=run.range_of(ITEM_FEATURES, "offset"),
        squared_radius=run.facts(FeatureFacts).squared_radius,
        test=held_out_label(run),
    )


def held_out_label(run: Run) -> str:
    """Return what the held-out ratings are, as `prepare` recorded it."""
    settings = (run.record("prepare") or {})["settings"]
    return str(settings.get("test", CHOSEN))


def measures_of(
    settings: EvaluateConfig,
    training: TrainConfig,
    *,
    scale: RankScale | None,
    limits: tuple[float, float],
    ratings: tuple[float, float],
    offsets: tuple[float, float],
    squared_radius: float,
    test: str = CHOSEN,
) -> Measures:
    """Return the settings of the metrics.

    `limits` of the scale, `ratings` and `offsets` are (least, greatest).
    """
    (low, high), (low_offset, high_offset) = ratings, offsets
    bounds = BoundFacts(
        stable=frozenset(
            entry.label
            for entry in training.learners
            if learner_class(entry.learner).has_stability_bound
        ),
        squared_radius=squared_radius,
        rating_range=high - low,
        offset_range=high_offset - low_offset,
        margin=training.margin,
        delta=1.0 - settings.confidence,
    )
    relevant_from = settings.relevant_from
    if relevant_from is None:
        relevant_from = upper_half(scale, low, high)
    return Measures(
        top_n=settings.top_n,
        # ratings are stored as float32: the limit is rounded like them
        relevant_from=float(np.float32(relevant_from)),
        epsilon=settings.epsilon,
        scale=scale,
        bounds=bounds,
        groups=UserGroups(training.min_ratings, tuple(settings.activity)),
        limits=limits,
        test=test,
    )


def upper_half(scale: RankScale | None, low: float, high: float) -> float:
    """Return the start of the lowest level above the middle of the scale, or the middle."""
    middle = (low + high) / 2.0
    starts = () if scale is None else scale.levels if scale.cuts is None else scale.cuts
    return min((start for start in starts if start > middle), default=middle)


def _statistics(config: Config, groups: UserGroups, measures: Measures) -> Statistics:
    return Statistics(
        groups=groups.names(),
        confidence=config.evaluate.confidence,
        seed=config.seed,
        test=measures.test,
        # the costs of a constant score are never above this
        informative_below={"stability": measures.bounds.rating_range**2, "margin": 1.0},
    )


def _write_small(spark: SparkSession, run: Run, contract: Contract, table: pa.Table) -> int:
    """Write a small table as one file."""
    return run.write(contract, spark.createDataFrame(table).coalesce(1))


def _overall(summary: pa.Table, column: str) -> dict[str, dict[str, Any]]:
    """Return a column of the summary over all users, by learner and metric."""
    values: dict[str, dict[str, Any]] = {}
    for row in summary.to_pylist():
        if row["user_group"] == ALL:
            values.setdefault(row["learner"], {})[row["metric"]] = row[column]
    return values


def _pooled(summary: pa.Table) -> dict[str, dict[str, float]]:
    """Return the metrics over all held-out ratings, by learner and metric."""
    found = _overall(summary, "pooled")
    return {
        learner: {metric: value for metric, value in values.items() if value is not None}
        for learner, values in found.items()
    }


STAGE = Stage(
    name="evaluate",
    run=evaluate,
    settings=_deciding_settings,
    needs=lambda config: ("train", "features", "ingest"),
    inputs=lambda config, run: ensemble_input(run),
    follows_inputs=True,
    validate=check_evaluate,
)
