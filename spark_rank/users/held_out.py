"""Scores held-out items: takes them from user blocks and applies the users' models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_rank.features.expected import expected_scores
from spark_rank.features.files import ItemFeatures
from spark_rank.features.gathering import gatherable
from spark_rank.users.batches import ragged
from spark_rank.users.learning import FAILED
from spark_rank.users.measuring import Predictions
from spark_rank.users.rank_scale import RankScale
from spark_rank.users.stored_models import (
    StoredModels,
    column,
    has_ranks,
    linear_rows,
    rank_rule,
    weight_matrix,
)

# users whose held-out items are scored in one batch
USERS_AT_ONCE = 2048

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class HeldOut:
    """Users' held-out items and ratings end to end; those of user u are ends[u] to ends[u + 1]."""

    users: pa.StringArray
    items: NDArray[np.int32]
    ratings: NDArray[np.float32]
    ends: IntArray

    def of(self, places: IntArray) -> HeldOut:
        """Return the users at some positions, in this order; a user may occur several times."""
        sizes = np.diff(self.ends)[places]
        ends = np.concatenate([[0], np.cumsum(sizes)])
        taken = np.arange(ends[-1]) - np.repeat(ends[:-1] - self.ends[:-1][places], sizes)
        return HeldOut(
            self.users.take(pa.array(places)), self.items[taken], self.ratings[taken], ends
        )


def held_out(blocks: pa.RecordBatch) -> HeldOut:
    """Return the held-out part of each block."""
    items, ends = ragged(blocks.column("items"))
    ratings, _ = ragged(blocks.column("ratings"))
    n_train = blocks.column("n_train").to_numpy()
    sizes = np.diff(ends)
    is_held_out = np.arange(len(items)) - np.repeat(ends[:-1], sizes) >= np.repeat(n_train, sizes)
    held_out_ends = np.concatenate([[0], np.cumsum(sizes - n_train)])
    return HeldOut(
        blocks.column("user_id"), items[is_held_out], ratings[is_held_out], held_out_ends
    )


def in_order(blocks: pa.Table, users: int = USERS_AT_ONCE) -> Iterator[pa.RecordBatch]:
    """Yield the blocks in the order of the user numbers, at most `users` at a time."""
    for start in range(0, len(blocks), users):
        if start == 0:
            blocks = blocks.sort_by("user")
        yield blocks.slice(start, users).combine_chunks().to_batches()[0]


def predictions(
    models: pa.RecordBatch, users: HeldOut, features: ItemFeatures, scale: RankScale | None
) -> Predictions:
    """Return the scores and ranks that every model predicts for its user's held-out items.

    `users` has the models' users in the same order. A model that failed, or with a score that is
    not finite, has null scores; one that predicts no ranks has null ranks.
    """
    has_scores = np.asarray(pc.not_equal(models.column("status"), FAILED))
    scores = _scores(models, users, features, has_scores)
    with np.errstate(over="ignore"):
        stored_scores = scores.astype(np.float32)
    has_scores = has_scores & _finite(stored_scores, users.ends)
    ranks, predicts_ranks = _ranks(models, users, scores, scale, has_scores)
    all_models = np.ones(len(models), dtype=bool)
    return Predictions(
        _lists(users.ratings, users.ends, all_models),
        _lists(stored_scores, users.ends, has_scores),
        _lists(ranks, users.ends, predicts_ranks),
    )


def _scores(
    models: pa.RecordBatch, users: HeldOut, features: ItemFeatures, has_scores: NDArray[np.bool_]
) -> FloatArray:
    linear = linear_rows(models) & has_scores
    scores = _products(models, linear, users, features)
    sizes = np.diff(users.ends)
    offset = np.asarray(features.offset[users.items], dtype=np.float64)
    scores += np.repeat(column(models, "offset_weight"), sizes) * offset
    scores += np.repeat(column(models, "intercept"), sizes)
    others = np.flatnonzero(has_scores & ~linear)
    if len(others):
        stored = StoredModels(models, features.item_ids)
        for row in others.tolist():
            places = slice(users.ends[row], users.ends[row + 1])
            scores[places] = stored[row].scores(features, users.items[places])
    return np.asarray(scores)


def _products(
    models: pa.RecordBatch, linear: NDArray[np.bool_], users: HeldOut, features: ItemFeatures
) -> FloatArray:
    """Return w·x for every item of the linear models, 0 for others, in one compiled call."""
    width = features.matrix.shape[1]
    if width == 0:
        return np.zeros(len(users.items))
    matrix, rows = gatherable(features.matrix, users.items)
    weights = weight_matrix(models, linear, width)
    excluded = np.full(
        len(models), -1
    )  # `weight_matrix` has set the weights of excluded columns to 0
    return np.asarray(expected_scores(matrix, rows, excluded, weights, users.ends))


def _finite(scores: NDArray[np.float32], ends: IntArray) -> NDArray[np.bool_]:
    """Return whether all scores of each model are finite."""
    not_finite = np.concatenate([[0], np.cumsum(~np.isfinite(scores))])
    return np.asarray(not_finite[ends[1:]] == not_finite[ends[:-1]])


def _ranks(
    models: pa.RecordBatch,
    users: HeldOut,
    scores: FloatArray,
    scale: RankScale | None,
    has_scores: NDArray[np.bool_],
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    ranks = np.zeros(len(scores), dtype=np.int32)
    predicts_ranks = has_ranks(models) & has_scores & (scale is not None)
    for row in np.flatnonzero(predicts_ranks).tolist():
        places = slice(users.ends[row], users.ends[row + 1])
        ranks[places] = rank_rule(models, row).ranks(scores[places])
    return ranks, predicts_ranks


def _lists(values: NDArray[Any], ends: IntArray, is_valid: NDArray[np.bool_]) -> pa.ListArray:
    """Return a list per row; null where `is_valid` is false."""
    offsets = pa.array(ends.astype(np.int32))
    return pa.ListArray.from_arrays(offsets, pa.array(values), mask=pa.array(~is_valid))
