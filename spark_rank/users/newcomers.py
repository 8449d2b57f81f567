"""What is expected of a user without training ratings: the prior, at the level of all ratings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spark_rank.features.files import ItemFeatures
from spark_rank.users.prior_scores import Prior
from spark_rank.users.rank_scale import RankScale
from spark_rank.users.specs import LearnerSpec

Row = dict[str, Any]


@dataclass(frozen=True)
class Levels:
    """Means over all training ratings of the rating minus what is expected of it.

    `constant` expects nothing, `offset` the item offset, and `prior` also the prior weights of a
    user without ratings.
    """

    constant: float
    offset: float
    prior: float

    def of(self, prior: Prior) -> float:
        """Return the level of a new user's scores, which start from `prior`."""
        if prior.offset is None:
            return self.constant
        return self.offset if prior.expected is None else self.prior


def levels_of(
    mean: float, features: ItemFeatures, items: NDArray[np.integer], n_train: NDArray[np.integer]
) -> Levels:
    """Return the levels; `items` have `n_train` training ratings, `mean` is that of them all."""
    count = max(int(n_train.sum()), 1)
    scores = offset = np.asarray(features.offset, dtype=np.float64)
    expected = features.expected_weights(np.empty(0, dtype=np.int32))
    if expected is not None:
        scores = offset + features.matrix @ expected
    of_offset, of_prior = (mean - float(own[items] @ n_train) / count for own in (offset, scores))
    return Levels(mean, of_offset, of_prior)


def newcomer_columns(
    spec: LearnerSpec,
    scale: RankScale | None,
    level: float,
    *,
    has_offset: bool,
    expected: NDArray[np.float64] | None,
) -> Row:
    """Return the columns by which a new user's model scores: nothing is learned."""
    columns: Row = {"intercept": level, "offset_weight": float(has_offset)}
    if expected is not None:
        columns["weights"] = expected
    if spec.kind.of_ranks and scale is not None:
        columns["thresholds"] = scale.thresholds()
    return columns
