"""Landmarks of a sequence: the examples on which members with a kernel have coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from spark_rank.features.files import MappedFile, publish_array
from spark_rank.learners.kernels import Kernel
from spark_rank.learners.perceptrons.draws import member_keys
from spark_rank.sequences.files import SupportFiles, TrialPart
from spark_rank.users.landmarks import Matrix, landmark_root

_ROWS_AT_ONCE = 4096


def landmark_places(part: TrialPart, budget: int, seed: int) -> NDArray[np.int64]:
    """Return the positions of a trial's landmarks among its training examples.

    They are the first `budget` examples by a hash of seed, trial and position.
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
    """Write φ(x) of every example of a sequence into a local folder, in `budget` columns.

    Also write every trial's landmarks, and the root that turns weights on φ into coefficients of
    the landmarks. O(T L²) time and O(L) memory per example; on one thread, so that no sum depends
    on the number of threads.
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
    """Return an array of zeros in a memory-mapped file."""
    zeros: Matrix = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=shape)
    return zeros
