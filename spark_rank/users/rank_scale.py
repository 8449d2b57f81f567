"""Ratings to ranks and back: the scale that learners of ranks and their metrics share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spark_rank.rank_rule import cuts_between, ranks_from_scores


@dataclass(frozen=True)
class RankScale:
    """The ascending levels of the ratings and, of a scale that was cut, where all but one begin."""

    levels: tuple[float, ...]
    cuts: tuple[float, ...] | None = None

    @property
    def n_ranks(self) -> int:
        """Return the number of ranks k."""
        return len(self.levels)

    def thresholds(self) -> NDArray[np.float64]:
        """Return where ranks 2..k begin among ratings: the cuts, or half way between levels."""
        return cuts_between(self.levels) if self.cuts is None else np.array(self.cuts)

    def ranks(self, ratings: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the rank 1..k of every rating, or score on the scale of the ratings."""
        return ranks_from_scores(ratings, self.thresholds())

    def ratings(self, ranks: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the level of every rank."""
        return np.array(self.levels)[np.asarray(ranks, dtype=np.int64) - 1]
