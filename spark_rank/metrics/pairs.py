"""The papers' pair metrics, each in O(m log m) and exact.

References
----------
Cortes, Mohri, Rastogi: An Alternative Ranking Problem for Search Engines, eqs. 4 to 7 and 67 to 69.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from spark_rank.metrics.discordance import HMP1, HMP2, HR1, HR2, MISRANKING, discordance
from spark_rank.metrics.order import sort_descending
from spark_rank.metrics.residuals import insensitive_costs, squared_difference
from spark_rank.metrics.vectors import FloatArray, none_if_nan, pair_of_vectors

PairCost = Literal["hr", "mp", "hmp", "svr"]
_DISCORDANCE = {("hr", 1): HR1, ("hr", 2): HR2, ("hmp", 1): HMP1, ("hmp", 2): HMP2}


def mean_squared_difference(h: ArrayLike, y: ArrayLike) -> float | None:
    """Return MSD, the mean of ((h_j − h_i) − (y_j − y_i))² over all m² ordered pairs (eq. 67).

    The pairs include an item with itself, as the paper's m′² does, which costs 0: the mean over
    pairs of two different items is m/(m − 1) times as large. It is twice the population variance
    of the residuals: O(m). With fewer than two items there is no pair to compare: None. A cost
    beyond the largest float is infinite, here and below.
    """
    scores, ratings = pair_of_vectors(h, y)
    return none_if_nan(squared_difference(scores, ratings))


def mean_1norm_difference(h: ArrayLike, y: ArrayLike) -> float | None:
    """Return M1D, the mean of |(h_j − h_i) − (y_j − y_i)| over all m² ordered pairs (eq. 68).

    The pairs include an item with itself, as for MSD. From sorted residuals: O(m log m). With
    fewer than two items: None.
    """
    scores, ratings = pair_of_vectors(h, y)
    return none_if_nan(insensitive_costs(scores, ratings, 0.0)[0])


def pairwise_misranking(h: ArrayLike, y: ArrayLike) -> float | None:
    """Return the share of pairs with y_i > y_j that have h_i ≤ h_j (eq. 69): O(m log m).

    A tie in h counts as misranked. Where all ratings tie there is no pair: None.
    """
    return none_if_nan(_discordance(h, y)[MISRANKING])


def pair_cost(
    h: ArrayLike,
    y: ArrayLike,
    cost: PairCost = "hr",
    power: Literal[1, 2] = 1,
    epsilon: float = 0.0,
) -> float | None:
    """Return the mean of one of the paper's costs over all m² ordered pairs (eq. 2): O(m log m).

    The pairs include an item with itself, which costs 0.
    ``hr`` and ``hmp`` are None where no two ratings differ: no pair could be misordered. ``mp``
    and ``svr`` are None with fewer than two items.

    Parameters
    ----------
    h, y
        Scores and ratings.
    cost
        ``hr`` (eq. 4): |h_j − h_i|^n where scores and ratings order the pair in opposite ways.
        ``mp`` (eq. 5): |(h_j − h_i) − (y_j − y_i)|^n; M1D for n = 1 and MSD for n = 2.
        ``hmp`` (eq. 6): as ``mp``, where scores and ratings order the pair in opposite ways.
        ``svr`` (eq. 7): ``max(0, |(h_j − h_i) − (y_j − y_i)| − ε)^n``. The printed equation has ε
        inside the absolute value, which would give the two orders of a pair different costs, with
        a jump. This is the ε-insensitive cost that the text names.
    power
        The n of the paper, 1 or 2.
    epsilon
        The ε of ``svr``, at least 0; the other costs have none.
    """
    if cost not in ("hr", "mp", "hmp", "svr"):
        raise ValueError(f"cost must be 'hr', 'mp', 'hmp' or 'svr', not {cost!r}")
    if power not in (1, 2):
        raise ValueError(f"power must be 1 or 2, not {power!r}")
    if not (np.isfinite(epsilon) and epsilon >= 0.0):
        raise ValueError(f"epsilon must be a number of at least 0, not {epsilon}")
    if epsilon > 0.0 and cost != "svr":
        raise ValueError(f"the cost {cost!r} has no epsilon: leave it out, or use cost='svr'")
    if cost == "mp":
        return mean_1norm_difference(h, y) if power == 1 else mean_squared_difference(h, y)
    if cost == "svr":
        scores, ratings = pair_of_vectors(h, y)
        return none_if_nan(insensitive_costs(scores, ratings, float(epsilon))[power])
    return none_if_nan(_discordance(h, y)[_DISCORDANCE[cost, power]])


def _discordance(h: ArrayLike, y: ArrayLike) -> FloatArray:
    scores, ratings = pair_of_vectors(h, y)
    ordered, order = sort_descending(scores)
    return np.asarray(discordance(ordered, ratings[order])[0])
