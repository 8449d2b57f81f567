"""Errors in tuning beside errors on held-out ratings, for the same users and learners."""

from __future__ import annotations

import math
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_rank.frames.tuning import least_ratings, sample_order
from spark_rank.records.results import TunedScore
from spark_rank.store.run import Run
from spark_rank.tables.contracts import TUNING
from spark_rank.users.choice_prior import mean_and_error
from spark_rank.users.learning import APPROXIMATED, LEARNED


def tuned_scores(run: Run, metrics: DataFrame) -> dict[str, TunedScore]:
    """Return the errors of the chosen points in tuning and on held-out ratings, by learner.

    The users are those of `tune`'s sample that have a model and held-out ratings.
    """
    if not run.has(TUNING):
        return {}
    record = run.record("tune") or {}
    chosen = run.read(TUNING).where("chosen").orderBy("learner").collect()
    scores = {}
    for row in chosen:
        learner_metrics = metrics.where(F.col("learner") == row["learner"])
        error, noise = _held_out_error(learner_metrics, row["measure"], record)
        scores[row["learner"]] = TunedScore(
            measure=row["measure"],
            tuning=row["error"],
            tuning_standard_error=row["standard_error"],
            held_out=error,
            held_out_standard_error=noise,
        )
    return scores


def _held_out_error(
    metrics: DataFrame, measure: str, record: dict[str, Any]
) -> tuple[float | None, float | None]:
    """Return mean and standard error over the sample; msd is over pairs of different items."""
    settings = record["settings"]
    with_enough_ratings = metrics.where(F.col("n_train") >= least_ratings(settings["min_ratings"]))
    sample = with_enough_ratings.orderBy(*sample_order(record["seed"])).limit(
        settings["tune"]["users"]
    )
    size = F.col("n_test")
    factor = size / (size - 1) if measure == "msd" else F.lit(1.0)
    defined = F.col(measure).isNotNull() & (size > 1) & F.col("status").isin(LEARNED, APPROXIMATED)
    values = sample.where(defined).select((F.col(measure) * factor).alias("error")).toArrow()
    error, noise = mean_and_error(values["error"].to_numpy())
    return error if math.isfinite(error) else None, noise if math.isfinite(noise) else None
