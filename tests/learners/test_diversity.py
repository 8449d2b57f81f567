"""Diversity of members against pairs counted one by one, and sums that add up."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ordinal_twins import naive_rank

from spark_rank.learners.errors import InvalidDataError
from spark_rank.learners.perceptrons.diversity import (
    direction_sums,
    disagreement,
    mean_angle,
    predicted_counts,
)


@given(st.integers(0, 1000), st.integers(2, 7))
def test_disagreement_is_that_of_all_pairs(seed: int, n_members: int) -> None:
    rng = np.random.default_rng(seed)
    X, coef = rng.normal(size=(5, 3)), rng.normal(size=(n_members, 3))
    thresholds = np.sort(rng.integers(-2, 3, size=(n_members, 3)), axis=1).astype(float)
    ranks = [
        [naive_rank(float(w @ x), list(b)) for w, b in zip(coef, thresholds, strict=True)]
        for x in X
    ]
    pairs = [a != b for row in ranks for a, b in itertools.combinations(row, 2)]
    counts = predicted_counts(X, coef, thresholds)
    assert counts.tolist() == [[row.count(r) for r in range(1, 5)] for row in ranks]
    assert disagreement(counts) == pytest.approx(sum(pairs) / len(pairs))


@given(st.integers(0, 1000), st.integers(1, 40))
def test_the_angle_is_that_of_the_mean_cosine(seed: int, n_members: int) -> None:
    rng = np.random.default_rng(seed)
    coef = rng.normal(size=(n_members, 4)) * 10.0 ** rng.integers(-3, 4)
    mean = coef.mean(axis=0)
    cosines = [w @ mean / np.linalg.norm(w) / np.linalg.norm(mean) for w in coef]
    expected = math.degrees(math.acos(min(np.mean(cosines), 1.0)))
    # near 0 degrees a cosine tells little
    assert mean_angle(direction_sums(coef), mean) == pytest.approx(expected, abs=1e-4)


@given(st.integers(0, 1000), st.integers(0, 6), st.integers(0, 6))
def test_directions_of_groups_add_up(seed: int, first: int, second: int) -> None:
    coef = np.random.default_rng(seed).normal(size=(7, 5))
    low, high = sorted((first, second))
    parts = [coef[:low], coef[low:high], coef[high:]]
    sums = sum(direction_sums(part) for part in reversed(parts))
    np.testing.assert_array_equal(sums, direction_sums(coef))


def test_what_has_no_direction_or_no_pair_is_undefined() -> None:
    still = np.zeros((3, 2))
    assert direction_sums(still).tolist() == [0, 0, 0]
    assert mean_angle(direction_sums(still), np.ones(2)) is None
    assert mean_angle(direction_sums(np.ones((3, 2))), np.zeros(2)) is None
    # members that never moved are not counted
    some = np.array([[0.0, 0.0], [3.0, 4.0]])
    assert mean_angle(direction_sums(some), np.array([3.0, 4.0])) == pytest.approx(0.0, abs=1e-4)
    assert disagreement(np.empty((0, 3), dtype=np.int64)) is None
    assert disagreement(np.array([[0, 1, 0]])) is None


def test_a_bad_example_is_named() -> None:
    with pytest.raises(InvalidDataError, match="row 1 of X"):
        predicted_counts([[1.0], [math.nan]], np.ones((2, 1)), np.zeros((2, 1)))
