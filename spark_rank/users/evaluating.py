"""Scores the held-out ratings of a bucket and measures the scores: the work of one task."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_rank.features.files import FeatureFiles, ItemFeatures, open_distributed
from spark_rank.tables.contract import arrow_schema
from spark_rank.tables.contracts import PREDICTIONS
from spark_rank.users.batches import ragged
from spark_rank.users.held_out import HeldOut, held_out, in_order, predictions
from spark_rank.users.measuring import MEASURED, METRIC_SCHEMA, Measures, Predictions, measured
from spark_rank.users.rank_scale import RankScale
from spark_rank.users.shown_measuring import ShownJob, shown_rows
from spark_rank.users.stored_models import SCORING_COLUMNS

# the columns of the models that are read
MODEL_COLUMNS = (*MEASURED, *SCORING_COLUMNS, "bucket")
CURVE = "curve"
# metric rows with the user's ROC curve on the grid: single-precision numbers as bytes, which Spark
# hands on as they are, where it would go through a list number by number
MEASURED_SCHEMA = METRIC_SCHEMA.append(pa.field(CURVE, pa.binary()))
PREDICTION_SCHEMA = arrow_schema(PREDICTIONS.columns)

OpenFeatures = Callable[[FeatureFiles], ItemFeatures]


@dataclass(frozen=True)
class EvaluateJob:
    """The settings of a task: the feature files, and the settings of the metrics."""

    files: FeatureFiles
    measures: Measures


@dataclass(frozen=True)
class PredictJob:
    """The settings of a task: the feature files and the scale of ranks."""

    files: FeatureFiles
    scale: RankScale | None


def evaluate_bucket(
    blocks: pa.Table,
    models: pa.Table,
    job: EvaluateJob,
    open_features: OpenFeatures = open_distributed,
) -> Iterator[pa.RecordBatch]:
    """Yield metric rows with curves, learner by learner, users in the order of their numbers."""
    features = open_features(job.files)
    for rows, users in _models_and_users(blocks, models):
        predicted = predictions(rows, users, features, job.measures.scale)
        yield with_curves(*measured(rows, predicted, job.measures))


def shown_bucket(
    blocks: pa.Table,
    models: pa.Table,
    job: ShownJob,
    open_features: OpenFeatures = open_distributed,
) -> Iterator[pa.RecordBatch]:
    """Yield a row per user and learner as if the held-out items had been shown at random."""
    features = open_features(job.files)
    for rows, users in _models_and_users(blocks, models):
        predicted = predictions(rows, users, features, job.scale)
        yield shown_rows(rows, users, predicted, job)


def predict_bucket(
    blocks: pa.Table,
    models: pa.Table,
    job: PredictJob,
    open_features: OpenFeatures = open_distributed,
) -> Iterator[pa.RecordBatch]:
    """Yield a row per model and held-out item."""
    features = open_features(job.files)
    for rows, users in _models_and_users(blocks, models):
        predicted = predictions(rows, users, features, job.scale)
        yield _prediction_rows(rows, users, predicted, features.item_ids, job.scale)


def _models_and_users(
    blocks: pa.Table, models: pa.Table
) -> Iterator[tuple[pa.RecordBatch, HeldOut]]:
    """Yield the models of one learner with the held-out ratings of the same users."""
    by_learner = [
        models.filter(pc.equal(models.column("learner"), label)).combine_chunks()
        for label in sorted(pc.unique(models.column("learner")).to_pylist())
    ]
    for batch in in_order(blocks):
        users = held_out(batch)
        for table in by_learner:
            places = pc.index_in(users.users, table.column("user_id"))
            with_model = np.flatnonzero(places.is_valid())
            if len(with_model):
                rows = table.take(places.drop_null()).combine_chunks().to_batches()[0]
                yield rows, users.of(with_model)


def with_curves(rows: pa.RecordBatch, curves: NDArray[np.float32]) -> pa.RecordBatch:
    """Add the column of curves to the metric rows; a user without a curve has null."""
    width = curves.shape[1] * curves.itemsize
    fixed = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(width), len(curves), [None, pa.py_buffer(np.ascontiguousarray(curves))]
    )
    defined = pa.array(~np.isnan(curves[:, 0]))
    column = pc.if_else(defined, fixed.cast(pa.binary()), None)
    return pa.RecordBatch.from_arrays([*rows.columns, column], schema=MEASURED_SCHEMA)


def _prediction_rows(
    models: pa.RecordBatch,
    users: HeldOut,
    predicted: Predictions,
    item_ids: pa.StringArray,
    scale: RankScale | None,
) -> pa.RecordBatch:
    sizes = np.diff(users.ends)
    model_of_row = np.repeat(np.arange(len(models)), sizes)
    scored = np.repeat(np.asarray(predicted.scores.is_valid()), sizes)
    ranked = np.repeat(np.asarray(predicted.ranks.is_valid()), sizes)
    scores, ranks = np.full((2, len(model_of_row)), np.nan)
    scores[scored], ranks[ranked] = ragged(predicted.scores)[0], ragged(predicted.ranks)[0]
    on_scale = models.column("on_rating_scale").fill_null(False).to_numpy(zero_copy_only=False)
    ratings = np.where(on_scale.astype(bool)[model_of_row], scores, np.nan)
    if scale is not None and ranked.any():
        ratings[ranked] = scale.ratings(ranks[ranked].astype(np.int64))
    by_model = pa.array(model_of_row)
    columns = {
        "user_id": models.column("user_id").take(by_model),
        "learner": models.column("learner").take(by_model),
        "item_id": item_ids.take(pa.array(users.items)),
        "rating": users.ratings,
        "score": pa.array(scores, from_pandas=True),
        "predicted_rank": pa.array(ranks, from_pandas=True).cast(pa.int32()),
        "predicted_rating": pa.array(ratings, from_pandas=True),
        "bucket": models.column("bucket").take(by_model),
    }
    return pa.RecordBatch.from_pydict(columns, schema=PREDICTION_SCHEMA)
