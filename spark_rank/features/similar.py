"""Items that look alike to learners: the cosine of their features around the average item."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spark_rank.errors import ConfigError
from spark_rank.features.files import ItemFeatures

IntArray = NDArray[np.int64]


class Directions:
    """Where every item lies, seen from the average one: what all have in common tells nothing.

    An item of which nothing is known, all of whose features are 0, has no direction; neither has
    one that is the average.
    """

    def __init__(self, features: ItemFeatures) -> None:
        if features.matrix.shape[1] == 0:
            raise ConfigError(
                "items have no features that all users share, and so no items are similar: "
                "features.kind factors or als gives them some"
            )
        # of equally similar items the one with the least id comes first
        self._by_id = np.argsort(np.array(features.item_ids.to_pylist()), kind="stable")
        self._place = np.empty_like(self._by_id)
        self._place[self._by_id] = np.arange(len(self._by_id))
        rows = features.matrix[self._by_id].astype(np.float64)
        known = rows.any(axis=1)
        rows -= rows[known].mean(axis=0) if known.any() else 0.0
        lengths = np.sqrt((rows**2).sum(axis=1))
        self._none = ~known | (lengths == 0.0)
        self._units = rows / np.where(self._none, 1.0, lengths)[:, None]

    def most_similar(self, item: int, count: int) -> tuple[IntArray, NDArray[np.float64]]:
        """Return the numbers and cosines of at most `count` other items, the best first. O(n d)."""
        own = self._place[item]
        if self._none[own]:
            return np.empty(0, dtype=np.int64), np.empty(0)
        # unlike a product of BLAS, equal rows give equal bits wherever they stand
        cosines = np.einsum("if,f->i", self._units, self._units[own])
        cosines[self._none] = cosines[own] = -np.inf
        order = np.argsort(-cosines, kind="stable")[:count]
        order = order[cosines[order] > -np.inf]
        return self._by_id[order], cosines[order]
