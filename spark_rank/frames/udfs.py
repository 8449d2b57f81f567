"""Training and scoring as pandas UDFs, for users' own queries.

Stages use `mapInArrow` and cogroups, which do the same work in 1/1.1 to 1/1.3 of the time
(`benchmarks/udf_kinds.py`). A test checks that all give the same values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import functions as F

from spark_rank.features.files import FeatureFiles, open_distributed, place_of_files
from spark_rank.tables.contract import arrow_schema, ddl
from spark_rank.tables.contracts import BLOCKS, MODELS
from spark_rank.users.held_out import HeldOut, predictions
from spark_rank.users.learning import LearnJob, learn_batches
from spark_rank.users.predicting import NEW, SCORED_BY, SCORED_SCHEMA, PairJob, pair_predictions

# the columns of a block that `train_udf` takes, in order
TRAINED_FROM = ("user", "user_id", "items", "ratings", "n_train", "bucket")
_BLOCK = pa.schema([arrow_schema(BLOCKS.columns).field(name) for name in TRAINED_FROM])
_pandas_udf: Any = F.pandas_udf  # its overloads have no iterators of frames

__all__ = ["SCORED_BY", "TRAINED_FROM", "predict_udf", "score_udf", "train_udf"]


def train_udf(job: LearnJob) -> Any:
    """Return a pandas UDF from a block's columns to the model row of one learner, as a struct.

    ``blocks.select(train_udf(job)(*TRAINED_FROM).alias("model")).select("model.*")`` has the rows
    of the table `models`.
    """
    if len(job.specs) != 1:
        raise ValueError(f"a UDF trains one learner, not {len(job.specs)}: make a UDF for each")

    def train(parts: Iterator[tuple[pd.Series, ...]]) -> Iterator[pd.DataFrame]:
        for series in parts:
            columns = [
                pa.Array.from_pandas(column, type=field.type)
                for column, field in zip(series, _BLOCK, strict=True)
            ]
            batch = pa.RecordBatch.from_arrays(columns, schema=_BLOCK)
            (models,) = learn_batches(iter([batch]), job)
            yield models.to_pandas()

    return _pandas_udf(train, ddl(MODELS.columns))


def score_udf(files: FeatureFiles) -> Any:
    """Return a pandas UDF from a model, as a struct, and an item number to the item's score.

    Call it as ``score_udf(files)(F.struct(*SCORED_BY), "item")``. The score is null where the
    model failed. The struct may lack columns in which no model has a value, such as those of
    ensembles.
    """

    def score(parts: Iterator[tuple[pd.DataFrame, pd.Series]]) -> Iterator[pd.Series]:
        features = open_distributed(files)
        for models, items in parts:
            rows = _model_rows(models)
            size = len(rows)
            one_each = HeldOut(
                pa.array([""] * size), items.to_numpy(np.int32), np.zeros(size, np.float32),
                np.arange(size + 1),
            )  # fmt: skip
            score_lists = predictions(rows, one_each, features, None).scores
            yield pd.Series(
                [None if scores is None else scores[0] for scores in score_lists.to_pylist()],
                dtype=float,
            )

    return _pandas_udf(score, "double")


def predict_udf(job: PairJob) -> Any:
    """Return a pandas UDF from a user id, the model as a struct and an item number to a rating.

    Call it as ``predict_udf(job)("user_id", F.struct(*SCORED_BY), "item")``, with a null model for
    a new user and a null number for a new item. Learners that only order items give the score.
    """

    def predict(
        parts: Iterator[tuple[pd.Series, pd.DataFrame, pd.Series]],
    ) -> Iterator[pd.Series]:
        for users, models, items in parts:
            ids = pa.Array.from_pandas(users, type=pa.string())
            numbers = items.fillna(NEW).to_numpy(np.int64)
            rows = _model_rows(models)
            yield pd.Series(pair_predictions(ids, rows, numbers, job, place_of_files()))

    return _pandas_udf(predict, "double")


def _model_rows(models: pd.DataFrame) -> pa.RecordBatch:
    columns = [
        pa.Array.from_pandas(models[field.name], type=field.type) if field.name in models
        else pa.nulls(len(models), field.type)
        for field in SCORED_SCHEMA
    ]  # fmt: skip
    return pa.RecordBatch.from_arrays(columns, schema=SCORED_SCHEMA)
