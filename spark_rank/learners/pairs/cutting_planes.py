"""The cutting planes below a convex loss, and the point that minimises norm plus planes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spark_rank.learners.base import FloatArray
from spark_rank.learners.errors import NumericFailureError
from spark_rank.learners.pairs.simplex_qp import (
    FACTOR_LOST,
    Programme,
    append_plane,
    solve_simplex_qp,
)

_EPSILON = float(np.finfo(np.float64).eps)
_INITIAL_CAPACITY = 32
_SHIFT_RANGE = 100.0


class Iterate(NamedTuple):
    """A point of the search: ``w = Φᵀ dual``, its scores ``Φw`` and ``½‖w‖²``."""

    dual: FloatArray
    scores: FloatArray
    half_norm: float


class Bound(NamedTuple):
    """A lower bound of the minimum, and how much rounding may have raised it."""

    value: float
    rounding: float


class CuttingPlanes:
    """Planes ``R(h) ≥ g_k·h + b_k`` and the quadratic programme over them.

    ``min_w ½‖w‖² + max_k (g_k·Φw + b_k)`` has the dual ``max_β b·β − ½ βᵀGβ`` over the simplex,
    ``G_kl = g_k·K g_l``, with ``w = −Σ β_k Φᵀg_k``. Any β gives a lower bound of the minimum of
    ``½‖w‖² + R(Φw)``.

    New planes replace planes of weight 0, so about twice as many are stored as are active. At most
    min(m, d) + 2 are active in theory, so memory is O(m·min(m, d)) numbers.
    """

    def __init__(self, n_examples: int) -> None:
        self._n_planes = 0
        self._subgradients = np.zeros((_INITIAL_CAPACITY, n_examples))
        self._images = np.zeros((_INITIAL_CAPACITY, n_examples))
        self._qp = _empty_programme(_INITIAL_CAPACITY)
        self._roundings = np.zeros(_INITIAL_CAPACITY)
        self._support_size = 0
        self._shift = 1.0

    def add(
        self,
        subgradient: FloatArray,
        image: FloatArray,
        constant: float,
        rounding: float = 0.0,
    ) -> None:
        """Add the plane ``subgradient·h + constant``; `image` is ``K subgradient``. O(m n).

        The constant may be off by `rounding`.
        """
        if self._n_planes == len(self._images):
            self._make_room()
        new = self._n_planes
        products = self._subgradients[:new] @ image
        norm = float(subgradient @ image)
        if not np.isfinite(products.sum() + norm + constant):
            raise NumericFailureError("the solution overflowed: lower C, or scale X down")
        self._subgradients[new], self._images[new] = subgradient, image
        self._qp.linear[new], self._roundings[new] = constant, rounding
        self._qp.gram[new, :new] = self._qp.gram[:new, new] = products
        self._qp.gram[new, new] = max(norm, 0.0)  # rounding may leave a 0 below 0
        self._n_planes += 1
        if new == 0:
            self._qp.weights[0] = 1.0
            self._rebuild_factor()

    def minimise(self) -> tuple[Iterate, Bound]:
        """Return the minimiser of ``½‖w‖²`` plus the planes, and that minimum, a lower bound."""
        n = self._n_planes
        self._follow_scale()
        self._support_size = solve_simplex_qp(self._qp, n, self._support_size, self._shift)
        if self._support_size == FACTOR_LOST:
            self._rebuild_factor()
        weights = self._qp.weights[:n]
        weights /= weights.sum()
        dual = -(weights @ self._subgradients[:n])
        scores = -(weights @ self._images[:n])
        half_norm = max(0.5 * float(weights @ self._qp.gram[:n, :n] @ weights), 0.0)
        bound = float(weights @ self._qp.linear[:n]) - half_norm
        return Iterate(dual, scores, half_norm), Bound(bound, self._rounding(weights))

    def _rounding(self, weights: FloatArray) -> float:
        """Return how much rounding may have changed the bound of these weights.

        ``Σ β_k Φᵀg_k`` may be short while its terms are long; their rounding errors do not cancel.
        """
        n = len(weights)
        reach = float(weights @ np.sqrt(self._qp.gram.diagonal()[:n]))
        return float(weights @ self._roundings[:n]) + 0.5 * _EPSILON * reach**2

    def _active(self) -> NDArray[np.int64]:
        return np.flatnonzero(self._qp.weights[: self._n_planes])

    def _follow_scale(self) -> None:
        """Keep the shift near the norms of the planes in use, because others lose digits."""
        scale = float(self._qp.weights @ self._qp.gram.diagonal())
        if scale > 0.0 and not scale / _SHIFT_RANGE <= self._shift <= scale * _SHIFT_RANGE:
            self._shift = scale
            self._rebuild_factor()

    def _make_room(self) -> None:
        """Remove the planes of weight 0, and double the capacity if most planes are in use."""
        kept, old = self._active(), self._qp
        size, capacity = len(kept), len(old.weights)
        if 2 * size > capacity:
            capacity *= 2
        self._subgradients = _moved(self._subgradients, kept, capacity)
        self._images = _moved(self._images, kept, capacity)
        self._qp = _empty_programme(capacity)
        self._qp.gram[:size, :size] = old.gram[np.ix_(kept, kept)]
        self._qp.linear[:size] = old.linear[kept]
        self._roundings = np.resize(self._roundings[kept], capacity)
        self._qp.weights[:size] = old.weights[kept]
        self._n_planes = size
        self._rebuild_factor()

    def _rebuild_factor(self) -> None:
        active = self._active()
        self._support_size = len(active)
        for size, plane in enumerate(active):
            append_plane(self._qp, size, self._shift, int(plane))


def _empty_programme(capacity: int) -> Programme:
    square = (capacity, capacity)
    support = np.zeros(capacity, dtype=np.int64)
    return Programme(
        np.zeros(square), np.zeros(capacity), np.zeros(capacity), np.zeros(square), support
    )


def _moved(rows: FloatArray, kept: NDArray[np.int64], capacity: int) -> FloatArray:
    moved = np.zeros((capacity, rows.shape[1]))
    moved[: len(kept)] = rows[kept]
    return moved
