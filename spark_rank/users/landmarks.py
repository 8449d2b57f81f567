"""Kernels on a budget: the part of a kernel's space that some examples, the landmarks, span.

With K the kernel matrix of the landmarks, ``φ(x) = K^(−1/2) k(x)`` are features whose inner
products are the kernel's wherever one of the two is a landmark (Nyström). A linear learner on
them is a kernel machine whose support are the landmarks.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spark_rank.learners.errors import LearnerError
from spark_rank.learners.kernel_machine import centre_gram
from spark_rank.learners.kernels import Kernel

# smaller eigenvalues, as a share of the greatest, count as rounding errors
_RANK_TOLERANCE = 1e-10

Matrix = NDArray[np.float64]


def landmark_root(kernel: Kernel, landmarks: Matrix, *, balanced: bool = False) -> Matrix:
    """Return a root of K⁻¹, with a column per direction that the landmarks span: O(L³).

    With `balanced` K is centred and the columns sum to 0: a shift of the points does not change
    them. They suffice for a learner with a free constant.
    """
    origin = kernel.origin(landmarks) if balanced else None
    points = landmarks if origin is None else landmarks - origin
    with np.errstate(over="ignore", invalid="ignore"):
        gram = kernel(points, points)
    if not np.isfinite(gram).all():
        raise LearnerError("the kernel overflowed: scale the features down")
    if balanced:
        centre_gram(gram)
    values, vectors = np.linalg.eigh(gram)
    kept = values > _RANK_TOLERANCE * values[-1]
    vectors = vectors[:, kept]
    if balanced:
        vectors = vectors - vectors.mean(axis=0)
    return np.asarray(vectors / np.sqrt(values[kept]))


def landmark_products(kernel: Kernel, X: Matrix, landmarks: Matrix, root: Matrix) -> Matrix:
    """Return ``k(x) root`` for every row of X; a common shift of the points costs no digits."""
    origin = kernel.origin(landmarks)
    if origin is None:
        return np.asarray(kernel(X, landmarks) @ root)
    points = landmarks - origin
    # the columns of the root sum to 0: of the terms of the shift only origin·point is left
    return np.asarray(kernel(X - origin, points) @ root + (origin @ points.T) @ root)
