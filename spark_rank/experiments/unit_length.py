"""Scales feature vectors to length 1, for learners whose step does not depend on the length."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def to_unit_length(features: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rows divided by their lengths; a row of zeros stays a row of zeros."""
    lengths = np.linalg.norm(features, axis=1, keepdims=True)
    return features / np.where(lengths > 0.0, lengths, 1.0)
