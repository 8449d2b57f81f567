"""Groups of users by the size of their training part; distributions are shown for each group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

ALL = "all"
COLD = "cold"


@dataclass(frozen=True)
class UserGroups:
    """Users with fewer than `min_ratings` training ratings are cold; `starts` begin the others."""

    min_ratings: int
    starts: tuple[int, ...]

    def names(self) -> tuple[str, ...]:
        """Return the names of the groups in order; each user is in exactly one."""
        return (COLD, *[name for name, _ in self._ranges()])

    def of(self, n_train: NDArray[np.integer[Any]]) -> pa.DictionaryArray:
        """Return the group of every user, by the number of training ratings."""
        starts = [start for _, start in self._ranges()]
        places = np.searchsorted(starts, n_train, side="right").astype(np.int8)
        return pa.DictionaryArray.from_arrays(places, pa.array(self.names()))

    def _ranges(self) -> list[tuple[str, int]]:
        starts = [self.min_ratings, *[s for s in sorted(self.starts) if s > self.min_ratings]]
        ends: Sequence[int | None] = [*[s - 1 for s in starts[1:]], None]
        return [(_name(start, end), start) for start, end in zip(starts, ends, strict=True)]


def _name(start: int, end: int | None) -> str:
    if end is None:
        return f"{start}+"
    return str(start) if start == end else f"{start}-{end}"
