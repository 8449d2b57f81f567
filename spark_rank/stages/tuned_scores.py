"""What tuning measured beside what the same users' held-out ratings tell of the same learners."""

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
    """Return, by learner with a grid, the chosen point's error in tuning and on held-out ratings.

    The users are those that `tune` chose on, as far as they have a model and held-out ratings.
    """
    if not run.has(TUNING):
        return {}
    record = run.record("tune") or {}
    chosen = run.read(TUNING).where("chosen").orderBy("learner").collect()
    found = {}
    for row in chosen:
        own = metrics.where(F.col("learner") == row["learner"])
        error, noise = _held_out_error(own, row["measure"], record)
        found[row["learner"]] = TunedScore(
            measure=row["measure"],
            tuning=row["error"],
            tuning_standard_error=row["standard_error"],
            held_out=error,
            held_out_standard_error=noise,
        )
    return found


def _held_out_error(
    metrics: DataFrame, measure: str, record: dict[str, Any]
) -> tuple[float | None, float | None]:
    """Return mean and standard error over the sample; of msd over pairs of different items."""
    settings = record["settings"]
    able = metrics.where(F.col("n_train") >= least_ratings(settings["min_ratings"]))
    sample = able.orderBy(*sample_order(record["seed"])).limit(settings["tune"]["users"])
    size = F.col("n_test")
    factor = size / (size - 1) if measure == "msd" else F.lit(1.0)
    defined = F.col(measure).isNotNull() & (size > 1) & F.col("status").isin(LEARNED, APPROXIMATED)
    values = sample.where(defined).select((F.col(measure) * factor).alias("error")).toArrow()
    error, noise = mean_and_error(values["error"].to_numpy())
    return error if math.isfinite(error) else None, noise if math.isfinite(noise) else None
