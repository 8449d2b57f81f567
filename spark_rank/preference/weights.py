"""Weight functions ω(i, j) of two places in the true ranking (1 is the best).

All are symmetric, monotone (``ω(i, j), ω(j, k) ≤ ω(i, k)`` for i < j < k) and satisfy the triangle
inequality, which the guarantees of QuickSort need. All take arrays, and all are 0 or 1: two
different places have weight 1 if they are in different *parts* of the ranking, so a loss with such
a weight is a number of inversions between parts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spark_rank.preference.errors import InvalidSettingError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Weight = Callable[[IntArray, IntArray], FloatArray]


@runtime_checkable
class PartWeight(Protocol):
    """A weight that is 1 for two different places in different parts, else 0."""

    def __call__(self, i: ArrayLike, j: ArrayLike) -> FloatArray:
        """Return ω(i, j), elementwise."""

    def parts(self, places: IntArray) -> IntArray:
        """Return the part of each place: whole numbers that ascend with the places."""


@dataclass(frozen=True)
class Kemeny:
    """ω(i, j) = 1: every pair counts."""

    def __call__(self, i: ArrayLike, j: ArrayLike) -> FloatArray:
        """Return ω(i, j), elementwise."""
        return np.ones(np.broadcast_shapes(np.shape(i), np.shape(j)))

    def parts(self, places: IntArray) -> IntArray:
        """Return each place as a separate part."""
        return places


@dataclass(frozen=True)
class TopK:
    """ω(i, j) = 1 iff i ≤ k or j ≤ k: pairs among the items behind place k do not count."""

    k: int

    def __call__(self, i: ArrayLike, j: ArrayLike) -> FloatArray:
        """Return ω(i, j), elementwise."""
        return (np.minimum(i, j) <= self.k).astype(np.float64)

    def parts(self, places: IntArray) -> IntArray:
        """Return a separate part for each of the first k places, and one part for the others."""
        return np.minimum(places, self.k + 1)


@dataclass(frozen=True)
class KPartite:
    """ω(i, j) = 1 iff a cut c lies between: one of i, j is ≤ c and the other above."""

    cuts: tuple[int, ...]

    def __call__(self, i: ArrayLike, j: ArrayLike) -> FloatArray:
        """Return ω(i, j), elementwise."""
        return (self.parts(np.asarray(i)) != self.parts(np.asarray(j))).astype(np.float64)

    def parts(self, places: IntArray) -> IntArray:
        """Return the number of cuts in front of each place."""
        return np.searchsorted(np.array(self.cuts), places, side="left")


kemeny = Kemeny()


def top_k(k: int) -> TopK:
    """Return the weight by which a pair counts iff one of its true places is ≤ k."""
    _check_places((k,))
    return TopK(k)


def bipartite(k: int) -> KPartite:
    """Return the weight by which a pair counts iff one true place is ≤ k and the other is not.

    Symmetric, where the lecture prints only the direction i ≤ k < j. A truth of two groups of
    tied items is bipartite already, with the Kemeny weight: tied pairs never count.
    """
    return k_partite((k,))


def k_partite(cuts: tuple[int, ...]) -> KPartite:
    """Return the weight by which a pair counts iff a cut lies between its true places.

    `cuts` are the last places of all parts but the last: ``(2, 5)`` makes the parts 1–2, 3–5 and
    6 onwards.
    """
    _check_places(tuple(cuts))
    return KPartite(tuple(cuts))


def _check_places(cuts: tuple[int, ...]) -> None:
    whole = all(isinstance(c, (int, np.integer)) and not isinstance(c, bool) for c in cuts)
    if not whole or not cuts or cuts[0] < 1 or any(np.diff(cuts) <= 0):
        raise InvalidSettingError(f"{cuts} are not places: give ascending whole numbers from 1")
