"""The rating scale of a page: its levels or ends, and the ranks that PRank learns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

# a scale without levels is cut into so many equal parts, the ranks of PRank
PARTS = 5


@dataclass(frozen=True)
class DemoScale:
    """Ranks 1..k: rank r + 1 begins at ``cuts[r − 1]``, and `levels` has a rating for every rank.

    With `free` any number from `low` to `high` is a rating, else the levels are the ratings. With
    `made` the cuts are the page's own.
    """

    low: float
    high: float
    levels: tuple[float, ...]
    cuts: tuple[float, ...]
    free: bool
    made: bool = False

    @classmethod
    def of_levels(cls, levels: tuple[float, ...], cuts: tuple[float, ...]) -> DemoScale:
        """Return a scale whose levels are all the ratings there are."""
        return cls(levels[0], levels[-1], levels, cuts, free=False)

    @classmethod
    def continuous(cls, low: float, high: float) -> DemoScale:
        """Return a scale without levels, cut into equal parts."""
        edges = np.linspace(low, high, PARTS + 1)
        middles = (edges[:-1] + edges[1:]) / 2.0
        cuts = edges[1:-1].tolist()
        return cls(low, high, tuple(middles.tolist()), tuple(cuts), free=True, made=True)

    def as_json(self) -> dict[str, Any]:
        """Return the scale as the page's script reads it."""
        return {
            "low": self.low, "high": self.high, "levels": list(self.levels),
            "cuts": list(self.cuts), "free": self.free, "made": self.made,
        }  # fmt: skip
