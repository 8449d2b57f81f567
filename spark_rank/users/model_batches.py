"""Models of a batch of users as rows of the table `models`, in the order of users and learners.

Users that one call has learned become columns without a Python object for each of them, which
would take longer than learning them; the others come as rows.
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
    """Collects what becomes of a batch of users, of whom every one has a row per learner."""

    def __init__(self, specs: Sequence[LearnerSpec], margin: float, scale: RankScale | None):
        self._specs, self._margin, self._scale = specs, margin, scale
        self._rows: list[Row] = []
        self._row_places: list[int] = []
        self._groups: list[list[_Learned]] = [[] for _ in specs]
        self._users = 0

    def add(
        self, group: ProblemGroup, found: Sequence[Together | None], rows: Mapping[int, Row]
    ) -> None:
        """Take the next users: what one call found per learner, and rows of those it left out.

        `rows` have places: user by user in the group, learner by learner.
        """
        width, before = len(self._specs), self._users * len(self._specs)
        for place, row in rows.items():
            self._rows.append(row)
            self._row_places.append(before + place)
        for number, together in enumerate(found):
            if together is not None:
                places = before + number + width * np.arange(len(together.learned))
                self._groups[number].append(_Learned.of(group, together, places))
        self._users += len(group.blocks.users)

    def in_order(self) -> pa.RecordBatch:
        """Return all rows, users in the order in which they came."""
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
    """Users that one call has learned: a row each, and end to end what has a value per rating."""

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
    def of(cls, group: ProblemGroup, found: Together, places: NDArray[np.int64]) -> _Learned:
        """Leave out whom the call has not learned."""
        blocks, learned, excluded = group.blocks, found.learned, group.excluded_features()
        own = np.flatnonzero(learned)
        sizes = np.diff(blocks.ends)
        behind = np.arange(len(blocks.ratings)) - np.repeat(blocks.ends[:-1], sizes)
        train = behind < np.repeat(blocks.n_train, sizes)
        kept = np.repeat(learned, sizes)
        train &= kept
        return cls(
            places[own],
            [blocks.user_ids[user] for user in own.tolist()],
            blocks.n_train[own],
            sizes[own] - blocks.n_train[own],
            [excluded[user] for user in own.tolist()],
            [group.reviewers] * len(own),
            found.intercepts[own],
            None if found.coefs is None else found.coefs[own],
            None if found.expected is None else found.expected[own],
            blocks.ratings[train],
            found.scores[train],
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
    same = {
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
        pa.repeat(pa.scalar(same[field.name], field.type), n) if field.name in same
        else _array(columns[field.name], field.type) if field.name in columns
        else pa.nulls(n, field.type)
        for field in MODEL_SCHEMA
    ]  # fmt: skip
    return pa.RecordBatch.from_arrays(arrays, schema=MODEL_SCHEMA)


def _weights(coefs: Vector | None, expected: Vector | None) -> Row:
    """Return the columns about the weights: what was learned plus what was expected."""
    if coefs is None:
        return {}
    whole = coefs if expected is None else coefs + expected
    columns: Row = {
        "kernel": ["linear"] * len(coefs),
        "weights": _ragged(whole.ravel(), np.full(len(coefs), coefs.shape[1])),
        "norm": _norms(coefs),
    }
    return columns if expected is None else columns | {"expected_norm": _norms(expected)}


def _training_metrics(learned: _Learned, spec: LearnerSpec, margin: float) -> Row:
    """Return the metrics on the training part; null where undefined."""
    n = len(learned.places)
    found = batch_training_metrics(
        learned.train_scores, learned.train_ratings,
        np.concatenate([[0], np.cumsum(learned.n_train)]),
        on_rating_scale=np.full(n, spec.kind.on_rating_scale),
        # only the margin bound asks for it, which needs a norm
        with_margin=np.full(n, learned.coefs is not None), rho=margin,
    )  # fmt: skip
    return {
        f"train_{name}": pa.array(found[name], from_pandas=True)  # NaN, undefined, becomes null
        for name in TRAINING_METRICS
    }


def _norms(rows: Vector) -> Vector:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)))


def _ragged(values: Vector, lengths: NDArray[np.int64]) -> pa.ListArray:
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(values.astype(np.float32)))


def _array(values: Any, kind: pa.DataType) -> pa.Array:
    return values.cast(kind) if isinstance(values, pa.Array) else pa.array(values, kind)
