"""Random tournaments and truths to test the theorems on; a tournament is a 0/1 matrix h(u, v)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

# h(0, 1) = h(1, 2) = h(2, 0) = 1
THREE_CYCLE = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])


def random_truth(n: int, rng: np.random.Generator, *, bipartite: bool) -> list[Any]:
    """Return a random order of 0 … n−1, or a split of them into two non-empty tied groups."""
    order = rng.permutation(n).tolist()
    if not bipartite:
        return order
    cut = int(rng.integers(1, n))
    return [frozenset(order[:cut]), frozenset(order[cut:])]


def random_tournament(n: int, rng: np.random.Generator) -> FloatArray:
    """Return a tournament whose every pair is decided by a fair coin."""
    above = np.triu(rng.random((n, n)) < 0.5, 1).astype(np.float64)
    return np.asarray(above + np.tril(1.0 - above.T, -1))


def noisy_tournament(truth: list[Any], rng: np.random.Generator, noise: float) -> FloatArray:
    """Return the truth as a tournament, each pair reversed with probability `noise`.

    A tie of the truth is decided by a fair coin.
    """
    groups = [sorted(g) if isinstance(g, frozenset) else [g] for g in truth]
    n = sum(len(group) for group in groups)
    places = np.empty(n)
    for place, group in enumerate(groups):
        places[group] = place
    agree = np.where(places[:, None] == places, 0.5, (places[:, None] < places).astype(float))
    chances = agree * (1.0 - noise) + (1.0 - agree) * noise
    above = np.triu(rng.random((n, n)) < chances, 1).astype(np.float64)
    return np.asarray(above + np.tril(1.0 - above.T, -1))


def transitive_tournament(n: int, rng: np.random.Generator) -> FloatArray:
    """Return the tournament of a random order."""
    return noisy_tournament(random_truth(n, rng, bipartite=False), rng, 0.0)
