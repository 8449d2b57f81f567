"""evaluate: metrics of every user and learner, their distribution, comparisons, ROC and bounds."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import Config
from spark_rank.config.schema import TrainConfig
from spark_rank.data.contracts import Contract, arrow_schema
from spark_rank.data.tables import (
    BOUNDS,
    COMPARISON,
    ITEM_FEATURES,
    METRICS,
    RATINGS,
    ROC,
    SUMMARY,
)
from spark_rank.engine.distributions import Statistics, distributions
from spark_rank.engine.generalization import BoundFacts
from spark_rank.engine.rank_scale import RankScale
from spark_rank.engine.scoring import (
    ROC_GRID,
    ROC_PARTIAL_DDL,
    SCORED,
    TRACED,
    Measures,
    evaluate_batches,
    roc_batches,
    roc_rate,
)
from spark_rank.engine.stage import Stage, StageResult
from spark_rank.engine.store import Run
from spark_rank.engine.tables_of_workers import rows_from_files, table_from_files
from spark_rank.engine.user_groups import ALL, UserGroups
from spark_rank.stages.models import ensemble_input, model_files
from spark_rank.stages.train import status_counts
from spark_rank.stages.training import rank_scale, recorded_training


def evaluate(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Compare the held-out scores with the held-out ratings, user by user."""
    training = recorded_training(run)
    groups = UserGroups(training.min_ratings, tuple(config.evaluate.activity))
    measures = _measures(config, training, run, groups)
    models = model_files(run)
    evaluated = table_from_files(
        models, SCORED, partial(evaluate_batches, measures=measures), METRICS
    )
    rows = {METRICS.table: run.write(METRICS, evaluated)}
    metrics = run.written(METRICS)
    tables = distributions(metrics, _statistics(config, groups, measures))
    tables[ROC.table] = _roc(models, measures)
    for contract in (SUMMARY, COMPARISON, BOUNDS, ROC):
        rows[contract.table] = _write_small(spark, run, contract, tables[contract.table])
    status = status_counts(metrics)
    return StageResult(
        f"{rows[METRICS.table]:,} users × learners",
        rows,
        {
            "means": _means(tables[SUMMARY.table]),
            "status": status,
            "relevant_from": measures.relevant_from,
        },
        rows[METRICS.table] // len(status) if status else None,
    )


def _measures(config: Config, training: TrainConfig, run: Run, groups: UserGroups) -> Measures:
    scale = rank_scale(run)
    low, high = run.read(RATINGS).agg(F.min("rating"), F.max("rating")).head() or (0.0, 0.0)
    settings = config.evaluate
    items = run.read(ITEM_FEATURES)
    low_offset, high_offset = items.agg(F.min("offset"), F.max("offset")).head() or (0.0, 0.0)
    bounds = BoundFacts(
        learners={entry.label: entry.learner for entry in training.learners},
        squared_radius=(run.record("features") or {})["facts"]["squared_radius"],
        rating_range=high - low,
        offset_range=high_offset - low_offset,
        margin=training.margin,
        delta=1.0 - settings.confidence,
    )
    relevant_from = settings.relevant_from
    if relevant_from is None:
        relevant_from = _upper_half(scale, low, high)
    return Measures(
        top_n=settings.top_n,
        # ratings are stored as float32: a limit is compared as the number it is among them
        relevant_from=float(np.float32(relevant_from)),
        epsilon=settings.epsilon,
        scale=scale,
        bounds=bounds,
        groups=groups,
    )


def _upper_half(scale: RankScale | None, low: float, high: float) -> float:
    """Return where the lowest level above the middle of the scale begins, or that middle."""
    middle = (low + high) / 2.0
    starts = () if scale is None else scale.levels if scale.cuts is None else scale.cuts
    return min((start for start in starts if start > middle), default=middle)


def _statistics(config: Config, groups: UserGroups, measures: Measures) -> Statistics:
    return Statistics(
        groups=groups.names(),
        confidence=config.evaluate.confidence,
        seed=config.seed,
        # the scores of a constant already have no more than this
        informative_below={"stability": measures.bounds.rating_range**2, "margin": 1.0},
    )


def _roc(models: DataFrame, measures: Measures) -> pa.Table:
    """Return the mean curve of every learner and group; groups without a curve are left out."""
    partial_sums = rows_from_files(
        models, TRACED, partial(roc_batches, measures=measures), ROC_PARTIAL_DDL
    )
    found = partial_sums.groupBy("learner", "user_group", "point").agg(
        F.sum("users").alias("users"), F.sum("total").alias("total")
    )
    sums: dict[tuple[str, str, int], list[int]] = {}
    for row in found.collect():
        for group in (row["user_group"], ALL):
            entry = sums.setdefault((row["learner"], group, row["point"]), [0, 0])
            entry[0] += row["users"]
            entry[1] += row["total"]
    order = {name: position for position, name in enumerate((ALL, *measures.groups.names()))}
    keys = sorted(sums, key=lambda key: (key[0], order[key[1]], key[2]))
    rows = [
        {"learner": learner, "user_group": group, "users": users,
         "false_positive_rate": float(ROC_GRID[point]),
         "true_positive_rate": roc_rate(total, users)}
        for learner, group, point in keys
        for users, total in [sums[learner, group, point]]
        if users
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=arrow_schema(ROC.columns))


def _write_small(spark: SparkSession, run: Run, contract: Contract, table: pa.Table) -> int:
    """Write a table that is small whatever the number of users, as one file."""
    return run.write(contract, spark.createDataFrame(table).coalesce(1))


def _means(summary: pa.Table) -> dict[str, dict[str, float | None]]:
    means: dict[str, dict[str, Any]] = {}
    for row in summary.to_pylist():
        if row["user_group"] == ALL:
            means.setdefault(row["learner"], {})[row["metric"]] = row["mean"]
    return means


STAGE = Stage(
    name="evaluate",
    run=evaluate,
    settings=lambda config: config.evaluate,
    needs=lambda config: ("train", "features", "ingest"),
    inputs=lambda config, run: ensemble_input(run),
    follows_inputs=True,
)
