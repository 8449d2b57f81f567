"""Kernels on a budget: the part of a kernel's space that some examples, the landmarks, span.

With K the kernel matrix of the landmarks, ``φ(x) = K^(−1/2) k(x)`` are features whose inner
products are the kernel's wherever one of the two is a landmark (Nyström). A linear learner on
them is a kernel machine whose support are the landmarks.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from spark_rank.features.files import MappedFile, publish_array
from spark_rank.learners.errors import LearnerError
from spark_rank.learners.kernel_machine import centre_gram
from spark_rank.learners.kernels import Kernel
from spark_rank.learners.member_draws import member_keys
from spark_rank.sequences.files import SupportFiles, TrialPart

# eigenvalues of a kernel matrix below this share of the greatest are noise
_RANK_TOLERANCE = 1e-10
_ROWS_AT_ONCE = 4096

Matrix = NDArray[np.float64]


def landmark_root(kernel: Kernel, landmarks: Matrix, *, balanced: bool = False) -> Matrix:
    """Return a root of K⁻¹, a column per direction that the landmarks span: O(L³).

    With `balanced` K is centred and the columns sum to 0: the directions between the landmarks,
    which no shift of the points changes. A learner with a free constant needs no other.
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
    """Return ``k(x) root`` for every row of X; of a balanced root without the digits of a shift."""
    origin = kernel.origin(landmarks)
    if origin is None:
        return np.asarray(kernel(X, landmarks) @ root)
    points = landmarks - origin
    # the columns of the root sum to 0: only origin·point is left of what the shift takes off
    return np.asarray(kernel(X - origin, points) @ root + (origin @ points.T) @ root)


def landmark_places(part: TrialPart, budget: int, seed: int) -> NDArray[np.int64]:
    """Return which training examples of a trial are its landmarks.

    They are the first `budget` by a hash of seed, trial and place.
    """
    keys = member_keys(seed, -1 - part.trial, np.arange(part.n_train))
    return np.sort(np.argsort(keys, kind="stable")[:budget])


def landmark_features(
    features: NDArray[Any],
    parts: Sequence[TrialPart],
    kernel: Kernel,
    budget: int,
    seed: int,
    folder: Path,
) -> tuple[MappedFile, SupportFiles]:
    """Write φ(x) of every example of a sequence into a local folder, `budget` columns.

    With them come the landmarks of every trial and the root that takes weights on φ to theirs.
    O(T L²) in all, O(L) memory an example; on one thread, so that no sum depends on how many
    there are.
    """
    width = min(budget, max(part.n_train for part in parts))
    mapped = _empty_file(folder / "landmarks.npy", (len(features), width))
    points = _empty_file(folder / "all_points.npy", (len(parts), width, features.shape[1]))
    roots = _empty_file(folder / "all_roots.npy", (len(parts), width, width))
    with threadpool_limits(1):
        for place, part in enumerate(parts):
            chosen = part.start + landmark_places(part, budget, seed)
            landmarks = np.ascontiguousarray(features[chosen])
            root = landmark_root(kernel, landmarks)
            points[place, : len(landmarks)] = landmarks
            roots[place, : len(landmarks), : root.shape[1]] = root
            stop = part.start + part.n_train + part.n_test
            for start in range(part.start, stop, _ROWS_AT_ONCE):
                rows = slice(start, min(start + _ROWS_AT_ONCE, stop))
                mapped[rows, : root.shape[1]] = kernel(features[rows], landmarks) @ root
    supports = SupportFiles(
        tuple(parts), publish_array(folder, "points", points), publish_array(folder, "roots", roots)
    )
    return publish_array(folder, "mapped", mapped), supports


def _empty_file(path: Path, shape: tuple[int, ...]) -> Matrix:
    """Return zeros that are in a file and not in memory."""
    found: Matrix = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=shape)
    return found
