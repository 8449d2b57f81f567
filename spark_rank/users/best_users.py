"""Finds the users with the highest predictions for some items: the work on one bucket."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_rank.features.files import FeatureFiles, open_distributed
from spark_rank.tables.contract import Column, arrow_schema
from spark_rank.users.batches import ragged
from spark_rank.users.held_out import HeldOut, in_order
from spark_rank.users.predicting import predicted_values
from spark_rank.users.rank_scale import RankScale

COLUMNS = (
    Column("item", "int", "dense item number"),
    Column("user_id", "string", "id as in the input"),
    Column("prediction", "double", "the predicted rating"),
)
SCHEMA = arrow_schema(COLUMNS)
_SCORES_AT_ONCE = 2**21


@dataclass(frozen=True)
class BestUsersJob:
    """The settings of a task: feature files, scale, items, and how many users to list per item.

    With `rated`, users who have rated an item are listed too.
    """

    files: FeatureFiles
    scale: RankScale | None
    items: tuple[int, ...]
    count: int
    rated: bool


def best_users_of_bucket(
    blocks: pa.Table, models: pa.Table, job: BestUsersJob
) -> Iterator[pa.RecordBatch]:
    """Yield the best users of the bucket for every item; ties are in the order of user ids."""
    features = open_distributed(job.files)
    items = np.array(job.items, dtype=np.int64)
    users_at_once = max(1, _SCORES_AT_ONCE // max(len(items), 1))
    ids: list[str] = []
    best = [np.empty(0) for _ in items]
    best_owners = [np.empty(0, dtype=np.int64) for _ in items]
    for batch in in_order(blocks, users_at_once):
        places = pc.index_in(batch.column("user_id"), models.column("user_id"))
        users = batch.filter(places.is_valid())
        if len(users) == 0:
            continue
        rows = models.take(places.drop_null()).combine_chunks().to_batches()[0]
        pairs = HeldOut(
            users.column("user_id"), np.tile(items, len(users)).astype(np.int32),
            np.zeros(len(users) * len(items), dtype=np.float32),
            np.arange(len(users) + 1) * len(items),
        )  # fmt: skip
        scores = predicted_values(rows, pairs, features, job.scale).reshape(len(users), -1)
        if not job.rated:
            _remove_rated(scores, users, items)
        user_numbers = np.arange(len(ids), len(ids) + len(users))
        ids += users.column("user_id").to_pylist()
        for column in range(len(items)):
            candidates = np.concatenate([best[column], scores[:, column]])
            owners = np.concatenate([best_owners[column], user_numbers])
            chosen = _greatest(candidates, owners, ids, job.count)
            best[column], best_owners[column] = candidates[chosen], owners[chosen]
    yield _rows(items, best, best_owners, ids)


def _remove_rated(
    scores: NDArray[np.float64], blocks: pa.RecordBatch, items: NDArray[np.int64]
) -> None:
    rated, ends = ragged(blocks.column("items"))
    rows = np.repeat(np.arange(len(blocks)), np.diff(ends))
    order = np.argsort(items)
    places = np.minimum(np.searchsorted(items, rated, sorter=order), len(items) - 1)
    columns = order[places]
    is_listed = items[columns] == rated
    scores[rows[is_listed], columns[is_listed]] = np.nan


def _greatest(
    scores: NDArray[np.float64], owners: NDArray[np.int64], ids: list[str], count: int
) -> NDArray[np.int64]:
    """Return the positions of the `count` greatest scores, the best first; NaN is skipped."""
    defined = np.flatnonzero(~np.isnan(scores))
    if len(defined) > count:
        least = np.partition(scores[defined], len(defined) - count)[len(defined) - count]
        defined = defined[scores[defined] >= least]
    in_order = sorted(defined.tolist(), key=lambda place: (-scores[place], ids[owners[place]]))
    return np.array(in_order[:count], dtype=np.int64)


def _rows(
    items: NDArray[np.int64],
    best: list[NDArray[np.float64]],
    best_owners: list[NDArray[np.int64]],
    ids: list[str],
) -> pa.RecordBatch:
    sizes = [len(scores) for scores in best]
    owners = np.concatenate([np.empty(0, dtype=np.int64), *best_owners])
    columns = [
        pa.array(np.repeat(items, sizes), pa.int32()),
        pa.array(ids, pa.string()).take(pa.array(owners)),
        pa.array(np.concatenate([np.empty(0), *best])),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
