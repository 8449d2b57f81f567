"""Rankings of a finite set from a pairwise preference, which may be non-transitive.

References
----------
Ailon, Mohri: An Efficient Reduction of Ranking to Classification (QuickSort).
Balcan et al.: Robust Reductions from Ranking to Classification (sort by degree).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from spark_rank.preference.errors import InvalidSettingError
from spark_rank.preference.preferences import (
    Preference,
    as_preference,
    checked_preferences,
    item_array,
)

# degrees are sums of floats; the order of summation must not make equal degrees differ
_DEGREE_DECIMALS = 9


def quicksort_rank(
    items: Iterable[Any],
    prefer: Preference | Callable[[Any, Any], float],
    rng: np.random.Generator,
    top: int | None = None,
) -> list[Any]:
    """Return the items in the order of randomised QuickSort with `prefer` as the comparison.

    The pivot is uniform among the items of a part; u goes before the pivot with probability
    h(u, pivot). No pair is compared twice. The expected number of calls is O(n log n), whether or
    not the preference is transitive; for a transitive one it is ``2(n+1)H_n − 4n``.

    `top` = k returns only the first k items, in O(n + k log k) expected calls: parts that begin
    behind place k are not sorted. Parts are sorted from left to right, so the result is the first k
    of the whole order with the same generator.

    Equal arguments and generator states give equal results. The stack of parts is explicit, so n is
    not limited by recursion. Without items the result is an empty list.
    """
    preference, array = as_preference(prefer), item_array(items)
    n_wanted = len(array) if top is None else _checked_top(top, len(array))
    order = np.arange(len(array))
    parts = [(0, len(array))]
    while parts:
        start, stop = parts.pop()
        if start >= n_wanted:
            break  # parts come from left to right, so all others begin further right
        if stop - start < 2:
            continue
        at = start + int(rng.integers(stop - start))
        pivot, order[at] = order[at], order[start]
        others = order[start + 1 : stop]
        chances = checked_preferences(preference, array[pivot], array[others])
        behind = rng.random(len(others)) < chances
        before, after = others[~behind], others[behind]  # copies: `others` is a view of `order`
        middle = start + len(before)
        order[start:middle] = before
        order[middle] = pivot
        order[middle + 1 : stop] = after
        parts.append((middle + 1, stop))
        parts.append((start, middle))
    return list(array[order[:n_wanted]].tolist())


def degree_rank(
    items: Iterable[Any], prefer: Preference | Callable[[Any, Any], float]
) -> list[Any]:
    """Return the items by descending degree Σ_v h(u, v): how many items each is preferred to.

    Every pair is compared once, n(n−1)/2 calls. Degrees that agree to nine decimals tie, and ties
    keep the order of `items`. Without items the result is an empty list.
    """
    preference, array = as_preference(prefer), item_array(items)
    degrees = np.zeros(len(array))
    for i in range(len(array) - 1):
        chances = checked_preferences(preference, array[i], array[i + 1 :])
        degrees[i] += chances.sum()
        degrees[i + 1 :] += 1.0 - chances
    order = np.argsort(-np.round(degrees, _DEGREE_DECIMALS), kind="stable")
    return list(array[order].tolist())


def _checked_top(top: int, n_items: int) -> int:
    if isinstance(top, bool) or not isinstance(top, (int, np.integer)) or top < 1:
        raise InvalidSettingError(f"top={top!r} is not allowed: give a whole number of at least 1")
    return min(int(top), n_items)
