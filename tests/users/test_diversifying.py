"""Maximal marginal relevance against its definition, item by item."""

from __future__ import annotations

import numpy as np
import pytest

from spark_rank.users.diversifying import diversified
from spark_rank.users.top_items import NONE

RNG = np.random.default_rng(4)
N_ITEMS, LENGTH, USERS = 30, 12, 25
VECTORS = RNG.normal(size=(N_ITEMS, 3))
UNITS = (VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)).astype(np.float32)
POSITIONS = np.array([RNG.permutation(N_ITEMS)[:LENGTH] for _ in range(USERS)])
VALUES = -np.sort(-RNG.normal(size=(USERS, LENGTH)), axis=1)


def naive(values: list[float], positions: list[int], share: float, size: int) -> list[int]:
    low, high, taken = min(values), max(values), list[int]()
    while len(taken) < size:
        best, gain = -1, -np.inf
        for place in set(range(len(values))) - set(taken):
            cosines = [float(UNITS[positions[place]].astype(float) @ UNITS[positions[t]])
                       for t in taken]  # fmt: skip
            worth = (1 - share) * (values[place] - low) / (high - low)
            worth -= share * max(cosines, default=0.0)
            if worth > gain:
                best, gain = place, worth
        taken.append(best)
    return taken


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_items_are_taken_by_worth_and_difference(share: float) -> None:
    found = diversified(VALUES, POSITIONS, UNITS, share, 5)
    for user in range(USERS):
        expected = naive(VALUES[user].tolist(), POSITIONS[user].tolist(), share, 5)
        assert found[user].tolist() == expected
    if share == 0.0:
        assert (found == np.arange(5)).all()


def test_short_lists_and_equal_values() -> None:
    positions, values = POSITIONS.copy(), VALUES.copy()
    positions[0, 3:], values[0, 3:] = NONE, np.nan
    values[1] = 2.0
    found = diversified(values, positions, UNITS, 0.5, 5)
    assert sorted(found[0, :3].tolist()) == [0, 1, 2]
    assert (found[0, 3:] == NONE).all()
    assert found[1, 0] == 0
    assert diversified(values, positions, UNITS, 0.5, 100).shape == (USERS, LENGTH)
