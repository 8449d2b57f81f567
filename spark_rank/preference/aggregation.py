"""Rank aggregation: from voters' rankings to one order with few pairwise misrankings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spark_rank.preference.errors import InvalidRankingError, InvalidSettingError
from spark_rank.preference.kemeny_exact import exact_order
from spark_rank.preference.local_search import insertion_search
from spark_rank.preference.majorities import (
    FloatArray,
    checked_majorities,
    count_majorities,
    kemeny_lower_bound,
    kemeny_score,
)
from spark_rank.preference.rankings import Ranking
from spark_rank.preference.ready_made import from_majorities
from spark_rank.preference.sorting import degree_rank, quicksort_rank

# an order is optimal if its score equals the bound up to this share of the score
_PROOF = 1e-9
# sums are equal if they differ by less than this share of the largest possible sum
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Aggregation:
    """One order of all items, with its score and the proven bounds of the best score.

    Attributes
    ----------
    order : the items, best first.
    score : Kemeny score, the number of voters' pairwise opinions that the order contradicts.
    lower_bound : Σ min(m_uv, m_vu), for every method: no order can score less.
    proven_bound : the best proven lower bound, above `lower_bound` if the exact solver raised it.
    gap : (score − proven_bound) / score, 0 if the score is 0.
    method : the name of the method.
    optimal : whether the gap is 0, so that no order scores less. Any method may reach it.
    misranked : share of all pairwise opinions that the order contradicts; None without opinions.
    """

    order: list[Any]
    score: float
    lower_bound: float
    proven_bound: float
    gap: float
    method: str
    optimal: bool
    misranked: float | None


def aggregate(
    rankings: Sequence[Ranking],
    method: str = "borda",
    *,
    items: Sequence[Any] | None = None,
    seed: int = 0,
    time_limit: float = 60.0,
) -> Aggregation:
    """Aggregate voters' rankings, full, partial or tied, into one order of all items.

    A ranking lists items from the best to the worst, tied ones in a set or tuple; or it maps items
    to levels, the higher the better. Items that a ranking leaves out are not compared by its voter.
    `items` are all items, in the order that breaks ties; by default the ranked items, ascending.
    The other arguments are those of `aggregate_majorities`.
    """
    majorities, rows = count_majorities(rankings, items)
    return aggregate_majorities(majorities, method, items=rows, seed=seed, time_limit=time_limit)


def aggregate_majorities(
    majorities: ArrayLike,
    method: str = "borda",
    *,
    items: Sequence[Any] | None = None,
    seed: int = 0,
    time_limit: float = 60.0,
) -> Aggregation:
    """Aggregate from the n×n counts m_uv of voters who put u above v.

    Parameters
    ----------
    majorities : the counts; voters who do not compare u and v, or tie them, count for neither.
    method : ``borda``, by Σ_v (m_uv − m_vu): on full rankings the classic points, while an item
        that a voter leaves out gains and loses nothing, as if in the middle of that ranking;
        ``copeland``, by pairwise majorities won, a draw ½; ``quicksort``, randomised QuickSort on
        the majority tournament; ``local_search``, the best of these three, improved by moving
        single items until no move helps; ``exact``, a least Kemeny score by integer programming.
    items : names of the rows, by default their numbers. Their order breaks ties.
    seed : of QuickSort's pivots.
    time_limit : seconds for ``exact``; after that, the best order so far is returned with the gap
        that is proven. Only then does a result depend on the machine.
    """
    counts = checked_majorities(majorities)
    rows = list(range(len(counts))) if items is None else list(items)
    if len(rows) != len(counts):
        raise InvalidRankingError(
            f"{len(rows)} items for counts of {len(counts)}: name every row of the counts"
        )
    bound = kemeny_lower_bound(counts)
    order, proven = _solve(counts, method, seed, time_limit, bound)
    score, opinions = kemeny_score(order, counts), float(counts.sum())
    optimal = score - proven <= _PROOF * score
    return Aggregation(
        order=[rows[row] for row in order],
        score=score,
        lower_bound=bound,
        proven_bound=proven,
        gap=0.0 if optimal else (score - proven) / score,
        method=method,
        optimal=optimal,
        misranked=score / opinions if opinions else None,
    )


def _solve(
    counts: FloatArray, method: str, seed: int, time_limit: float, bound: float
) -> tuple[list[int], float]:
    """Return the order of rows and the lower bound proven with it."""
    if method == "exact":
        start = _local_search(counts, seed)
        order, proven = exact_order(counts, start, _checked_limit(time_limit))
        return order, max(proven, bound)
    if method not in _HEURISTICS:
        raise InvalidSettingError(f"method={method!r} is unknown: give one of {list(METHODS)}")
    return _HEURISTICS[method](counts, seed), bound


def _borda(counts: FloatArray, seed: int) -> list[int]:
    points = (counts - counts.T).sum(axis=1)
    # weighted voters give fractions; rounding of their sums must not break ties
    largest = float(counts.max(initial=0.0)) or 1.0
    steps = np.rint(points / largest / (_ROUNDING * max(len(counts), 1)))
    return [int(row) for row in np.argsort(-steps, kind="stable")]


def _copeland(counts: FloatArray, seed: int) -> list[int]:
    return degree_rank(range(len(counts)), from_majorities(counts))


def _quicksort(counts: FloatArray, seed: int) -> list[int]:
    rng = np.random.default_rng(seed)
    return quicksort_rank(range(len(counts)), from_majorities(counts), rng)


def _local_search(counts: FloatArray, seed: int) -> list[int]:
    starts = [start(counts, seed) for start in (_borda, _copeland, _quicksort)]
    # if several are equal, min takes the first: the choice is deterministic
    return insertion_search(min(starts, key=lambda order: kemeny_score(order, counts)), counts)


def _checked_limit(time_limit: float) -> float:
    if not time_limit > 0.0:
        raise InvalidSettingError(f"time_limit={time_limit!r} is not allowed: give seconds > 0")
    return float(time_limit)


# all methods except `exact`, which proves a bound and takes a time limit
_HEURISTICS: dict[str, Callable[[FloatArray, int], list[int]]] = {
    "borda": _borda,
    "copeland": _copeland,
    "quicksort": _quicksort,
    "local_search": _local_search,
}

METHODS = (*_HEURISTICS, "exact")
