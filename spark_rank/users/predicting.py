"""Predictions for pairs of a user and an item, also for users and items that nobody knows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_rank.features.files import FeatureFiles, ItemFeatures, open_files
from spark_rank.tables.contract import arrow_schema
from spark_rank.tables.contracts import ENSEMBLE_MODELS
from spark_rank.users.batches import build_batch, ragged
from spark_rank.users.held_out import HeldOut, predictions
from spark_rank.users.learning import FAILED, FALLBACK
from spark_rank.users.rank_scale import RankScale
from spark_rank.users.specs import LearnerSpec
from spark_rank.users.stored_models import SCORING_COLUMNS

# the columns of a model that scoring takes
SCORED_BY = ("status", *SCORING_COLUMNS)
SCORED_SCHEMA = pa.schema([arrow_schema(ENSEMBLE_MODELS.columns).field(name) for name in SCORED_BY])
NEW = -1

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class PairJob:
    """What a worker needs to know: feature files, the scale of ranks, the model of new users.

    `newcomer` is that model as the bytes of an Arrow file with the columns `SCORED_BY`.
    """

    files: FeatureFiles
    scale: RankScale | None
    newcomer: bytes


def newcomer_model(
    features: ItemFeatures, spec: LearnerSpec, scale: RankScale | None, level: float
) -> pa.RecordBatch:
    """Return what is expected of a user without a rating, as a model.

    `level` is how far ratings lie above the item offset and the expected weights.
    """
    row = {
        "status": FALLBACK,
        "on_rating_scale": spec.kind.on_rating_scale,
        "intercept": level,
        "offset_weight": 1.0,
    }
    expected = features.expected_weights(np.empty(0, dtype=np.int32))
    if expected is not None:
        row["weights"] = expected
    if spec.kind.of_ranks and scale is not None:
        row["thresholds"] = scale.thresholds()
    return build_batch([row], SCORED_SCHEMA)


def as_bytes(model: pa.RecordBatch) -> bytes:
    """Return a batch as the bytes of an Arrow file."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, model.schema) as writer:
        writer.write_batch(model)
    return bytes(sink.getvalue().to_pybytes())


def pair_predictions(
    users: pa.StringArray, models: pa.RecordBatch, items: IntArray, job: PairJob, folder: str
) -> FloatArray:
    """Return the rating predicted for every pair; of learners of an order alone the score.

    `models` has a row per pair, null where the user is not known; `items` are numbers, or `NEW`.
    A new user, or one whose model failed, is scored by the newcomer's model; a new item is an
    average one without an offset.
    """
    features = open_files(job.files, folder)
    if (items == NEW).any():
        features = _with_new_item(job.files, folder)
        items = np.where(items == NEW, len(features.offset) - 1, items)
    newcomer = pa.ipc.open_file(job.newcomer).get_batch(0)
    known = pc.fill_null(pc.not_equal(models.column("status"), FAILED), False).to_numpy(
        zero_copy_only=False
    )
    rows, owner = _one_row_each(users, models, known, newcomer)
    found = _predicted(rows, owner, items, features, job.scale)
    missing = np.isnan(found)
    if missing.any():
        last = np.full(int(missing.sum()), len(rows) - 1)
        found[missing] = _predicted(rows, last, items[missing], features, job.scale)
    return found


def _one_row_each(
    users: pa.StringArray,
    models: pa.RecordBatch,
    known: NDArray[np.bool_],
    newcomer: pa.RecordBatch,
) -> tuple[pa.RecordBatch, IntArray]:
    """Return every user's model once, the newcomer's last, and the place of each pair's."""
    encoded = users.dictionary_encode().indices.fill_null(-1).to_numpy().astype(np.int64)
    codes, first, place = np.unique(
        np.where(known, encoded, -1), return_index=True, return_inverse=True
    )
    own = codes >= 0
    rows = pa.Table.from_batches([models.take(pa.array(first[own])), newcomer])
    owner = place - (len(codes) - int(own.sum()))
    owner[~known] = len(rows) - 1
    return rows.combine_chunks().to_batches()[0], owner


def _predicted(
    rows: pa.RecordBatch,
    owner: IntArray,
    items: IntArray,
    features: ItemFeatures,
    scale: RankScale | None,
) -> FloatArray:
    order = np.argsort(owner, kind="stable")
    sizes = np.bincount(owner, minlength=len(rows))
    ends = np.concatenate([[0], np.cumsum(sizes)])
    asked = HeldOut(
        pa.array([""] * len(rows)), items[order].astype(np.int32),
        np.zeros(len(items), dtype=np.float32), ends,
    )  # fmt: skip
    back = np.empty(len(items))
    back[order] = predicted_values(rows, asked, features, scale)
    return back


def predicted_values(
    models: pa.RecordBatch, asked: HeldOut, features: ItemFeatures, scale: RankScale | None
) -> FloatArray:
    """Return the rating that every model predicts of its items, end to end.

    Learners of ranks predict the level of the rank, learners of an order alone their score; NaN
    where a model failed or its score is no number.
    """
    found = predictions(models, asked, features, scale)
    sizes = np.diff(asked.ends)
    values = np.full(len(asked.items), np.nan)
    scored = np.repeat(np.asarray(found.scores.is_valid()), sizes)
    values[scored] = ragged(found.scores)[0]
    if scale is not None and found.ranks.null_count < len(models):
        ranked = np.repeat(np.asarray(found.ranks.is_valid()), sizes)
        values[ranked] = scale.ratings(ragged(found.ranks)[0])
    return values


@lru_cache(maxsize=2)
def _with_new_item(files: FeatureFiles, folder: str) -> ItemFeatures:
    """Return the features with an item more: an average one, without an offset."""
    features = open_files(files, folder)
    average = features.matrix.mean(axis=0, dtype=np.float64, keepdims=True)
    if len(features.matrix) == 0:
        average = np.zeros((1, features.matrix.shape[1]))
    return replace(
        features,
        matrix=np.vstack([features.matrix, average.astype(np.float32)]),
        offset=np.append(features.offset, 0.0),
    )
