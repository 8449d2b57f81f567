"""Measures models as if the held-out items had been shown at random, not chosen.

Every held-out rating weighs one over its propensity, and the score becomes what the curve makes of
it (`spark_rank.features.shown`). So the figures are about items that users come across by chance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_rank.features.files import FeatureFiles
from spark_rank.features.shown import propensities, shown_ratings
from spark_rank.metrics import weighted_misranking, weighted_squared_difference
from spark_rank.records.features import ShownFacts
from spark_rank.tables.contract import Column, arrow_schema
from spark_rank.tables.contracts import SHOWN_METRICS
from spark_rank.users.batches import build_batch, ragged
from spark_rank.users.held_out import HeldOut
from spark_rank.users.measuring import Predictions
from spark_rank.users.rank_scale import RankScale

Row = dict[str, Any]
Vector = NDArray[np.float64]

# of a user and learner: metrics, and sums over the held-out ratings
USER_COLUMNS = (
    Column("user_id", "string", "id as in the input"),
    Column("learner", "string", "name of the learner or baseline"),
    Column("ratings", "int", "number of held-out ratings"),
    Column("msd", "double", "weighted msd"),
    Column("misranking", "double", "weighted misranking"),
    Column("weight", "double", "sum of the weights"),
    Column("squared_weight", "double", "sum of their squares"),
    Column("error", "double", "sum of weighted errors"),
    Column("squared_error", "double", "sum of weighted squared errors"),
)
USER_SCHEMA = arrow_schema(USER_COLUMNS)


@dataclass(frozen=True)
class ShownJob:
    """The settings of a task; predictions are clipped to `limits`, the ends of the ratings."""

    files: FeatureFiles
    facts: ShownFacts
    scale: RankScale | None
    limits: tuple[float, float]


def shown_rows(
    models: pa.RecordBatch, users: HeldOut, predicted: Predictions, job: ShownJob
) -> pa.RecordBatch:
    """Return a row of `USER_COLUMNS` for every model with scores on the rating scale."""
    on_scale = models.column("on_rating_scale").fill_null(False).to_pylist()
    scores, score_ends = ragged(predicted.scores)
    columns = [models.column(name).to_pylist() for name in ("user_id", "learner", "n_train")]
    rows = []
    for place, (user, learner, n_train) in enumerate(zip(*columns, strict=True)):
        own = scores[score_ends[place] : score_ends[place + 1]].astype(np.float64)
        if not on_scale[place] or len(own) == 0:
            continue
        ratings = users.ratings[users.ends[place] : users.ends[place + 1]].astype(np.float64)
        weights = 1.0 / propensities(job.facts, ratings, n_train)
        measured = _measured(shown_ratings(job.facts, own), ratings, weights, job.limits)
        rows.append({"user_id": user, "learner": learner, "ratings": len(own), **measured})
    return build_batch(rows, USER_SCHEMA)


def _measured(scores: Vector, ratings: Vector, weights: Vector, limits: tuple[float, float]) -> Row:
    error = np.clip(scores, *limits) - ratings
    return {
        "msd": weighted_squared_difference(scores, ratings, weights),
        "misranking": weighted_misranking(scores, ratings, weights),
        "weight": math.fsum(weights),
        "squared_weight": math.fsum(weights**2),
        "error": math.fsum(weights * error),
        "squared_error": math.fsum(weights * error**2),
    }


def shown_summary(rows: pa.Table) -> pa.Table:
    """Return the table `shown_metrics` from the rows of all users; their order has no effect."""
    learners = rows.column("learner").to_numpy(zero_copy_only=False)
    found = [_summary(rows.filter(pa.array(learners == name)), name) for name in _sorted(learners)]
    return pa.Table.from_pylist(found, arrow_schema(SHOWN_METRICS.columns))


def _sorted(learners: NDArray[Any]) -> Iterator[str]:
    yield from sorted(set(learners.tolist()))


def _summary(rows: pa.Table, learner: str) -> Row:
    names = ("ratings", "weight", "squared_weight", "error", "squared_error")
    sums = {name: math.fsum(rows.column(name).to_pylist()) for name in names}
    return {
        "learner": learner,
        "users": len(rows),
        "ratings": int(sums["ratings"]),
        "effective_ratings": sums["weight"] ** 2 / sums["squared_weight"],
        "msd": _mean(rows.column("msd")),
        "misranking": _mean(rows.column("misranking")),
        "rmse": math.sqrt(sums["squared_error"] / sums["weight"]),
        "mean_error": sums["error"] / sums["weight"],
    }


def _mean(column: pa.ChunkedArray) -> float | None:
    values = column.drop_null().to_pylist()
    return math.fsum(values) / len(values) if values else None
