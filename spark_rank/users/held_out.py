"""Scores of held-out items: a user's block and models, brought together where they are needed."""

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

# users whose held-out items are scored at once
USERS_AT_ONCE = 2048

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class HeldOut:
    """Users' held-out items and ratings end to end; user u owns ends[u] to ends[u + 1]."""

    users: pa.StringArray
    items: NDArray[np.int32]
    ratings: NDArray[np.float32]
    ends: IntArray

    def of(self, places: IntArray) -> HeldOut:
        """Return the users at some places, in this order; a user may come several times."""
        sizes = np.diff(self.ends)[places]
        ends = np.concatenate([[0], np.cumsum(sizes)])
        taken = np.arange(ends[-1]) - np.repeat(ends[:-1] - self.ends[:-1][places], sizes)
        return HeldOut(
            self.users.take(pa.array(places)), self.items[taken], self.ratings[taken], ends
        )


def held_out(blocks: pa.RecordBatch) -> HeldOut:
    """Return what blocks hold behind the training part."""
    items, ends = ragged(blocks.column("items"))
    ratings, _ = ragged(blocks.column("ratings"))
    n_train = blocks.column("n_train").to_numpy()
    sizes = np.diff(ends)
    left = np.arange(len(items)) - np.repeat(ends[:-1], sizes) >= np.repeat(n_train, sizes)
    own_ends = np.concatenate([[0], np.cumsum(sizes - n_train)])
    return HeldOut(blocks.column("user_id"), items[left], ratings[left], own_ends)


def in_order(blocks: pa.Table, users: int = USERS_AT_ONCE) -> Iterator[pa.RecordBatch]:
    """Yield the blocks in the order of their users, at most so many at a time."""
    for start in range(0, len(blocks), users):
        if start == 0:
            blocks = blocks.sort_by("user")
        yield blocks.slice(start, users).combine_chunks().to_batches()[0]


def predictions(
    models: pa.RecordBatch, own: HeldOut, features: ItemFeatures, scale: RankScale | None
) -> Predictions:
    """Return what every model predicts of its user's held-out items.

    `own` has the models' users in the same order. A model that failed, or with a score beyond all
    numbers, has no scores; one that predicts no ranks has no ranks.
    """
    known = np.asarray(pc.not_equal(models.column("status"), FAILED))
    scores = _scores(models, own, features, known)
    with np.errstate(over="ignore"):
        stored = scores.astype(np.float32)
    known = known & _finite(stored, own.ends)
    ranks, ranked = _ranks(models, own, scores, scale, known)
    everybody = np.ones(len(models), dtype=bool)
    return Predictions(
        _lists(own.ratings, own.ends, everybody),
        _lists(stored, own.ends, known),
        _lists(ranks, own.ends, ranked),
    )


def _scores(
    models: pa.RecordBatch, own: HeldOut, features: ItemFeatures, known: NDArray[np.bool_]
) -> FloatArray:
    linear = linear_rows(models) & known
    scores = _products(models, linear, own, features)
    sizes = np.diff(own.ends)
    offset = np.asarray(features.offset[own.items], dtype=np.float64)
    scores += np.repeat(column(models, "offset_weight"), sizes) * offset
    scores += np.repeat(column(models, "intercept"), sizes)
    others = np.flatnonzero(known & ~linear)
    if len(others):
        stored = StoredModels(models, features.item_ids)
        for row in others.tolist():
            places = slice(own.ends[row], own.ends[row + 1])
            scores[places] = stored[row].scores(features, own.items[places])
    return np.asarray(scores)


def _products(
    models: pa.RecordBatch, linear: NDArray[np.bool_], own: HeldOut, features: ItemFeatures
) -> FloatArray:
    """Return w·x for every item of linear models, 0 for others: one compiled call."""
    width = features.matrix.shape[1]
    if width == 0:
        return np.zeros(len(own.items))
    matrix, rows = gatherable(features.matrix, own.items)
    weights = weight_matrix(models, linear, width)
    excluded = np.full(len(models), -1)  # the weight of such a column is 0 already
    return np.asarray(expected_scores(matrix, rows, excluded, weights, own.ends))


def _finite(scores: NDArray[np.float32], ends: IntArray) -> NDArray[np.bool_]:
    """Return whether all scores of a model are numbers."""
    beyond = np.concatenate([[0], np.cumsum(~np.isfinite(scores))])
    return np.asarray(beyond[ends[1:]] == beyond[ends[:-1]])


def _ranks(
    models: pa.RecordBatch,
    own: HeldOut,
    scores: FloatArray,
    scale: RankScale | None,
    known: NDArray[np.bool_],
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    ranks = np.zeros(len(scores), dtype=np.int32)
    ranked = has_ranks(models) & known & (scale is not None)
    for row in np.flatnonzero(ranked).tolist():
        places = slice(own.ends[row], own.ends[row + 1])
        ranks[places] = rank_rule(models, row).ranks(scores[places])
    return ranks, ranked


def _lists(values: NDArray[Any], ends: IntArray, there: NDArray[np.bool_]) -> pa.ListArray:
    """Return a list a row; null where there is none."""
    offsets = pa.array(ends.astype(np.int32))
    return pa.ListArray.from_arrays(offsets, pa.array(values), mask=pa.array(~there))
