"""Computes a metric user by user from ratings and any predictions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spark_rank.metrics import batch_metrics_and_roc
from spark_rank.tables.contract import Column, arrow_schema
from spark_rank.users.batches import ragged
from spark_rank.users.measuring import ROC_GRID
from spark_rank.users.rank_scale import RankScale

VALUE_COLUMNS = (
    Column("user_id", "string", "id as in the input"),
    Column("value", "double", "the metric; null where it is not defined"),
)


@dataclass(frozen=True)
class PairMetric:
    """A metric by name, with its settings; `limits` are the least and the greatest rating."""

    name: str
    top_n: int
    relevant_from: float
    epsilon: float
    scale: RankScale | None
    limits: tuple[float, float] = (-math.inf, math.inf)


def metric_values(
    batches: Iterator[pa.RecordBatch], metric: PairMetric
) -> Iterator[pa.RecordBatch]:
    """Turn rows with the lists ``ratings, predictions`` into a value per user."""
    for batch in batches:
        ratings, ends = ragged(batch.column("ratings"))
        predictions, _ = ragged(batch.column("predictions"))
        metrics, _ = batch_metrics_and_roc(
            predictions, ratings, ends,
            on_rating_scale=np.ones(len(batch), dtype=bool),
            top=metric.top_n,
            relevant_from=metric.relevant_from,
            epsilon=metric.epsilon,
            levels=None if metric.scale is None else metric.scale.levels,
            cuts=None if metric.scale is None else metric.scale.cuts,
            limits=metric.limits,
            grid=ROC_GRID,
        )  # fmt: skip
        columns = [batch.column("user_id"), pa.array(metrics[metric.name], from_pandas=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=arrow_schema(VALUE_COLUMNS))
