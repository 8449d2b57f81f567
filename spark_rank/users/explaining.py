"""What contributes to one user's scores: the parts of a score, features, and rated items."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spark_rank.features.files import ItemFeatures
from spark_rank.learners.kernels import Kernel
from spark_rank.users.stored_models import StoredModel, item_rows, row_products

Vector = NDArray[np.float64]
IntArray = NDArray[np.int64]

CONSTANT, OFFSET, EXPECTED = "constant", "item offset", "prior of users who rated these items"
LEARNED_WEIGHTS, LEARNED_ITEMS, LEARNED_RANKERS = (
    "learned: features", "learned: rated items", "learned: base rankers"
)  # fmt: skip
_SUPPORTS = 256  # rated items whose kernel values with all items are in memory at once


@dataclass(frozen=True)
class Pulls:
    """How much each feature or rated item adds to a score, or changes all scores."""

    numbers: IntArray
    coefficients: Vector
    amounts: Vector

    def strongest(self, count: int) -> Pulls:
        """Return the `count` with the greatest absolute amounts; ties keep their order."""
        order = np.argsort(-np.abs(self.amounts), kind="stable")[:count]
        return Pulls(self.numbers[order], self.coefficients[order], self.amounts[order])


@dataclass(frozen=True)
class Influences:
    """A user's model and its training items.

    `expected` are the prior's weights for the user; None without.
    """

    model: StoredModel
    features: ItemFeatures
    trained: IntArray
    expected: Vector | None
    was_learned: bool

    def parts(self, item: int) -> dict[str, float]:
        """Return the terms of a score by name; empty if the score is a rank and not a sum."""
        model = self.model
        if any(part is not None for part in (model.prototypes, model.votes, model.member_votes)):
            return {}
        x = item_rows(self.features, model, np.array([item]))
        parts = {
            CONSTANT: model.intercept,
            OFFSET: model.offset_weight * float(self.features.offset[item]),
        }
        if self.expected is not None:
            parts[EXPECTED] = float(row_products(x, self._expected_part)[0])
        if self._learned_weights is not None:
            parts[LEARNED_WEIGHTS] = float(row_products(x, self._learned_weights)[0])
        if model.dual is not None:
            parts[LEARNED_ITEMS] = float(self.rated_items(item).amounts.sum())
        if model.base_rankers is not None:
            parts[LEARNED_RANKERS] = float(sum(model.base_rankers.parts(x))[0])  # type: ignore[index]
        return parts

    def feature_pulls(self, item: int) -> Pulls:
        """Return ``w_f x_f`` for every feature, plus the base rankers on the feature.

        A multiclass perceptron's w is its best prototype, a voting ensemble's the members' mean.
        """
        x = item_rows(self.features, self.model, np.array([item]))[0]
        weights = self._feature_weights(item)
        amounts = weights * x
        rankers = self.model.base_rankers
        if rankers is not None:
            ranker_amounts = np.array([float(part[0]) for part in rankers.parts(x[None, :])])
            amounts = amounts + np.bincount(rankers.features, ranker_amounts, len(x))
        return Pulls(np.arange(len(x)), weights, amounts)

    def rated_items(self, item: int) -> Pulls:
        """Return ``α_j K(x_j, x)`` for every training item; empty if the score is no such sum."""
        numbers, dual, kernel = self._dual
        x = item_rows(self.features, self.model, np.array([item]))
        similar = kernel(x, item_rows(self.features, self.model, numbers))[0] if len(dual) else dual
        return _by_item(numbers, dual, dual * similar)

    def feature_spreads(self) -> Pulls:
        """Return, for every feature, the standard deviation of its pull over all items.

        Its sign is that of the weight. The mean of a pull is left out: it changes no order.
        """
        weights = self._feature_weights(None)
        rankers = self.model.base_rankers
        sums = []
        for items in self._item_blocks():
            X = item_rows(self.features, self.model, items)
            pulls = X * weights
            if rankers is not None:
                for feature, part in zip(rankers.features, rankers.parts(X), strict=True):
                    pulls[:, feature] += part
            sums.append((pulls.sum(axis=0), (pulls**2).sum(axis=0)))
        mean, mean_square = np.sum(sums, axis=0) / len(self.features.item_ids)
        spread = np.sqrt(np.maximum(mean_square - mean**2, 0.0))
        return Pulls(np.arange(len(spread)), weights, np.where(weights < 0.0, -spread, spread))

    def rated_item_spreads(self) -> Pulls:
        """Return, for every training item, the standard deviation of its pull over all items.

        Its sign is that of the coefficient. O(items · training items · d).
        """
        numbers, dual, kernel = self._dual
        spreads = [np.empty(0)]
        for start in range(0, len(dual), _SUPPORTS):
            part = slice(start, start + _SUPPORTS)
            supports = item_rows(self.features, self.model, numbers[part])
            values = np.vstack([
                kernel(item_rows(self.features, self.model, items), supports)
                for items in self._item_blocks()
            ])  # fmt: skip
            spreads.append(dual[part] * values.std(axis=0))
        return _by_item(numbers, dual, np.concatenate(spreads))

    @cached_property
    def _expected_part(self) -> Vector:
        """Return the part of the weights that is the prior's: all, if none were learned."""
        assert self.expected is not None
        if self._learned_weights is None and self.model.weights is not None:
            return self.model.weights
        return self.model.offset_weight * self.expected

    @cached_property
    def _learned_weights(self) -> Vector | None:
        """Return the weights without the prior's; None if the model did not learn weights."""
        model = self.model
        others = model.dual is not None or model.base_rankers is not None
        if model.weights is None or others or not self.was_learned:
            return None
        if self.expected is None:
            return model.weights
        return model.weights - model.offset_weight * self.expected

    @cached_property
    def _dual(self) -> tuple[IntArray, Vector, Kernel]:
        """Return training items, their coefficients and the kernel.

        A linear model's learned w is a sum ``Σ α_j x_j`` over the training items; of all such α
        the one of least norm is taken. In a voting model each α_j is multiplied by the share of
        the votes of the rules that it is part of.
        """
        model = self.model
        if model.dual is not None:
            assert model.support is not None
            assert model.kernel is not None
            if model.votes is None:
                return model.support, model.dual, model.kernel
            later = np.cumsum(model.votes[::-1])[::-1][1:]
            return model.support, model.dual * (later / model.votes.sum()), model.kernel
        if self._learned_weights is None or len(self.trained) == 0:
            return np.empty(0, dtype=np.int64), np.empty(0), Kernel("linear")
        X = item_rows(self.features, model, self.trained)
        dual = np.linalg.lstsq(X.T, self._learned_weights, rcond=None)[0].astype(np.float64)
        return self.trained, dual, Kernel("linear")

    def _feature_weights(self, item: int | None) -> Vector:
        """Return the weights of the features.

        Of prototypes, it is the best one for the item; without an item, their range.
        """
        model = self.model
        width = item_rows(self.features, model, np.empty(0, dtype=np.int64)).shape[1]
        if model.prototypes is not None:
            prototypes = model.prototypes.reshape(-1, width + 1)[:, :width]
            if item is None:
                return np.asarray(prototypes.max(axis=0) - prototypes.min(axis=0))
            return np.asarray(prototypes[int(model.scores(self.features, np.array([item]))[0]) - 1])
        if model.members is not None and model.member_votes is not None:
            votes = model.member_votes
            return np.asarray(votes @ model.members[:, :width] / votes.sum())
        return np.zeros(width) if model.weights is None else model.weights

    def _item_blocks(self) -> Iterator[IntArray]:
        n_items = len(self.features.item_ids)
        for start in range(0, n_items, 2**14):
            yield np.arange(start, min(start + 2**14, n_items))


def _by_item(numbers: IntArray, coefficients: Vector, amounts: Vector) -> Pulls:
    """Add up the entries of each item: an item may have several."""
    items, places = np.unique(numbers, return_inverse=True)
    summed = [
        np.bincount(places, values, len(items)).astype(np.float64)
        for values in (coefficients, amounts)
    ]
    return Pulls(items, *summed)
