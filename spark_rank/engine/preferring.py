"""Puts users' held-out items in order by a preference: what a Spark worker does with a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_rank.data.contracts import arrow_schema
from spark_rank.data.tables import RANKINGS
from spark_rank.engine.batches import build_batch, ragged
from spark_rank.engine.stored_models import stored_model
from spark_rank.features.files import FeatureFiles, ItemFeatures, open_distributed
from spark_rank.preference import (
    Counted,
    Preference,
    degree_rank,
    from_scores,
    from_votes,
    preference_loss,
    quicksort_rank,
    ranking_loss,
)

_SCHEMA = arrow_schema(RANKINGS.columns)
VOTES, MEMBERS = "votes", "members"

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class RankJob:
    """How items are ordered: preference, method, how many; and the files with the item ids."""

    preference: str
    method: str
    top: int | None
    files: FeatureFiles


def rank_batches(
    batches: Iterator[pa.RecordBatch],
    job: RankJob,
    open_features: Callable[[FeatureFiles], ItemFeatures] = open_distributed,
) -> Iterator[pa.RecordBatch]:
    """Turn users with ``items, ratings, scores, draw`` into rankings.

    `scores` holds every asked learner's scores of the items, one learner after the other; `draw`
    seeds the user's pivots. Where members are asked there are the `SCORING_COLUMNS` too.
    """
    features = open_features(job.files)
    item_ids = features.item_ids
    for batch in batches:
        items, ends = ragged(batch.column("items"))
        ratings, _ = ragged(batch.column("ratings"))
        scores, score_ends = ragged(batch.column("scores"))
        draws = batch.column("draw").to_numpy().view(np.uint64)
        rows = []
        for user, user_id in enumerate(batch.column("user_id").to_pylist()):
            own = slice(ends[user], ends[user + 1])
            size = ends[user + 1] - ends[user]
            by_learner = scores[score_ends[user] : score_ends[user + 1]].astype(np.float64)
            by_voter = by_learner.reshape(-1, size) if size else np.empty((1, 0))
            # who was not learned has no members: the scores of the fallback decide
            if job.preference == MEMBERS and batch.column("members")[user].is_valid:
                model = stored_model(batch, user, item_ids)
                by_voter = model.member_scores(features, items[own])
            row = rank_items(
                by_voter,
                ratings[own].astype(np.float64),
                np.random.default_rng(int(draws[user])),
                job,
            )
            order = np.array(row.pop("order"), dtype=np.int64)
            rows.append({"user_id": user_id, "items": item_ids.take(pa.array(items[own][order])),
                         "n_items": size, **row})  # fmt: skip
        yield build_batch(rows, _SCHEMA)


def rank_items(
    scores: FloatArray, ratings: FloatArray, rng: np.random.Generator, job: RankJob
) -> dict[str, Any]:
    """Return the order of one user's items, the questions it took, and both losses.

    Losses are against the order of the ratings, as shares of all pairs; of a beginning that `top`
    cut off there is no loss. Undefined is None.
    """
    n_items = scores.shape[1]
    of_votes = job.preference in (VOTES, MEMBERS)
    prefer: Preference = from_votes(scores) if of_votes else from_scores(scores[0])
    counted = Counted(prefer)
    if job.method == "degree":
        order = degree_rank(range(n_items), counted)
    else:
        order = quicksort_rank(range(n_items), counted, rng, top=job.top)
    truth = dict(enumerate(ratings.tolist()))
    return {
        "order": order,
        "calls": counted.calls,
        "preference_loss": preference_loss(prefer, truth),
        "ranking_loss": ranking_loss(order, truth) if len(order) == n_items else None,
    }
