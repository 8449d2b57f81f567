"""The estimator: what people use in place of ALS."""

from __future__ import annotations

from typing import Any

from pyspark.ml import Estimator
from pyspark.ml.util import DefaultParamsReadable, DefaultParamsWritable
from pyspark.sql import DataFrame

from spark_rank.errors import InputDataError
from spark_rank.frames.blocks import rating_rows
from spark_rank.frames.ids import id_type
from spark_rank.ml.model import PerUserRankerModel
from spark_rank.ml.settings import TrainingParams, column_defaults, defaults
from spark_rank.ml.training import train_on


class PerUserRanker(
    Estimator[PerUserRankerModel],
    TrainingParams,
    DefaultParamsReadable["PerUserRanker"],
    DefaultParamsWritable,
):
    """Learns one ranking model per user from a DataFrame of ratings.

    Every parameter may be given by name: ``PerUserRanker(userCol="user", rank=20)``;
    `explainParams` lists them all. The defaults are those of the command line.
    """

    def __init__(self, **params: Any) -> None:
        super().__init__()
        self._setDefault(**column_defaults(), **defaults())
        self._set(**params)

    def setParams(self, **params: Any) -> PerUserRanker:
        """Set parameters by their names."""
        return self._set(**params)

    def _fit(self, dataset: DataFrame) -> PerUserRankerModel:
        """Learn from all ratings of every user."""
        if dataset.isStreaming:
            raise InputDataError("fit: the DataFrame is a stream: write it to a table first")
        config = self.config()
        user, item = self.getUserCol(), self.getItemCol()
        time, weight = map(self.optional_column, ("timestampCol", "weightCol"))
        rows = rating_rows(dataset, user, item, self.getOrDefault("ratingCol"), time, weight)
        types = [id_type(dataset, name) for name in (user, item)]
        return self._copyValues(PerUserRankerModel(train_on(rows, config), *types))
