"""Converts ratings to ranks and back, for learners of ranks and their metrics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spark_rank.rank_rule import cuts_between, ranks_from_scores


@dataclass(frozen=True)
class RankScale:
    """The levels of the ratings in ascending order and, for a cut scale, the cuts between them."""

    levels: tuple[float, ...]
    cuts: tuple[float, ...] | None = None

    @property
    def n_ranks(self) -> int:
        """Return the number of ranks k."""
        return len(self.levels)

    def thresholds(self) -> NDArray[np.float64]:
        """Return the ratings where ranks 2..k begin: the cuts, or the midpoints between levels."""
        return cuts_between(self.levels) if self.cuts is None else np.array(self.cuts)

    def ranks(self, ratings: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the rank 1..k of every rating, or of every score on the rating scale."""
        return ranks_from_scores(ratings, self.thresholds())

    def ratings(self, ranks: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the level of every rank."""
        return np.array(self.levels)[np.asarray(ranks, dtype=np.int64) - 1]
