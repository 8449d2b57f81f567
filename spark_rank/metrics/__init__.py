"""Per-user metrics of scores against ratings; undefined is None, never 0."""

from spark_rank.metrics.pairs import (
    mean_1norm_difference,
    mean_squared_difference,
    pairwise_misranking,
)

__all__ = ["mean_1norm_difference", "mean_squared_difference", "pairwise_misranking"]
