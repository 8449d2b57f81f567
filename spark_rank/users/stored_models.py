"""Rows of the table `models`, read back: scores and ranks of any items, whatever the learner.

This is the contract's formula in one place:

``score(i) = intercept + offset_weight·offset(i) + weights·x(i) + Σ_j dual_j K(x(support_j), x(i))
+ Σ base rankers``, or the mean of voting rules' or members' ranks, or the rank of the best
prototype.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
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

# what scoring needs of a model row
SCORING_COLUMNS = (
    "hyperparameters", "kernel", "gamma", "on_rating_scale", "intercept", "offset_weight",
    "excluded_feature", "reviewers", "weights", "support_items", "dual", "thresholds", "votes",
    "prototypes", "ranker_features", "ranker_cuts", "ranker_below", "ranker_alphas",
    "n_members", "members", "member_votes",
)  # fmt: skip
# without any of these a score is intercept + offset_weight·offset + weights·x on shared features
_BEYOND_LINEAR = ("reviewers", "dual", "prototypes", "ranker_alphas", "member_votes")
_BLOCK = 2**21  # kernel values held at once


@dataclass(frozen=True)
class BaseRankers:
    """RankBoost's sum: thresholds on single features, and their weights."""

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
    """How scores become ranks: by thresholds, or as means of ranks by the nearest, half up."""

    thresholds: Vector | None

    def ranks(self, scores: Vector) -> NDArray[np.int64]:
        """Return the predicted ranks."""
        if self.thresholds is None:
            return nearest_whole(scores)
        return ranks_from_scores(scores, self.thresholds)


@dataclass(frozen=True)
class StoredModel:
    """One user's model as a row has it; arrays in float64, items by number."""

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
        """Return the scores of `items`, in O(d) an item; kernels O(m d), base rankers O(T)."""
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
        """Return what every member of an ensemble scores `items`, a row each: O(N d) an item."""
        assert self.members is not None
        X = item_rows(features, self, items)
        extended = np.column_stack([X, np.asarray(features.offset[items], dtype=np.float64)])
        rules = self.members[:, : extended.shape[1]]
        return np.vstack([row_products(extended, np.ascontiguousarray(rule)) for rule in rules])

    def _member_means(self, X: Vector, offset: Vector) -> Vector:
        """Return the mean of the members' ranks by their votes, in O(N (d + k)) a row."""
        assert self.members is not None
        assert self.member_votes is not None
        extended = read_only(np.column_stack([X, offset]))
        parts = np.hsplit(self.members, [extended.shape[1]])
        sums = np.empty(len(X), dtype=np.int64)
        rules = Rule(*map(np.ascontiguousarray, parts))
        check_round(rank_sums(extended, rules, self.member_votes, sums), extended)
        return np.asarray(sums / self.member_votes.sum())

    def _vote_means(self, features: ItemFeatures, X: Vector) -> Vector:
        """Return the mean rank by votes; linear rules score by weights of their own."""
        assert self.votes is not None
        assert self.thresholds is not None
        assert self.dual is not None
        rules = self.thresholds.reshape(len(self.votes), -1)
        sums = np.empty(len(X), dtype=np.int64)
        if self.support is not None and self.kernel is not None and self.kernel.name == "linear":
            rows, supports = read_only(X), read_only(item_rows(features, self, self.support))
            check_round(voted_rank_sums(rows, supports, self.dual, rules, self.votes, sums), rows)
            return sums / self.votes.sum()
        done = 0
        for values in self._kernel_values(features, X):
            part = sums[done : done + len(values)]
            prefix_rank_sums(np.ascontiguousarray(values), self.dual, rules, self.votes, part)
            done += len(values)
        return sums / self.votes.sum()

    def kernel_values(self, features: ItemFeatures, items: Items) -> Vector:
        """Return K(x(i), x(support_j)) for `items` by supports."""
        return np.concatenate([*self._kernel_values(features, item_rows(features, self, items))])

    def _kernel_values(self, features: ItemFeatures, X: Vector) -> Iterator[Vector]:
        """Yield kernel values for blocks of rows, of a size that the model alone decides."""
        assert self.kernel is not None
        assert self.support is not None
        supports = item_rows(features, self, self.support)
        step = max(1, _BLOCK // max(1, len(supports)))
        for start in range(0, len(X), step):
            yield self.kernel(X[start : start + step], supports)


def item_rows(features: ItemFeatures, model: StoredModel, items: Items) -> Vector:
    """Return what `items` look like to this user's model, one float64 row each."""
    X = features.rows(np.asarray(items, dtype=np.int32), model.reviewers)
    if model.excluded_feature is not None:
        X[:, model.excluded_feature] = 0.0
    return X


def row_products(X: Vector, weights: Vector) -> Vector:
    """Return w·x for every row: the same bits wherever the row stands."""
    products = np.empty(len(X))
    failed = row_scores(read_only(X), read_only(weights), products)
    if failed >= 0:  # the kernel stops at what is not finite
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(X @ weights)
    return products


def linear_rows(batch: pa.RecordBatch) -> NDArray[np.bool_]:
    """Tell which rows are linear on features that all users share."""
    linear = np.ones(len(batch), dtype=bool)
    for name in _BEYOND_LINEAR:
        linear &= ~np.asarray(pc.is_valid(batch.column(name)))
    return linear


def has_ranks(batch: pa.RecordBatch) -> NDArray[np.bool_]:
    """Tell which rows predict ranks of their own."""
    names = ("thresholds", "votes", "prototypes", "member_votes")
    return np.any([pc.is_valid(batch.column(name)) for name in names], axis=0)


def weight_matrix(batch: pa.RecordBatch, rows: NDArray[np.bool_], width: int) -> Vector:
    """Return a row of weights per model: of linear `rows`, 0 where a feature is excluded.

    Other rows, and those without weights, are 0.
    """
    flat, ends = ragged(pc.if_else(pa.array(rows), batch.column("weights"), None))
    weights = np.zeros((len(batch), width))
    there = np.diff(ends) > 0
    weights[there] = flat.reshape(np.count_nonzero(there), width)
    excluded = pc.if_else(pa.array(rows), batch.column("excluded_feature"), None)
    weights[np.flatnonzero(pc.is_valid(excluded)), excluded.drop_null().to_numpy()] = 0.0
    return weights


def column(batch: pa.RecordBatch, name: str) -> Vector:
    """Return a column of numbers, 0 where it is null."""
    values = batch.column(name).cast(pa.float64()).fill_null(0.0)
    return np.asarray(values.to_numpy(zero_copy_only=False))


def stored_model(batch: pa.RecordBatch, row: int, item_ids: pa.StringArray) -> StoredModel:
    """Read one row; items of dual coefficients are looked up in `item_ids`."""
    one = batch.slice(row, 1)
    plain = {name: one.column(name)[0].as_py() for name in (
        "hyperparameters", "kernel", "gamma", "on_rating_scale", "excluded_feature"
    )}  # fmt: skip
    dual = _array(one, "dual", np.float64)
    votes = _array(one, "votes", np.int64)
    return StoredModel(
        on_rating_scale=bool(plain["on_rating_scale"]),
        intercept=float(column(one, "intercept")[0]),
        offset_weight=float(column(one, "offset_weight")[0]),
        excluded_feature=plain["excluded_feature"],
        reviewers=_array(one, "reviewers", np.int32),
        weights=_array(one, "weights", np.float64),
        kernel=None if dual is None else _kernel(plain),
        support=None if dual is None else _supports(one, item_ids),
        dual=dual,
        thresholds=_array(one, "thresholds", np.float64),
        votes=votes,
        prototypes=_array(one, "prototypes", np.float64),
        base_rankers=_base_rankers(one),
        **_members(one),
    )


def rank_rule(batch: pa.RecordBatch, row: int) -> RankRule:
    """Return how the scores of one row that `has_ranks` become ranks."""
    one = batch.slice(row, 1)
    names = ("votes", "prototypes", "member_votes")
    means = any(one.column(name).null_count == 0 for name in names)
    return RankRule(None if means else _array(one, "thresholds", np.float64))


def _array(one: pa.RecordBatch, name: str, kind: Any) -> Any:
    values = one.column(name)
    if values.null_count:
        return None
    return values.flatten().to_numpy(zero_copy_only=False).astype(kind)


def _kernel(plain: dict[str, Any]) -> Kernel:
    """Return the kernel; its constants are hyper-parameters, or their defaults."""
    settings = json.loads(plain["hyperparameters"] or "{}")
    constants = {
        name: settings[name] for name in ("degree", "coef0", "rbf_weight") if name in settings
    }
    width = {} if plain["gamma"] is None else {"gamma": plain["gamma"]}
    return Kernel(plain["kernel"], **width, **constants)


def _supports(one: pa.RecordBatch, item_ids: pa.StringArray) -> NDArray[np.int64]:
    found = pc.index_in(one.column("support_items").flatten(), value_set=item_ids)
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.int64)


def _members(one: pa.RecordBatch) -> dict[str, Any]:
    members = _array(one, "members", np.float64)
    n_members = one.column("n_members")[0].as_py()
    return {
        "members": None if members is None else members.reshape(n_members, -1),
        "member_votes": _array(one, "member_votes", np.int64),
    }


def _base_rankers(one: pa.RecordBatch) -> BaseRankers | None:
    alphas = _array(one, "ranker_alphas", np.float64)
    if alphas is None:
        return None
    return BaseRankers(
        _array(one, "ranker_features", np.int64),
        _array(one, "ranker_cuts", np.float64),
        _array(one, "ranker_below", np.bool_),
        alphas,
    )
