"""From held-out scores to metrics: what a Spark worker does with a batch of models."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from numpy.typing import ArrayLike

from spark_rank.data.contracts import arrow_schema
from spark_rank.data.tables import METRICS
from spark_rank.engine.batches import build_batch, ragged
from spark_rank.metrics import (
    mean_1norm_difference,
    mean_squared_difference,
    pairwise_misranking,
)

METRIC_NAMES = ("msd", "m1d", "misranking")
METRIC_SCHEMA = arrow_schema(METRICS.columns)
_COPIED = [c.name for c in METRICS.columns if c.name not in METRIC_NAMES]


def pair_metrics(
    scores: ArrayLike, ratings: ArrayLike, *, on_rating_scale: bool
) -> dict[str, float | None]:
    """Return the per-user metrics by their column names; None where undefined.

    Differences of scores that are not on the rating scale cannot be held against ratings.
    """
    return {
        "msd": mean_squared_difference(scores, ratings) if on_rating_scale else None,
        "m1d": mean_1norm_difference(scores, ratings) if on_rating_scale else None,
        "misranking": pairwise_misranking(scores, ratings),
    }


def evaluate_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Turn model rows into metric rows."""
    for batch in batches:
        ratings, rating_ends = ragged(batch.column("test_ratings"))
        scores, score_ends = ragged(batch.column("test_scores"))
        failed = batch.column("test_scores").is_null().to_pylist()
        scales = batch.column("on_rating_scale").to_pylist()
        rows = batch.select(_COPIED).to_pylist()
        for position, row in enumerate(rows):
            if failed[position]:
                continue
            own = slice(rating_ends[position], rating_ends[position + 1])
            scored = slice(score_ends[position], score_ends[position + 1])
            metrics = pair_metrics(scores[scored], ratings[own], on_rating_scale=scales[position])
            row.update(metrics)
        yield build_batch(rows, METRIC_SCHEMA)
