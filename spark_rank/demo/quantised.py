"""Numbers of 16 bits with a scale for every column, and how far they are from the exact ones."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
_GREATEST = 2**15 - 1


@dataclass(frozen=True)
class Quantised:
    """A matrix as whole numbers times the scale of their column."""

    values: NDArray[np.int16]
    scale: NDArray[np.float64]

    @classmethod
    def of(cls, matrix: NDArray[Any]) -> Quantised:
        """Return the nearest numbers; the greatest of a column decides its scale."""
        exact = np.asarray(matrix, dtype=np.float64)
        scale = np.abs(exact).max(axis=0, initial=0.0) / _GREATEST
        steps = np.divide(exact, scale, out=np.zeros_like(exact), where=scale > 0.0)
        return cls(np.rint(steps).astype(np.int16), scale)

    def numbers(self) -> Matrix:
        """Return the numbers that the page computes with."""
        return self.values * self.scale

    @property
    def error(self) -> float:
        """Return a bound on the difference of a number from the exact one: half a step."""
        return float(self.scale.max(initial=0.0)) / 2.0

    def as_json(self) -> dict[str, Any]:
        """Return the scales, and the whole numbers as little-endian bytes in base 64."""
        return {"scale": self.scale.tolist(), "values": encoded(self.values, "<i2")}


def encoded(values: NDArray[Any], kind: str) -> str:
    """Return the bytes of an array of this type in base 64."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode("ascii")
