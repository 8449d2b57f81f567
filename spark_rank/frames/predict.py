"""Predicts ratings for pairs of a user and an item."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_rank.frames.udfs import predict_udf
from spark_rank.records.features import ShownFacts
from spark_rank.users.predicting import SCORED_BY, PairJob


def predict(
    pairs: DataFrame,
    models: DataFrame,
    items: DataFrame,
    job: PairJob,
    *,
    user: str = "user_id",
    item: str = "item_id",
    prediction: str = "prediction",
    known: str = "known",
) -> DataFrame:
    """Add the predicted rating to the pairs, and a column `known`: whether user and item are.

    `models` has one row per user, with the columns of the table `models`; `items` has ``item_id,
    item``. The columns `user` and `item` of the pairs hold ids as strings.
    """
    scored = F.struct(*[name for name in SCORED_BY if name in models.columns])
    user_models = models.select(F.col("user_id").alias("_model_of"), scored.alias("_model"))
    numbers = items.select(F.col("item_id").alias("_number_of"), F.col("item").alias("_number"))
    joined = pairs.join(user_models, F.col(user) == F.col("_model_of"), "left").join(
        F.broadcast(numbers), F.col(item) == F.col("_number_of"), "left"
    )
    predicted = joined.withColumn(
        known, F.col("_model_of").isNotNull() & F.col("_number_of").isNotNull()
    ).withColumn(prediction, predict_udf(job)(F.col(user), "_model", "_number"))
    return predicted.drop("_model_of", "_model", "_number_of", "_number")


def as_shown(prediction: Column, facts: ShownFacts) -> Column:
    """Return what users would say of items shown at random, from predictions of chosen ratings.

    The same as `spark_rank.features.shown.shown_ratings`.
    """
    square, linear, constant = (F.lit(value) for value in facts.curve)
    within = F.greatest(F.lit(facts.low), F.least(F.lit(facts.high), prediction))
    slope = 2.0 * square * within + linear
    return (square * within + linear) * within + constant + slope * (prediction - within)
