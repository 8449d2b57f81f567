"""Slow twins and random problems that several tests share."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st

Matrix = list[list[float]]


@st.composite
def tournaments(draw: st.DrawFn, at_least: int = 1, at_most: int = 7) -> np.ndarray:
    """Draw a tournament: h(u, v) in {0, 1}, often with cycles."""
    n = draw(st.integers(at_least, at_most))
    matrix = np.full((n, n), 0.5)
    for u, v in itertools.combinations(range(n), 2):
        matrix[u, v] = draw(st.sampled_from([0.0, 1.0]))
        matrix[v, u] = 1.0 - matrix[u, v]
    return matrix


@st.composite
def majority_counts(draw: st.DrawFn, at_most: int = 6) -> np.ndarray:
    """Draw counts of up to four voters per pair and direction: draws and cycles are frequent."""
    n = draw(st.integers(1, at_most))
    flat = draw(st.lists(st.integers(0, 4), min_size=n * n, max_size=n * n))
    counts = np.array(flat, dtype=float).reshape(n, n)
    np.fill_diagonal(counts, 0.0)
    return counts


def score_twin(order: list[int], counts: np.ndarray) -> float:
    """Sum over all pairs, u before v, the voters who disagree."""
    return sum(counts[v, u] for u, v in itertools.combinations(order, 2))


def best_score(counts: np.ndarray) -> float:
    """Try all orders."""
    return min(score_twin(list(o), counts) for o in itertools.permutations(range(len(counts))))


def loss_twin(
    sigma: Callable[[int, int], float],
    places: list[int],
    weight: Callable[[int, int], float],
) -> float:
    """2/(n(n−1)) Σ_{u≠v} σ(u, v) τ*(v, u), as printed in the lecture."""
    n = len(places)
    total = 0.0
    for u in range(n):
        for v in range(n):
            if u != v and places[v] < places[u]:
                total += sigma(u, v) * weight(places[v], places[u])
    return 2.0 * total / (n * (n - 1))
