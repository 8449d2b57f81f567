"""A profile of an experiment's data set, in a few numbers."""

from __future__ import annotations

import numpy as np

from spark_rank.experiments.rating_set import RatingSet
from spark_rank.records.results import RatingSetProfile

_SHOWN_LEVELS = 12  # a scale with more levels is described by its ends


def rating_profile(ratings: RatingSet, implicit: int) -> RatingSetProfile:
    """Return the profile for a report; `implicit` counts rows dropped because of no rating."""
    counts, levels = ratings.n_ratings, ratings.levels
    return RatingSetProfile(
        name=ratings.name,
        users=ratings.n_users,
        items=ratings.n_items,
        ratings=len(ratings.ratings),
        implicit=implicit,
        median_of_a_user=float(np.median(counts)) if len(counts) else 0.0,
        most_of_a_user=int(counts.max(initial=0)),
        mean=float(ratings.ratings.mean(dtype=np.float64)) if len(counts) else None,
        levels=tuple(float(level) for level in levels) if len(levels) <= _SHOWN_LEVELS else None,
        ends=(float(levels[0]), float(levels[-1])) if len(levels) else None,
    )
