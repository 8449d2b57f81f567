"""The package's metrics as an evaluator for CrossValidator: the mean over users."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from pyspark.ml.evaluation import Evaluator
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.util import DefaultParamsReadable, DefaultParamsWritable
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_rank.data.rating_scale import find_scale
from spark_rank.errors import ConfigError, InputDataError
from spark_rank.frames.ids import column_of, id_text
from spark_rank.frames.pair_metrics import user_values
from spark_rank.ml.settings import column, setting_of
from spark_rank.stages.evaluate import upper_half
from spark_rank.stages.training import scale_of
from spark_rank.users.measuring import HIGHER_IS_BETTER, METRIC_NAMES
from spark_rank.users.rated_pairs import PairMetric


class PerUserEvaluator(Evaluator, DefaultParamsReadable["PerUserEvaluator"], DefaultParamsWritable):
    """Computes the mean of a metric over users, from rows with user, rating and prediction.

    Users whose metric is undefined are left out: with a single rating there is no pair to misrank.
    """

    metricName = Param(
        Params._dummy(),
        "metricName",
        f"one of {', '.join(METRIC_NAMES)}",
        typeConverter=TypeConverters.toString,
    )
    userCol = column("userCol", "column of users")
    labelCol = column("labelCol", "column of ratings")
    predictionCol = column("predictionCol", "column of predictions")
    topN = setting_of("topN", "evaluate.top_n")
    relevantFrom = setting_of("relevantFrom", "evaluate.relevant_from")
    epsilon = setting_of("epsilon", "evaluate.epsilon")

    def __init__(self, **params: Any) -> None:
        super().__init__()
        self._setDefault(
            metricName="misranking", userCol="user", labelCol="rating",
            predictionCol="prediction", topN=10, relevantFrom=None, epsilon=0.25,
        )  # fmt: skip
        self._set(**params)

    def setParams(self, **params: Any) -> PerUserEvaluator:
        """Set parameters by their names."""
        return self._set(**params)

    def isLargerBetter(self) -> bool:
        """Tell whether higher values of the metric are better."""
        return self.getOrDefault("metricName") in HIGHER_IS_BETTER

    def _evaluate(self, dataset: DataFrame) -> float:
        """Return the mean over users, NaN if no user has a value.

        The partitions of `dataset` do not change the result.
        """
        name = self.getOrDefault("metricName")
        if name not in METRIC_NAMES:
            raise ConfigError(
                f"metricName {name!r} is unknown: use one of {', '.join(METRIC_NAMES)}"
            )
        label, prediction = (
            column_of(dataset, self.getOrDefault(key)).cast("float")
            for key in ("labelCol", "predictionCol")
        )
        pairs = dataset.select(
            id_text(dataset, self.getOrDefault("userCol")).alias("user_id"),
            label.alias("rating"),
            prediction.alias("prediction"),
        )
        missing = pairs.where(F.isnan("prediction") | F.col("prediction").isNull()).count()
        if missing:
            raise InputDataError(
                f"{missing:,} predictions are null or NaN: set the model's coldStartStrategy to "
                "'fallback' to predict for all users, or to 'drop' to leave such rows out"
            )
        metric = self._metric(name, pairs.select("rating").where("rating is not null"))
        values = user_values(pairs, metric).select("value").toArrow().column("value").drop_null()
        # exact sums do not depend on the order of the users
        return math.fsum(values.to_pylist()) / len(values) if len(values) else math.nan

    def _metric(self, name: str, ratings: DataFrame) -> PairMetric:
        levels, rating_scale = find_scale(ratings, ())
        scale = scale_of([(rating, lower) for _, rating, lower, _ in levels])
        relevant = self.getOrDefault("relevantFrom")
        if relevant is None:
            relevant = upper_half(scale, rating_scale.low, rating_scale.high)
        return PairMetric(
            name, self.getOrDefault("topN"), float(np.float32(relevant)),
            self.getOrDefault("epsilon"), scale, (rating_scale.low, rating_scale.high),
        )  # fmt: skip
