"""The best k of many scores equal those of sorting, with ties, NaN and rounding errors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_rank.users.top_items import (
    BOTTOM,
    NONE,
    TOP,
    BestItems,
    LinearScores,
    add_linear,
    add_scored,
    forget,
    no_items,
    product_errors,
)

SIGNS = pytest.mark.parametrize("sign", [TOP, BOTTOM])


def naive(scores: Sequence[float], sign: float, k: int) -> list[int]:
    """Return the positions of the k best, ties in order; NaN is skipped."""
    there = [i for i in range(len(scores)) if scores[i] == scores[i]]
    return sorted(there, key=lambda i: (-sign * scores[i], i))[:k]


def found(best: BestItems, user: int) -> list[int]:
    count = best.counts[user]
    assert (best.positions[user, count:] == NONE).all()
    assert np.isnan(best.scores[user, count:]).all()
    return best.positions[user, :count].tolist()


@given(
    scores=st.lists(st.sampled_from([-1.5, 0.0, -0.0, 0.25, 3.0, float("nan")]), max_size=400),
    sign=st.sampled_from([TOP, BOTTOM]),
    k=st.integers(1, 12),
    cut=st.integers(0, 400),
)
@settings(max_examples=80)
def test_ties_keep_their_order_and_blocks_change_nothing(
    scores: list[float], sign: float, k: int, cut: int
) -> None:
    best = no_items(2, k)
    array = np.array(scores, dtype=np.float64)
    cut = min(cut, len(array))
    add_scored(best, 1, sign, array[:cut], 0)
    add_scored(best, 1, sign, array[cut:], cut)
    expected = naive(scores, sign, k)
    assert found(best, 1) == expected
    assert best.scores[1, : len(expected)].tolist() == array[expected].tolist()
    assert found(best, 0) == []


@SIGNS
@pytest.mark.parametrize("k", [1, 7, 32, 50])
@pytest.mark.parametrize("shape", ["normal", "rising", "falling", "alike", "gaps"])
def test_many_values_are_like_few(sign: float, k: int, shape: str) -> None:
    scores = np.random.default_rng(0).normal(size=5_000).round(2)
    if shape in ("rising", "falling"):
        scores = np.sort(scores)[:: 1 if shape == "rising" else -1].copy()
    elif shape == "alike":
        scores[:] = 0.5
    elif shape == "gaps":
        scores[np.arange(5_000) % 256 > 3] = np.nan  # nearly no lane has a value
    best = no_items(1, k)
    add_scored(best, 0, sign, scores, 0)
    assert found(best, 0) == naive(scores.tolist(), sign, k)


@SIGNS
def test_many_products_are_like_few(sign: float) -> None:
    models, features, offsets = problem(7, 4, 6_000, 5, coarse=True)
    seen = [list(range(0, 6_000, 2)), list(range(5_990)), [], [NONE]]
    scores = exact(models, features, offsets)
    for user, own in enumerate(seen):
        scores[user, [i for i in own if i >= 0]] = np.nan
    expected = [naive(row.tolist(), sign, 12) for row in scores]
    for block in (10_000, 2_500, 700):
        best, _ = screened(models, features, offsets, sign, 12, seen=seen, block=block)
        assert [found(best, user) for user in range(4)] == expected


def problem(
    seed: int, users: int, items: int, width: int, *, coarse: bool
) -> tuple[LinearScores, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    draw = (
        rng.integers(-2, 3, (users + items, width))
        if coarse
        else rng.normal(size=(users + items, width))
    )
    numbers = draw.astype(np.float32)
    offsets = rng.integers(0, 3, items) / 4 if coarse else rng.normal(size=items)
    models = LinearScores(
        numbers[:users].astype(np.float64), rng.integers(0, 2, users).astype(float),
        rng.normal(size=users),
    )  # fmt: skip
    return models, numbers[users:], offsets


def exact(models: LinearScores, features: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return all scores in double precision, naively."""
    return np.array(
        [
            [
                sum(float(w) * float(x) for w, x in zip(weights, row, strict=True))
                + weight * offset + constant
                for row, offset in zip(features, offsets, strict=True)
            ]
            for weights, weight, constant in zip(*models, strict=True)
        ]
    )  # fmt: skip


def screened(
    models: LinearScores, features: np.ndarray, offsets: np.ndarray, sign: float, k: int,
    *, noise: np.ndarray | float = 0.0, seen: Sequence[Sequence[int]] | None = None,
    block: int = 10_000,
) -> tuple[BestItems, np.ndarray]:  # fmt: skip
    longest = float(np.sqrt((features.astype(float) ** 2).sum(axis=1) + offsets**2).max())
    errors = product_errors(models, longest, float(np.abs(offsets).max()))
    left = np.column_stack([models.weights, models.offset_weights]).astype(np.float32)
    right = np.column_stack([features, offsets]).astype(np.float32)
    users = len(left)
    lists = seen or [[] for _ in range(users)]
    ends = np.cumsum([0, *map(len, lists)])
    flat = np.array([item for row in lists for item in row], dtype=np.int64)
    best, rows = no_items(users, k), np.arange(users)
    for start in range(0, len(features), block):
        part = slice(start, start + block)
        products = left @ right[part].T
        products += np.broadcast_to(noise, (users, len(features)))[:, part].astype(np.float32)
        forget(products, rows, flat, ends, start)
        add_linear(best, sign, products, rows, errors, models, right[part], offsets[part], start)
    return best, errors


@SIGNS
@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("width", [0, 1, 7, 33])
def test_linear_lists_are_those_of_exact_scores(sign: float, coarse: bool, width: int) -> None:
    models, features, offsets = problem(width, 6, 300, width, coarse=coarse)
    scores = exact(models, features, offsets)
    best, _ = screened(models, features, offsets, sign, 7)
    for user in range(6):
        expected = naive(scores[user].tolist(), sign, 7)
        if coarse:  # sums of small whole numbers are exact: ties are ties in both
            assert found(best, user) == expected
        np.testing.assert_allclose(best.scores[user], scores[user, expected], rtol=1e-12)


def test_what_products_are_off_by_is_within_the_bound() -> None:
    models, features, offsets = problem(1, 20, 500, 40, coarse=False)
    _, errors = screened(models, features, offsets, TOP, 3)
    left = np.column_stack([models.weights, models.offset_weights]).astype(np.float32)
    right = np.column_stack([features, offsets]).astype(np.float32)
    off = np.abs(left @ right.T + models.intercepts[:, None] - exact(models, features, offsets))
    assert (off.max(axis=1) <= errors).all()
    assert (errors < 1e-3).all()


@SIGNS
def test_errors_within_the_bound_change_no_list(sign: float) -> None:
    # items that differ by less than a product can be off
    models, features, offsets = problem(2, 5, 200, 8, coarse=False)
    features[:] = features[0] + np.random.default_rng(3).normal(size=features.shape) * 1e-7
    offsets[:] = 0.25
    calm, errors = screened(models, features, offsets, sign, 10)
    drawn = np.random.default_rng(4).uniform(-0.5, 0.5, (5, 200))
    shaken, _ = screened(models, features, offsets, sign, 10, noise=drawn * errors[:, None])
    blocks, _ = screened(models, features, offsets, sign, 10, block=37)
    assert calm.positions.tolist() == shaken.positions.tolist() == blocks.positions.tolist()
    assert calm.scores.tolist() == shaken.scores.tolist() == blocks.scores.tolist()


@SIGNS
def test_what_was_seen_is_in_no_list(sign: float) -> None:
    models, features, offsets = problem(5, 3, 60, 4, coarse=False)
    seen = [list(range(0, 60, 2)), [], [*range(58), NONE]]
    best, _ = screened(models, features, offsets, sign, 40, seen=seen, block=25)
    scores = exact(models, features, offsets)
    for user, own in enumerate(seen):
        scores[user, [i for i in own if i >= 0]] = np.nan
        assert found(best, user) == naive(scores[user].tolist(), sign, 40)
    assert best.counts.tolist() == [30, 40, 2]


def test_what_single_precision_cannot_hold_has_no_bound() -> None:
    models = LinearScores(np.array([[1e20], [1.0]]), np.zeros(2), np.zeros(2))
    errors = product_errors(models, 1e20, 0.0)
    assert errors[0] == np.inf
    assert np.isfinite(errors[1])
