"""Reads rows of the table `models` back: scores and ranks of any items, for every learner.

The formula of the table's contract:

``score(i) = intercept + offset_weight·offset(i) + weights·x(i) + Σ_j dual_j K(x(support_j), x(i))
+ Σ base rankers``, or the mean of voting rules' or members' ranks, or the rank of the best
prototype.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_rank.features.files import ItemFeatures
from spark_rank.learners.kernels import Kernel
from spark_rank.learners.perceptrons.online import check_round, read_only
from spark_rank.learners.perceptrons.rounds import (
    Rule,
    prefix_rank_sums,
    rank_sums,
    row_scores,
    voted_rank_sums,
)
from spark_rank.rank_rule import nearest_whole, ranks_from_scores
from spark_rank.users.batches import ragged

Vector = NDArray[np.float64]
Items = NDArray[Any]

# the columns of a model row that scoring needs
SCORING_COLUMNS = (
    "hyperparameters", "kernel", "gamma", "on_rating_scale", "intercept", "offset_weight",
    "excluded_feature", "reviewers", "weights", "support_items", "dual", "thresholds", "votes",
    "prototypes", "ranker_features", "ranker_cuts", "ranker_below", "ranker_alphas",
    "n_members", "members", "member_votes",
)  # fmt: skip
# without any of these a score is intercept + offset_weight·offset + weights·x on shared features
_BEYOND_LINEAR = ("reviewers", "dual", "prototypes", "ranker_alphas", "member_votes")
# columns with one value per model
_PLAIN = (
    "hyperparameters", "kernel", "gamma", "on_rating_scale", "excluded_feature", "n_members",
)  # fmt: skip
_RANKERS = ("ranker_features", "ranker_cuts", "ranker_below", "ranker_alphas")
# columns with a list per model, and the types of their values in scoring
_LIST_KINDS = {
    "reviewers": np.int32, "weights": np.float64, "dual": np.float64, "thresholds": np.float64,
    "votes": np.int64, "prototypes": np.float64, "members": np.float64, "member_votes": np.int64,
    **dict(zip(_RANKERS, (np.int64, np.float64, np.bool_, np.float64), strict=True)),
}  # fmt: skip
_BLOCK = 2**21  # kernel values in memory at once


@dataclass(frozen=True)
class BaseRankers:
    """RankBoost's base rankers: thresholds on single features, and their weights."""

    features: NDArray[np.int64]
    cuts: Vector
    below: NDArray[np.bool_]
    alphas: Vector

    def parts(self, X: Vector) -> Iterator[Vector]:
        """Yield α_t h_t(x) for every row, one base ranker after the other."""
        for feature, cut, below, alpha in zip(
            self.features, self.cuts, self.below, self.alphas, strict=True
        ):
            yield alpha * ((X[:, feature] < cut) if below else (X[:, feature] >= cut))


@dataclass(frozen=True)
class RankRule:
    """How scores become ranks: by thresholds; without, rounded to the nearest, half up."""

    thresholds: Vector | None

    def ranks(self, scores: Vector) -> NDArray[np.int64]:
        """Return the predicted ranks."""
        if self.thresholds is None:
            return nearest_whole(scores)
        return ranks_from_scores(scores, self.thresholds)


@dataclass(frozen=True)
class StoredModel:
    """One user's model from its row; arrays are in float64, items are numbers."""

    on_rating_scale: bool
    intercept: float
    offset_weight: float
    excluded_feature: int | None = None
    reviewers: NDArray[np.int32] | None = None
    weights: Vector | None = None
    kernel: Kernel | None = None
    support: NDArray[np.int64] | None = None
    dual: Vector | None = None
    thresholds: Vector | None = None
    votes: NDArray[np.int64] | None = None
    prototypes: Vector | None = None
    base_rankers: BaseRankers | None = None
    members: Vector | None = None
    member_votes: NDArray[np.int64] | None = None

    def scores(self, features: ItemFeatures, items: Items) -> Vector:
        """Return the scores of `items`: O(d) each, with kernels O(m d), with base rankers O(T)."""
        X = item_rows(features, self, items)
        offset = np.asarray(features.offset[items], dtype=np.float64)
        if self.prototypes is not None:
            return self._best_prototypes(X, offset)
        if self.member_votes is not None:
            return self._member_means(X, offset)
        if self.votes is not None:
            return self._vote_means(features, X)
        total = np.zeros(len(X)) if self.weights is None else row_products(X, self.weights)
        total += self.offset_weight * offset
        total += self.intercept
        if self.dual is not None:
            parts = [values @ self.dual for values in self._kernel_values(features, X)]
            total += np.concatenate([np.empty(0), *parts])
        if self.base_rankers is not None:
            total = sum(self.base_rankers.parts(X), total)
        return total

    def _best_prototypes(self, X: Vector, offset: Vector) -> Vector:
        extended = np.column_stack([X, offset])
        assert self.prototypes is not None
        prototypes = self.prototypes.reshape(-1, extended.shape[1])
        products = np.column_stack([row_products(extended, row) for row in prototypes])
        return products.argmax(axis=1) + 1.0

    def member_scores(self, features: ItemFeatures, items: Items) -> Vector:
        """Return the scores of `items`, a row per member of the ensemble: O(N d) per item."""
        assert self.members is not None
        X = item_rows(features, self, items)
        extended = np.column_stack([X, np.asarray(features.offset[items], dtype=np.float64)])
        rules = self.members[:, : extended.shape[1]]
        return np.vstack([row_products(extended, np.ascontiguousarray(rule)) for rule in rules])

    def _member_means(self, X: Vector, offset: Vector) -> Vector:
        """Return the mean of the members' ranks, weighted by votes: O(N (d + k)) per row."""
        assert self.members is not None
        assert self.member_votes is not None
        extended = read_only(np.column_stack([X, offset]))
        parts = np.hsplit(self.members, [extended.shape[1]])
        sums = np.empty(len(X), dtype=np.int64)
        rules = Rule(*map(np.ascontiguousarray, parts))
        check_round(rank_sums(extended, rules, self.member_votes, sums), extended)
        return np.asarray(sums / self.member_votes.sum())

    def _vote_means(self, features: ItemFeatures, X: Vector) -> Vector:
        """Return the mean rank, weighted by the votes of the rules."""
        assert self.votes is not None
        assert self.thresholds is not None
        assert self.dual is not None
        rules = self.thresholds.reshape(len(self.votes), -1)
        sums = np.empty(len(X), dtype=np.int64)
        if self.support is not None and self.kernel is not None and self.kernel.name == "linear":
            rows, supports = read_only(X), read_only(item_rows(features, self, self.support))
            check_round(voted_rank_sums(rows, supports, self.dual, rules, self.votes, sums), rows)
            return sums / self.votes.sum()
        start_row = 0
        for values in self._kernel_values(features, X):
            part = sums[start_row : start_row + len(values)]
            prefix_rank_sums(np.ascontiguousarray(values), self.dual, rules, self.votes, part)
            start_row += len(values)
        return sums / self.votes.sum()

    def kernel_values(self, features: ItemFeatures, items: Items) -> Vector:
        """Return K(x(i), x(support_j)) with a row per item and a column per support."""
        return np.concatenate([*self._kernel_values(features, item_rows(features, self, items))])

    def _kernel_values(self, features: ItemFeatures, X: Vector) -> Iterator[Vector]:
        """Yield kernel values for blocks of rows, whose size depends on the model alone."""
        assert self.kernel is not None
        assert self.support is not None
        supports = item_rows(features, self, self.support)
        step = max(1, _BLOCK // max(1, len(supports)))
        for start in range(0, len(X), step):
            yield self.kernel(X[start : start + step], supports)


def item_rows(features: ItemFeatures, model: StoredModel, items: Items) -> Vector:
    """Return the features of `items` for this user's model, one float64 row each."""
    X = features.rows(np.asarray(items, dtype=np.int32), model.reviewers)
    if model.excluded_feature is not None:
        X[:, model.excluded_feature] = 0.0
    return X


def row_products(X: Vector, weights: Vector) -> Vector:
    """Return w·x for every row; the bits do not depend on the other rows."""
    products = np.empty(len(X))
    failed = row_scores(read_only(X), read_only(weights), products)
    if failed >= 0:  # the compiled function stops at a value that is not finite
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(X @ weights)
    return products


def linear_rows(batch: pa.RecordBatch) -> NDArray[np.bool_]:
    """Return which rows are linear models on features that all users share."""
    linear = np.ones(len(batch), dtype=bool)
    for name in _BEYOND_LINEAR:
        linear &= ~np.asarray(pc.is_valid(batch.column(name)))
    return linear


def on_rating_scale(batch: pa.RecordBatch) -> NDArray[np.bool_]:
    """Return which rows have scores on the scale of the ratings."""
    values = batch.column("on_rating_scale").fill_null(False).to_numpy(zero_copy_only=False)
    return np.asarray(values, dtype=bool)


def has_ranks(batch: pa.RecordBatch) -> NDArray[np.bool_]:
    """Return which rows predict ranks."""
    names = ("thresholds", "votes", "prototypes", "member_votes")
    return np.any([pc.is_valid(batch.column(name)) for name in names], axis=0)


def weight_matrix(batch: pa.RecordBatch, rows: NDArray[np.bool_], width: int) -> Vector:
    """Return a row of weights per model; an excluded feature has weight 0.

    Models that are not in `rows`, and those without weights, have zeros.
    """
    flat, ends = ragged(pc.if_else(pa.array(rows), batch.column("weights"), None))
    weights = np.zeros((len(batch), width))
    has_weights = np.diff(ends) > 0
    weights[has_weights] = flat.reshape(np.count_nonzero(has_weights), width)
    excluded = pc.if_else(pa.array(rows), batch.column("excluded_feature"), None)
    weights[np.flatnonzero(pc.is_valid(excluded)), excluded.drop_null().to_numpy()] = 0.0
    return weights


def column(batch: pa.RecordBatch, name: str) -> Vector:
    """Return a column of numbers, 0 where it is null."""
    values = batch.column(name).cast(pa.float64()).fill_null(0.0)
    return np.asarray(values.to_numpy(zero_copy_only=False))


class StoredModels:
    """The rows of a batch as models; columns are read once and items looked up once."""

    def __init__(self, batch: pa.RecordBatch, item_ids: pa.StringArray):
        self._plain = {name: batch.column(name).to_pylist() for name in _PLAIN}
        self._intercepts = column(batch, "intercept")
        self._offset_weights = column(batch, "offset_weight")
        self._lists = {
            name: _Lists.of(batch.column(name), dtype)
            for name, dtype in _LIST_KINDS.items()
            if batch.column(name).null_count < len(batch)
        }
        if "dual" in self._lists:
            self._lists["support"] = _supports(batch.column("support_items"), item_ids)

    def __getitem__(self, row: int) -> StoredModel:
        """Return the model of one row."""
        plain = {name: values[row] for name, values in self._plain.items()}
        arrays = {name: lists.of_row(row) for name, lists in self._lists.items()}
        members, n_members = arrays.get("members"), plain["n_members"]
        return StoredModel(
            on_rating_scale=bool(plain["on_rating_scale"]),
            intercept=float(self._intercepts[row]),
            offset_weight=float(self._offset_weights[row]),
            excluded_feature=plain["excluded_feature"],
            reviewers=arrays.get("reviewers"),
            weights=arrays.get("weights"),
            kernel=None if arrays.get("dual") is None else _kernel(plain),
            support=arrays.get("support"),
            dual=arrays.get("dual"),
            thresholds=arrays.get("thresholds"),
            votes=arrays.get("votes"),
            prototypes=arrays.get("prototypes"),
            base_rankers=_base_rankers(arrays),
            members=None if members is None else members.reshape(n_members, -1),
            member_votes=arrays.get("member_votes"),
        )


@dataclass(frozen=True)
class _Lists:
    """A list column as one flat array; the values of a valid row r are ends[r] to ends[r + 1].

    Values are converted to `dtype` row by row: the members of many users would fill the memory.
    """

    values: NDArray[Any]
    ends: NDArray[np.int64]
    is_valid: NDArray[np.bool_]
    dtype: Any

    @classmethod
    def of(cls, column: pa.ListArray, dtype: Any) -> _Lists:
        values, ends = ragged(column)
        return cls(values, ends, np.asarray(pc.is_valid(column)), dtype)

    def of_row(self, row: int) -> NDArray[Any] | None:
        """Return a row's values; None where the row has none."""
        if not self.is_valid[row]:
            return None
        return self.values[self.ends[row] : self.ends[row + 1]].astype(self.dtype)


def rank_rule(batch: pa.RecordBatch, row: int) -> RankRule:
    """Return the rule that turns the scores of a row into ranks; the row has ranks."""
    one = batch.slice(row, 1)
    names = ("votes", "prototypes", "member_votes")
    if any(one.column(name).null_count == 0 for name in names):
        return RankRule(None)
    return RankRule(_Lists.of(one.column("thresholds"), np.float64).of_row(0))


def _supports(column: pa.ListArray, item_ids: pa.StringArray) -> _Lists:
    numbers = pc.index_in(column.flatten(), value_set=item_ids)
    return replace(_Lists.of(column, np.int64), values=numbers.to_numpy(zero_copy_only=False))


@lru_cache(maxsize=64)
def _constants(hyperparameters: str) -> dict[str, Any]:
    """Return the kernel's constants in the hyper-parameters; missing ones have their defaults."""
    settings = json.loads(hyperparameters)
    return {name: settings[name] for name in ("degree", "coef0", "rbf_weight") if name in settings}


def _kernel(plain: dict[str, Any]) -> Kernel:
    width = {} if plain["gamma"] is None else {"gamma": plain["gamma"]}
    return Kernel(plain["kernel"], **width, **_constants(plain["hyperparameters"] or "{}"))


def _base_rankers(arrays: dict[str, NDArray[Any] | None]) -> BaseRankers | None:
    parts = [arrays.get(name) for name in _RANKERS]
    return None if parts[-1] is None else BaseRankers(*parts)  # type: ignore[arg-type]
