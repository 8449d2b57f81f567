"""Estimator and model over DataFrames: one ranking model per user, in place of ALS."""

from spark_rank.ml.evaluator import PerUserEvaluator
from spark_rank.ml.model import PerUserRankerModel
from spark_rank.ml.ranker import PerUserRanker

__all__ = ["PerUserEvaluator", "PerUserRanker", "PerUserRankerModel"]
