"""The compiled oracle of the hinge costs beside sums over explicit pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from spark_rank.learners.compiled.bucket_sort import sort_with_items
from spark_rank.learners.pairs.hinges import (
    PairHinges,
    Sorted,
    evaluate,
    half_curvature,
    pairs_inside,
    room_for,
    sort_scores,
)
from spark_rank.learners.pairs.losses import HingeLoss, InsensitiveLoss

Floats = NDArray[np.float64]

# quarters: ties, and pairs exactly at the kink and at the ends of the zone
quarters = st.integers(-12, 12).map(lambda n: n / 4)
items = st.integers(1, 20).flatmap(
    lambda m: st.tuples(
        st.lists(quarters | st.floats(-3, 3), min_size=m, max_size=m).map(np.array),
        st.lists(st.sampled_from([1.0, 2.0, 3.0, 5.0]), min_size=m, max_size=m).map(np.array),
    )
)
widths = st.sampled_from([1e-6, 0.25, 0.5, 1.0, 4.0])


def costs(y: Floats) -> list[PairHinges]:
    """Return the costs of SVRank and RankSVM."""
    insensitive = [
        InsensitiveLoss(y, epsilon=epsilon, power=power, weight=0.5)
        for epsilon in (0.0, 0.25)
        for power in (1, 2)
    ]
    ordered = [HingeLoss(y, weight=2.0), HingeLoss(y, offset=np.linspace(0.0, 1.0, len(y)))]
    return [loss.hinges() for loss in (*insensitive, *ordered)]


def oracle(hinges: PairHinges, scores: Floats, width: float) -> tuple[Sorted, float, float, Floats]:
    room, pulls = room_for(hinges), np.empty(len(scores))
    sort_scores(hinges, scores, room)
    return room, *evaluate(hinges, room, width, pulls), pulls


def explicit_pairs(hinges: PairHinges) -> list[tuple[int, int]]:
    """Return all (i, j) whose excess counts."""
    members = [
        hinges.items[begin:end]
        for begin, end in zip(hinges.starts[:-1], hinges.starts[1:], strict=True)
    ]
    return [
        (i, j) for upper, lower in hinges.groups for i in members[upper] for j in members[lower]
    ]


def slope_at(excess: float, hinges: PairHinges, width: float) -> float:
    if hinges.power == 2:
        return max(excess, 0.0)
    return min(max(excess / width + 0.5, 0.0), 1.0)


@settings(max_examples=150)
@given(items, widths)
def test_cost_pulls_and_slack(pair: tuple[Floats, Floats], width: float) -> None:
    scores, y = pair
    for hinges in costs(y):
        _, cost, slack, pulls = oracle(hinges, scores, width)
        expected, plane, expected_pulls = 0.0, 0.0, np.zeros(len(y))
        for i, j in explicit_pairs(hinges):
            if i == j:
                continue
            excess = (scores[j] - hinges.margin) - scores[i]
            slope = slope_at(excess, hinges, width)
            expected += hinges.weight * max(excess, 0.0) ** hinges.power
            plane += hinges.weight * slope * excess
            expected_pulls[j] += hinges.power * hinges.weight * slope
            expected_pulls[i] -= hinges.power * hinges.weight * slope
        assert_allclose(cost, expected, rtol=1e-12, atol=1e-11)
        assert_allclose(pulls, expected_pulls, rtol=1e-12, atol=1e-11 / min(width, 1.0))
        assert_allclose(pulls.sum(), 0.0, atol=1e-9)
        # power 2 is smooth: its own gradient, and nothing between the plane and the cost
        expected_slack = expected - plane if hinges.power == 1 else 0.0
        assert_allclose(slack, expected_slack, atol=1e-11)


@settings(max_examples=60)
@given(items, widths, st.data())
def test_the_plane_is_under_the_cost(
    pair: tuple[Floats, Floats], width: float, data: st.DataObject
) -> None:
    """What every certificate stands on."""
    scores, y = pair
    other = np.array(data.draw(st.lists(quarters, min_size=len(y), max_size=len(y))))
    for hinges in costs(y):
        _, cost, slack, pulls = oracle(hinges, scores, width)
        _, elsewhere, _, _ = oracle(hinges, other, width)
        rounding = 1e-9 * (1.0 + np.abs(pulls).sum())
        assert elsewhere >= cost - slack + pulls @ (other - scores) - rounding


@settings(max_examples=60)
@given(items, widths)
def test_curvature_is_the_laplacian_of_the_zone(pair: tuple[Floats, Floats], width: float) -> None:
    scores, y = pair
    features = np.random.default_rng(len(y)).normal(size=(len(y), 3))
    for hinges in costs(y):
        room, _, _, _ = oracle(hinges, scores, width)
        products = np.full((len(y), 3), np.nan)
        half_curvature(hinges, room, features, products)
        expected = np.zeros((3, 3))
        n_pairs = 0
        for i, j in explicit_pairs(hinges):
            excess = (scores[j] - hinges.margin) - scores[i]
            half = 0.5 * width if hinges.power == 1 else 0.0
            if excess > -half and (excess < half or hinges.power == 2):
                expected += np.outer(features[j] - features[i], features[j] - features[i])
                n_pairs += 1
        half_of_it = features.T @ products
        assert_allclose(half_of_it + half_of_it.T, expected, rtol=1e-10, atol=1e-10)
        assert pairs_inside(room) == n_pairs


@given(items, st.sampled_from([0.0, 0.25, 1.0]), st.sampled_from([1, 2]))
def test_the_same_cost_as_the_loss(pair: tuple[Floats, Floats], epsilon: float, power: int) -> None:
    scores, y = pair
    offset = np.linspace(-1.0, 2.0, len(y))
    for loss in (
        InsensitiveLoss(y, epsilon=epsilon, power=power, weight=0.3),
        HingeLoss(y, weight=0.3, offset=offset),
    ):
        hinges = loss.hinges()
        _, cost, _, pulls = oracle(hinges, scores + hinges.shift, 0.1)
        value, gradient = loss(scores)
        assert_allclose(cost, value, rtol=1e-12, atol=1e-11)
        if hinges.power == 2:
            assert_allclose(pulls, gradient, rtol=1e-12, atol=1e-11)


def test_a_narrow_zone_keeps_its_digits() -> None:
    """Slopes near 0 at the edge of a zone 1e-7 wide, where scores are of the order of 1."""
    y = np.array([1.0, 2.0, 3.0])
    hinges = HingeLoss(y, weight=1e6).hinges()
    width, share = 1e-7, 1e-3
    # neighbours miss the margin by a little less than half the width
    gap = 1.0 + (0.5 - share) * width
    scores = np.array([0.1, 0.1 + gap, 0.1 + 2.0 * gap])
    _, cost, slack, pulls = oracle(hinges, scores, width)
    slopes = [((scores[k] + 1.0) - scores[k + 1]) / width + 0.5 for k in (0, 1)]
    assert_allclose(pulls, 1e6 * np.array([slopes[0], slopes[1] - slopes[0], -slopes[1]]))
    assert cost == 0.0
    expected = sum(slope * (0.5 - slope) * width for slope in slopes)
    assert_allclose(slack, 1e6 * expected, rtol=1e-6)


@pytest.mark.parametrize("size", [1, 2, 20, 25, 300])
@pytest.mark.parametrize("kind", ["spread", "tied", "crowded", "reversed", "one far away"])
def test_sort(size: int, kind: str) -> None:
    rng = np.random.default_rng(size)
    values = {
        "spread": rng.normal(size=size),
        "tied": rng.integers(0, 3, size).astype(float),
        "crowded": np.exp(40.0 * rng.normal(size=size)),
        "reversed": -np.arange(size, dtype=float),
        "one far away": np.append(rng.normal(size=size - 1), 1e300),
    }[kind]
    order, ordered = np.arange(size), values.copy()
    sort_with_items(order, ordered)
    assert_array_equal(ordered, np.sort(values))
    assert_array_equal(values[order], ordered)
    assert_array_equal(np.sort(order), np.arange(size))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_sort_survives_what_is_not_finite(bad: float) -> None:
    """The solver reports it afterwards; here no item may be lost."""
    values = np.random.default_rng(0).normal(size=40)
    values[[3, 17]] = bad
    order = np.arange(40)
    sort_with_items(order, values)
    assert_array_equal(np.sort(order), np.arange(40))
