"""All contracts of this version, gathered from the modules of each subject."""

from __future__ import annotations

from spark_rank.tables.experiments import (
    EXPERIMENT_CLAIMS,
    EXPERIMENT_RESULTS,
    EXPERIMENT_SUMMARY,
    THEOREMS,
)
from spark_rank.tables.features import (
    ITEM_FEATURES,
    PANEL,
    REVIEWER_RATINGS,
)
from spark_rank.tables.lists import (
    AGGREGATE,
    MAJORITIES,
    RANKINGS,
    RECOMMENDATIONS,
)
from spark_rank.tables.metrics import (
    BOUNDS,
    COMPARISON,
    LIST_METRICS,
    METRIC_COLUMNS,
    METRICS,
    PREDICTIONS,
    ROC,
    SHOWN_METRICS,
    SUMMARY,
)
from spark_rank.tables.models import (
    CHANGES,
    ENSEMBLE_CURVE,
    ENSEMBLE_DIVERSITY,
    ENSEMBLE_METRICS,
    ENSEMBLE_MODELS,
    FINAL_ITEM_FEATURES,
    FINAL_MODELS,
    FINAL_TABLES,
    MODELS,
    TUNING,
)
from spark_rank.tables.ratings import (
    BLOCKS,
    GIVEN_FEATURES,
    ITEM_CONTENT,
    ITEM_COUNTS,
    ITEMS,
    QUARANTINE,
    RATING_SCALE,
    RATINGS,
    SYNTHETIC,
    TITLES,
    USERS,
)

__all__ = [
    "AGGREGATE",
    "BLOCKS",
    "BOUNDS",
    "CHANGES",
    "COMPARISON",
    "ENSEMBLE_CURVE",
    "ENSEMBLE_DIVERSITY",
    "ENSEMBLE_METRICS",
    "ENSEMBLE_MODELS",
    "EXPERIMENT_CLAIMS",
    "EXPERIMENT_RESULTS",
    "EXPERIMENT_SUMMARY",
    "FINAL_ITEM_FEATURES",
    "FINAL_MODELS",
    "FINAL_TABLES",
    "GIVEN_FEATURES",
    "ITEMS",
    "ITEM_CONTENT",
    "ITEM_COUNTS",
    "ITEM_FEATURES",
    "LIST_METRICS",
    "MAJORITIES",
    "METRICS",
    "METRIC_COLUMNS",
    "MODELS",
    "PANEL",
    "PREDICTIONS",
    "QUARANTINE",
    "RANKINGS",
    "RATINGS",
    "RATING_SCALE",
    "RECOMMENDATIONS",
    "REVIEWER_RATINGS",
    "ROC",
    "SHOWN_METRICS",
    "SUMMARY",
    "SYNTHETIC",
    "TABLES",
    "THEOREMS",
    "TITLES",
    "TUNING",
    "USERS",
]

TABLES = {
    contract.table: contract
    for contract in (
        SYNTHETIC, RATINGS, USERS, ITEMS, QUARANTINE, RATING_SCALE, TITLES, ITEM_CONTENT,
        GIVEN_FEATURES, BLOCKS, ITEM_COUNTS, PANEL, REVIEWER_RATINGS, ITEM_FEATURES, TUNING,
        CHANGES, MODELS, ENSEMBLE_MODELS, ENSEMBLE_CURVE, ENSEMBLE_METRICS, ENSEMBLE_DIVERSITY,
        METRICS, SUMMARY, SHOWN_METRICS, COMPARISON, ROC, BOUNDS, LIST_METRICS, RANKINGS,
        MAJORITIES, AGGREGATE,
        *FINAL_TABLES.values(), PREDICTIONS, RECOMMENDATIONS, THEOREMS, EXPERIMENT_RESULTS,
        EXPERIMENT_SUMMARY, EXPERIMENT_CLAIMS,
    )
}  # fmt: skip
