"""Where a list ends: at its length, or at a gap between the scores of two neighbours.

"One may choose to truncate the ordered list returned where a large gap in predicted preference is
found" (Cortes, Mohri, Rastogi, section 1).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

CUTS = ("none", "gap", "largest_gap")


def list_length(
    scores: ArrayLike, cut: str, gap: float = 0.0, share: float = 0.0, least: int = 1
) -> tuple[int, float]:
    """Return how many items of a list to keep, and the gap in scores that ends it.

    The gap is 0 if the list is not cut. O(k) for k items.

    Parameters
    ----------
    scores : the scores of the list, from high to low.
    cut : ``none`` keeps the whole list. ``gap`` ends it at the first gap of at least `gap`.
        ``largest_gap`` ends it at the largest gap, the first of several, if this gap is more than
        `share` of the difference between the first and the last score.
    least : the list keeps at least so many items, or all if it has fewer.
    """
    if cut not in CUTS:
        raise ValueError(f"cut must be one of {', '.join(CUTS)}, not {cut!r}")
    values = np.asarray(scores, dtype=np.float64)
    gaps = values[:-1] - values[1:]
    if not (gaps >= 0.0).all():
        raise ValueError("the scores of a list must descend: sort them from high to low first")
    first = max(least, 1) - 1
    allowed = gaps[first:]
    if cut == "none" or len(allowed) == 0:
        return len(values), 0.0
    if cut == "gap":
        found = np.flatnonzero(allowed >= gap)
        place = int(found[0]) if len(found) else -1
    else:
        place = int(allowed.argmax())
        if not allowed[place] > share * (values[0] - values[-1]):
            place = -1
    if place < 0:
        return len(values), 0.0
    return first + place + 1, float(allowed[place])
