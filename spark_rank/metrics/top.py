"""Metrics of the top n items: NDCG, precision, recall and average precision.

The order is that of `spark_rank.metrics.order`: score descending; equal scores by item id ascending
if `items` are given, otherwise in the order of the input. For a user without a relevant item (or
without any gain, for NDCG) the metrics are undefined: None, not 0. Lists may be shorter than n.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from spark_rank.compiled import njit
from spark_rank.metrics.order import ranking, sort_descending
from spark_rank.metrics.vectors import BoolArray, FloatArray, none_if_nan, pair_of_vectors


def ndcg(h: ArrayLike, y: ArrayLike, n: int, *, items: ArrayLike | None = None) -> float | None:
    """Return the discounted gain of the top n, relative to that of the best order: O(m log m).

    The gain of an item is ``2^y − 1``, discounted by ``log2(1 + place)``; the best order is that
    of the ratings. The result is between 0 and 1. None if the best order has no gain (no items, or
    all ratings 0), if a rating is negative (hiding an item would be rewarded), or if 2^y overflows.
    """
    _check_top(n)
    scores, ratings = pair_of_vectors(h, y)
    by_score = ratings[ranking(scores, items)]
    return none_if_nan(discounted_gain_ratio(by_score, sort_descending(ratings)[0], n))


def precision(
    h: ArrayLike, y: ArrayLike, n: int, relevant_from: float, *, items: ArrayLike | None = None
) -> float | None:
    """Return the share of relevant items (y ≥ `relevant_from`) among the top n: O(m log m).

    With m < n items, all m are the top. None if no item is relevant.
    """
    return none_if_nan(top_rates(_relevance_by_score(h, y, n, relevant_from, items), n)[0])


def recall(
    h: ArrayLike, y: ArrayLike, n: int, relevant_from: float, *, items: ArrayLike | None = None
) -> float | None:
    """Return the share of the relevant items that are among the top n: O(m log m).

    None where no item is relevant.
    """
    return none_if_nan(top_rates(_relevance_by_score(h, y, n, relevant_from, items), n)[1])


def average_precision(
    h: ArrayLike, y: ArrayLike, n: int, relevant_from: float, *, items: ArrayLike | None = None
) -> float | None:
    """Return AP@n: the mean of the precisions at the places of the relevant items in the top n.

    The sum is divided by the number of relevant items, or by n if there are more, so that the best
    order has AP 1. O(m log m). None if no item is relevant.
    """
    return none_if_nan(top_rates(_relevance_by_score(h, y, n, relevant_from, items), n)[2])


def _check_top(n: int) -> None:
    if n < 1:
        raise ValueError(f"n must be at least 1, not {n}")


def _relevance_by_score(
    h: ArrayLike, y: ArrayLike, n: int, relevant_from: float, items: ArrayLike | None
) -> BoolArray:
    _check_top(n)
    scores, ratings = pair_of_vectors(h, y)
    return np.asarray(ratings[ranking(scores, items)] >= relevant_from)


@njit(cache=True)
def discounted_gain_ratio(by_score: FloatArray, by_rating: FloatArray, n: int) -> float:
    """Return DCG@n over the ideal DCG@n, from ratings in both orders; NaN where undefined.

    O(n): the lowest rating stands last in `by_rating`.
    """
    m = len(by_rating)
    if m == 0 or by_rating[m - 1] < 0.0:
        return np.nan
    gain = 0.0
    ideal = 0.0
    for place in range(min(n, m)):
        discount = np.log2(place + 2.0)
        gain += (2.0 ** by_score[place] - 1.0) / discount
        ideal += (2.0 ** by_rating[place] - 1.0) / discount
    if ideal == 0.0 or not np.isfinite(ideal):
        return np.nan
    return gain / ideal


@njit(cache=True)
def top_rates(relevant: BoolArray, n: int) -> tuple[float, float, float]:
    """Return precision, recall and average precision at n, from relevance in the order of scores.

    O(m). NaN where nothing is relevant.
    """
    m = len(relevant)
    n_relevant = 0
    hits = 0
    precisions = 0.0
    for place in range(m):
        if relevant[place]:
            n_relevant += 1
            if place < n:
                hits += 1
                precisions += hits / (place + 1)
    if n_relevant == 0:
        return np.nan, np.nan, np.nan
    return hits / min(n, m), hits / n_relevant, precisions / min(n, n_relevant)
