"""Per-user metrics of scores against ratings, statistics over users, and bounds.

A metric of one user is a function of two vectors; an undefined metric is None, never 0.
`batch_metrics` computes them for batches of users with the same kernels, and NaN for undefined.
"""

from spark_rank.metrics.batch import (
    BATCH_METRICS,
    batch_metrics,
    batch_metrics_and_roc,
    batch_roc,
)
from spark_rank.metrics.bounds import margin_bound, margin_bounds, stability_bound, stability_bounds
from spark_rank.metrics.comparison import PairedComparison, compare_paired, holm
from spark_rank.metrics.errors import mean_absolute_error, root_mean_squared_error
from spark_rank.metrics.intervals import (
    Description,
    Interval,
    bootstrap_interval,
    describe,
    t_interval,
    t_interval_of,
)
from spark_rank.metrics.lists import (
    HIT_METRICS,
    coverage,
    genre_divergence,
    gini,
    hit_metrics,
    intra_list_diversity,
)
from spark_rank.metrics.margin import margin_loss
from spark_rank.metrics.order import ranking
from spark_rank.metrics.pairs import (
    mean_1norm_difference,
    mean_squared_difference,
    pair_cost,
    pairwise_misranking,
)
from spark_rank.metrics.ranks import exact_rank_rate, nearest_ranks, rank_loss
from spark_rank.metrics.roc import auc, auc_interval, roc_curve
from spark_rank.metrics.scorers import misranking_scorer, msd_scorer, rank_loss_scorer
from spark_rank.metrics.top import average_precision, ndcg, precision, recall
from spark_rank.metrics.training import TRAINING_METRICS, batch_training_metrics
from spark_rank.metrics.weighted import (
    effective_size,
    weighted_misranking,
    weighted_squared_difference,
)
from spark_rank.metrics.weighted_auc import weighted_auc

__all__ = [
    "BATCH_METRICS",
    "HIT_METRICS",
    "TRAINING_METRICS",
    "Description",
    "Interval",
    "PairedComparison",
    "auc",
    "auc_interval",
    "average_precision",
    "batch_metrics",
    "batch_metrics_and_roc",
    "batch_roc",
    "batch_training_metrics",
    "bootstrap_interval",
    "compare_paired",
    "coverage",
    "describe",
    "effective_size",
    "exact_rank_rate",
    "genre_divergence",
    "gini",
    "hit_metrics",
    "holm",
    "intra_list_diversity",
    "margin_bound",
    "margin_bounds",
    "margin_loss",
    "mean_1norm_difference",
    "mean_absolute_error",
    "mean_squared_difference",
    "misranking_scorer",
    "msd_scorer",
    "ndcg",
    "nearest_ranks",
    "pair_cost",
    "pairwise_misranking",
    "precision",
    "rank_loss",
    "rank_loss_scorer",
    "ranking",
    "recall",
    "roc_curve",
    "root_mean_squared_error",
    "stability_bound",
    "stability_bounds",
    "t_interval",
    "t_interval_of",
    "weighted_auc",
    "weighted_misranking",
    "weighted_squared_difference",
]
