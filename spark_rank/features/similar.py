"""Finds similar items: by the cosine of their features, relative to the mean of all items."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spark_rank.errors import ConfigError
from spark_rank.features.files import ItemFeatures

IntArray = NDArray[np.int64]


class Directions:
    """The direction of every item from the mean item, which removes what all have in common.

    An item whose features are all 0, or equal to the mean, has no direction.
    """

    def __init__(self, features: ItemFeatures) -> None:
        if features.matrix.shape[1] == 0:
            raise ConfigError(
                "items have no features that all users share, so none are similar: set "
                "features.kind to factors or als"
            )
        # equally similar items are in the order of their ids
        self._by_id = np.argsort(np.array(features.item_ids.to_pylist()), kind="stable")
        self._place = np.empty_like(self._by_id)
        self._place[self._by_id] = np.arange(len(self._by_id))
        rows = features.matrix[self._by_id].astype(np.float64)
        has_features = rows.any(axis=1)
        rows -= rows[has_features].mean(axis=0) if has_features.any() else 0.0
        lengths = np.sqrt((rows**2).sum(axis=1))
        self._none = ~has_features | (lengths == 0.0)
        self._units = rows / np.where(self._none, 1.0, lengths)[:, None]

    def most_similar(self, item: int, count: int) -> tuple[IntArray, NDArray[np.float64]]:
        """Return the numbers and cosines of at most `count` other items, the best first. O(n d)."""
        row = self._place[item]
        if self._none[row]:
            return np.empty(0, dtype=np.int64), np.empty(0)
        # unlike a BLAS product, equal rows give equal bits at any position
        cosines = np.einsum("if,f->i", self._units, self._units[row])
        cosines[self._none] = cosines[row] = -np.inf
        order = np.argsort(-cosines, kind="stable")[:count]
        order = order[cosines[order] > -np.inf]
        return self._by_id[order], cosines[order]
