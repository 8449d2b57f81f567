"""Models of a batch of users as rows of the table `models`, in the order of users and learners.

Users learned in one call become columns directly: a Python object per user would take longer than
learning them. All other users come as rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_rank.metrics import TRAINING_METRICS, batch_training_metrics
from spark_rank.tables.contract import arrow_schema
from spark_rank.tables.contracts import MODELS
from spark_rank.users.batches import build_batch
from spark_rank.users.measuring import with_training_metrics
from spark_rank.users.problems import ProblemGroup
from spark_rank.users.rank_scale import RankScale
from spark_rank.users.specs import LearnerSpec
from spark_rank.users.together import Together

MODEL_SCHEMA = arrow_schema(MODELS.columns)

Row = dict[str, Any]
Vector = NDArray[np.float64]


class ModelBatches:
    """Collects the models of a batch of users: a row per user and learner."""

    def __init__(self, specs: Sequence[LearnerSpec], margin: float, scale: RankScale | None):
        self._specs, self._margin, self._scale = specs, margin, scale
        self._rows: list[Row] = []
        self._row_places: list[int] = []
        self._groups: list[list[_Learned]] = [[] for _ in specs]
        self._users = 0

    def add(
        self, group: ProblemGroup, results: Sequence[Together | None], rows: Mapping[int, Row]
    ) -> None:
        """Add a group of users: per learner the result of one call, and rows of all others.

        The keys of `rows` are positions: user by user in the group, learner by learner.
        """
        width, before = len(self._specs), self._users * len(self._specs)
        for place, row in rows.items():
            self._rows.append(row)
            self._row_places.append(before + place)
        for number, result in enumerate(results):
            if result is not None:
                places = before + number + width * np.arange(len(result.learned))
                self._groups[number].append(_Learned.of(group, result, places))
        self._users += len(group.blocks.users)

    def in_order(self) -> pa.RecordBatch:
        """Return all rows, users in the order in which they were added."""
        parts, places = [], []
        if self._rows:
            parts.append(build_batch(with_training_metrics(self._rows, self._margin), MODEL_SCHEMA))
            places.append(np.array(self._row_places))
        for spec, groups in zip(self._specs, self._groups, strict=True):
            if groups:
                learned = _Learned.joined(groups)
                parts.append(_as_batch(learned, spec, self._margin, self._scale))
                places.append(learned.places)
        if not parts:
            return build_batch([], MODEL_SCHEMA)
        table = pa.Table.from_batches(parts).combine_chunks()
        in_order = table.take(pa.array(np.argsort(np.concatenate(places), kind="stable")))
        return in_order.combine_chunks().to_batches()[0]


@dataclass(frozen=True)
class _Learned:
    """Users learned in one call: a row per user; values per rating are end to end."""

    places: NDArray[np.int64]
    user_ids: list[str]
    n_train: NDArray[np.int64]
    n_test: NDArray[np.int64]
    excluded: list[int | None]
    reviewers: list[NDArray[np.int32] | None]
    intercepts: Vector
    coefs: Vector | None
    expected: Vector | None
    train_ratings: Vector
    train_scores: Vector

    @classmethod
    def of(cls, group: ProblemGroup, result: Together, places: NDArray[np.int64]) -> _Learned:
        """Take the users whom the call has learned."""
        blocks, learned, excluded = group.blocks, result.learned, group.excluded_features()
        rows = np.flatnonzero(learned)
        sizes = np.diff(blocks.ends)
        position = np.arange(len(blocks.ratings)) - np.repeat(blocks.ends[:-1], sizes)
        is_training = position < np.repeat(blocks.n_train, sizes)
        is_learned = np.repeat(learned, sizes)
        is_training &= is_learned
        return cls(
            places[rows],
            [blocks.user_ids[user] for user in rows.tolist()],
            blocks.n_train[rows],
            sizes[rows] - blocks.n_train[rows],
            [excluded[user] for user in rows.tolist()],
            [group.reviewers] * len(rows),
            result.intercepts[rows],
            None if result.coefs is None else result.coefs[rows],
            None if result.expected is None else result.expected[rows],
            blocks.ratings[is_training],
            result.scores[is_training],
        )

    @classmethod
    def joined(cls, parts: Sequence[_Learned]) -> _Learned:
        """Return the users of all parts."""
        columns: dict[str, Any] = {}
        for name in cls.__dataclass_fields__:
            values = [getattr(part, name) for part in parts]
            if isinstance(values[0], list):
                columns[name] = [value for part in values for value in part]
            else:
                columns[name] = None if values[0] is None else np.concatenate(values)
        return cls(**columns)


def _as_batch(
    learned: _Learned, spec: LearnerSpec, margin: float, scale: RankScale | None
) -> pa.RecordBatch:
    """Return the users' rows under one learner."""
    n = len(learned.places)
    constants = {
        "learner": spec.label,
        "status": "learned",
        "hyperparameters": spec.hyperparameters(scale),
        "on_rating_scale": spec.kind.on_rating_scale,
        "offset_weight": float(spec.item_offset),
    }
    columns: dict[str, Any] = {
        "user_id": learned.user_ids,
        "n_train": learned.n_train,
        "n_test": learned.n_test,
        "excluded_feature": learned.excluded,
        "reviewers": learned.reviewers,
        "intercept": learned.intercepts,
        **_weights(learned.coefs, learned.expected),
        **_training_metrics(learned, spec, margin),
    }
    arrays = [
        pa.repeat(pa.scalar(constants[field.name], field.type), n) if field.name in constants
        else _array(columns[field.name], field.type) if field.name in columns
        else pa.nulls(n, field.type)
        for field in MODEL_SCHEMA
    ]  # fmt: skip
    return pa.RecordBatch.from_arrays(arrays, schema=MODEL_SCHEMA)


def _weights(coefs: Vector | None, expected: Vector | None) -> Row:
    """Return the columns of the weights: the learned ones plus the prior's."""
    if coefs is None:
        return {}
    weights = coefs if expected is None else coefs + expected
    columns: Row = {
        "kernel": ["linear"] * len(coefs),
        "weights": _ragged(weights.ravel(), np.full(len(coefs), coefs.shape[1])),
        "norm": _norms(coefs),
    }
    return columns if expected is None else columns | {"expected_norm": _norms(expected)}


def _training_metrics(learned: _Learned, spec: LearnerSpec, margin: float) -> Row:
    """Return the metrics of the training part; null where undefined."""
    n = len(learned.places)
    metrics = batch_training_metrics(
        learned.train_scores, learned.train_ratings,
        np.concatenate([[0], np.cumsum(learned.n_train)]),
        on_rating_scale=np.full(n, spec.kind.on_rating_scale),
        # only the margin bound uses it, which needs a norm
        with_margin=np.full(n, learned.coefs is not None), rho=margin,
    )  # fmt: skip
    return {
        f"train_{name}": pa.array(metrics[name], from_pandas=True)  # NaN, undefined, becomes null
        for name in TRAINING_METRICS
    }


def _norms(rows: Vector) -> Vector:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)))


def _ragged(values: Vector, lengths: NDArray[np.int64]) -> pa.ListArray:
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(values.astype(np.float32)))


def _array(values: Any, arrow_type: pa.DataType) -> pa.Array:
    return values.cast(arrow_type) if isinstance(values, pa.Array) else pa.array(values, arrow_type)
