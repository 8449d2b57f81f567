"""Computes the metrics of a batch of models from their held-out scores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_rank.metrics import (
    TRAINING_METRICS,
    batch_metrics_and_roc,
    batch_training_metrics,
)
from spark_rank.tables.contract import arrow_schema
from spark_rank.tables.contracts import METRIC_COLUMNS, METRICS
from spark_rank.users.batches import ragged
from spark_rank.users.generalization import BoundFacts, bound_columns
from spark_rank.users.rank_scale import RankScale
from spark_rank.users.user_groups import UserGroups

METRIC_NAMES = tuple(column.name for column in METRIC_COLUMNS)
HIGHER_IS_BETTER = frozenset({"exact_rank", "auc", "ndcg", "precision", "recall",
                              "average_precision"})  # fmt: skip
METRIC_SCHEMA = arrow_schema(METRICS.columns)
# the columns of the models that measuring needs beyond those of scoring
MEASURED = ("user_id", "learner", "status", "reason", "n_train", "n_test", "norm",
            "expected_norm", "train_msd", "train_m1d", "train_misranking",
            "train_margin_loss")  # fmt: skip
# metrics that a learner of ranks gets from the levels of its predicted ranks
_ON_THE_RATING_SCALE = ("msd", "m1d", "rmse", "mae", "hmp1", "hmp2", "svr1", "svr2", "rank_loss",
                        "exact_rank")  # fmt: skip

# the label of held-out ratings of items that users chose to rate
CHOSEN = "chosen"
ROC_GRID = np.linspace(0.0, 1.0, 21)


@dataclass(frozen=True)
class Measures:
    """The settings of the metrics; `limits` are the least and the greatest rating.

    `test` says what the held-out ratings are, of chosen or of random items.
    """

    top_n: int
    relevant_from: float
    epsilon: float
    scale: RankScale | None
    bounds: BoundFacts
    groups: UserGroups
    limits: tuple[float, float] = (-math.inf, math.inf)
    test: str = CHOSEN


def with_training_metrics(
    rows: Sequence[dict[str, Any]], margin: float
) -> Sequence[dict[str, Any]]:
    """Add the training metrics to the model rows that have `training`: scores and ratings.

    Null where undefined, also where scores are not on the rating scale and differences from
    ratings mean nothing. All rows are measured in one compiled call.
    """
    measured = [row for row in rows if "training" in row]
    if not measured:
        return rows
    scores, ratings = zip(*[row["training"] for row in measured], strict=True)
    metrics = batch_training_metrics(
        np.concatenate(scores), np.concatenate(ratings),
        np.cumsum([0, *map(len, scores)]),
        on_rating_scale=[row["on_rating_scale"] for row in measured],
        # only the margin bound uses it, which needs a norm
        with_margin=["norm" in row for row in measured], rho=margin,
    )  # fmt: skip
    for name in TRAINING_METRICS:
        for row, value in zip(measured, metrics[name].tolist(), strict=True):
            if not math.isnan(value):
                row[f"train_{name}"] = value
    return rows


@dataclass(frozen=True)
class Predictions:
    """Held-out ratings, scores and predicted ranks: a list per model, null if there are none."""

    ratings: pa.ListArray
    scores: pa.ListArray
    ranks: pa.ListArray


def measured(
    models: pa.RecordBatch, predicted: Predictions, measures: Measures
) -> tuple[pa.RecordBatch, NDArray[np.float32]]:
    """Return the metric rows of some models, and their ROC curves on the grid, NaN if undefined."""
    on_scale = _filled(models, "on_rating_scale")
    metrics, curves = _metrics(*_held_out(predicted), on_scale, measures)
    metrics = _with_predicted_ranks(predicted, metrics, measures)
    columns = {**metrics, **bound_columns(models, measures.bounds)}
    return _metric_rows(models, columns, measures), curves


def _metrics(
    scores: NDArray[np.floating[Any]],
    ratings: NDArray[np.floating[Any]],
    ends: NDArray[np.int64],
    on_rating_scale: NDArray[np.bool_],
    measures: Measures,
) -> tuple[dict[str, NDArray[np.float64]], NDArray[np.float32]]:
    return batch_metrics_and_roc(
        scores, ratings, ends,
        on_rating_scale=on_rating_scale,
        top=measures.top_n,
        relevant_from=measures.relevant_from,
        epsilon=measures.epsilon,
        levels=None if measures.scale is None else measures.scale.levels,
        cuts=None if measures.scale is None else measures.scale.cuts,
        limits=measures.limits,
        grid=ROC_GRID,
    )  # fmt: skip


def _with_predicted_ranks(
    predicted: Predictions, metrics: dict[str, NDArray[np.float64]], measures: Measures
) -> dict[str, NDArray[np.float64]]:
    """Replace metrics on the rating scale, for learners of ranks, by those of the predicted levels.

    Their scores are only comparable with their thresholds, and are used for the order alone.
    """
    predicts = pc.is_valid(predicted.ranks).to_numpy(zero_copy_only=False)
    if measures.scale is None or not predicts.any():
        return metrics
    ranks, ends = ragged(predicted.ranks.filter(pa.array(predicts)))
    ratings, _ = ragged(predicted.ratings.filter(pa.array(predicts)))
    levels = measures.scale.ratings(ranks)
    scales = np.ones(len(ends) - 1, dtype=bool)
    by_rank, _ = _metrics(levels, ratings, ends, scales, measures)
    for name in _ON_THE_RATING_SCALE:
        metrics[name][predicts] = by_rank[name]
    return metrics


def _held_out(
    predicted: Predictions,
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int64]]:
    """Return scores, ratings and ends; users whose model failed have no items."""
    ratings = predicted.ratings
    if predicted.scores.null_count:
        ratings = pc.if_else(pc.is_valid(predicted.scores), ratings, None)
    flat, ends = ragged(predicted.scores)
    return flat, ragged(ratings)[0], ends


def _filled(batch: pa.RecordBatch, name: str) -> NDArray[np.bool_]:
    values = batch.column(name).fill_null(False).to_numpy(zero_copy_only=False)
    return np.asarray(values, dtype=bool)


def _metric_rows(
    batch: pa.RecordBatch, metrics: Mapping[str, NDArray[np.float64]], measures: Measures
) -> pa.RecordBatch:
    groups = measures.groups.of(batch.column("n_train").to_numpy()).cast(pa.string())
    batch = batch.append_column("user_group", groups)
    batch = batch.append_column("test", pa.repeat(measures.test, len(batch)))
    columns = [
        pa.array(metrics[field.name], from_pandas=True)  # NaN, undefined, becomes null
        if field.name in metrics
        else batch.column(field.name)
        for field in METRIC_SCHEMA
    ]
    return pa.RecordBatch.from_arrays(columns, schema=METRIC_SCHEMA)
