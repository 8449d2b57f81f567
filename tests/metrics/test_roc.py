"""The AUC, its interval and the ROC curve beside pairs, scikit-learn and DeLong's double sums."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import norm
from sklearn.metrics import roc_auc_score
from sklearn.metrics import roc_curve as sklearn_roc_curve

from spark_rank.metrics import auc, auc_interval, pairwise_misranking, roc_curve

Pair = tuple[list[float], list[bool]]
vectors: st.SearchStrategy[Pair] = st.integers(1, 40).flatmap(
    lambda m: st.tuples(
        st.lists(st.sampled_from([-1.0, 0.0, 0.5, 2.0]) | st.floats(-3, 3), min_size=m, max_size=m),
        st.lists(st.booleans(), min_size=m, max_size=m),
    )
)


def placements(h: list[float], positive: list[bool], tie: float) -> np.ndarray:
    """1, `tie` or 0 for every pair of a positive (rows) and a negative item (columns)."""
    up = [v for v, p in zip(h, positive, strict=True) if p]
    down = [v for v, p in zip(h, positive, strict=True) if not p]
    return np.array([[float(u > d) + tie * (u == d) for d in down] for u in up])


@given(vectors)
def test_auc_is_the_share_of_pairs(pair: Pair) -> None:
    h, positive = pair
    if all(positive) or not any(positive):
        assert auc(h, positive) is None
        assert auc(h, positive, ties="strict") is None
        return
    assert_allclose(auc(h, positive), placements(h, positive, 0.5).mean())
    assert_allclose(auc(h, positive), roc_auc_score(positive, h))
    strict = auc(h, positive, ties="strict")
    assert_allclose(strict, placements(h, positive, 0.0).mean())
    misranking = pairwise_misranking(h, np.array(positive, float))
    assert_allclose(strict, 1.0 - misranking, atol=1e-15)  # type: ignore[operator]


@given(vectors)
def test_auc_turns_around_with_the_scores(pair: Pair) -> None:
    h, positive = pair
    area = auc(h, positive)
    if area is not None:
        assert_allclose(auc([-v for v in h], positive), 1.0 - area, atol=1e-15)
        assert auc([4.0 * v for v in h], positive) == area
        assert auc(h[::-1], positive[::-1]) == area


@given(vectors)
def test_the_curve_is_that_of_scikit_learn(pair: Pair) -> None:
    h, positive = pair
    curve = roc_curve(h, positive)
    if all(positive) or not any(positive):
        assert curve is None
        return
    assert curve is not None
    for ours, theirs in zip(
        curve, sklearn_roc_curve(positive, h, drop_intermediate=False), strict=True
    ):
        assert_allclose(ours, theirs)
    assert_allclose(np.trapezoid(curve[1], curve[0]), auc(h, positive))


@given(vectors)
def test_the_interval_is_delongs(pair: Pair) -> None:
    h, positive = pair
    interval = auc_interval(h, positive, 0.9)
    share = placements(h, positive, 0.5)
    if share.ndim < 2 or min(share.shape) < 2:
        assert interval is None
        return
    variance = share.mean(1).var(ddof=1) / len(share) + share.mean(0).var(ddof=1) / share.shape[1]
    if variance < 1e-20:
        return
    reach = norm.ppf(0.95) * np.sqrt(variance)
    assert interval is not None
    assert_allclose(interval.low, max(0.0, share.mean() - reach), atol=1e-12)
    assert_allclose(interval.high, min(1.0, share.mean() + reach), atol=1e-12)


def test_the_interval_covers() -> None:
    rng = np.random.default_rng(5)
    positive = np.arange(160) < 60
    truth = norm.cdf(1.0 / np.sqrt(2.0))  # of two normals one standard deviation apart
    covered = 0
    for _ in range(400):
        interval = auc_interval(rng.normal(size=160) + positive, positive, 0.9)
        assert interval is not None
        covered += interval.low <= truth <= interval.high
    assert 0.84 <= covered / 400 <= 0.96, "four standard errors around 0.9"


def test_no_interval_without_variance() -> None:
    assert auc_interval([1.0, 2.0, 3.0, 4.0], [0, 0, 1, 1]) is None
    assert auc_interval([1.0, 1.0, 1.0, 1.0], [0, 0, 1, 1]) is None
    assert auc_interval([1.0, 2.0, 3.0], [0, 0, 1]) is None
    assert auc_interval([], []) is None


def test_wrong_input_is_refused() -> None:
    for function in (auc, roc_curve, auc_interval):
        assert function([], []) is None
        with pytest.raises(ValueError, match="one length"):
            function([1.0], [True, False])
        with pytest.raises(ValueError, match="one length"):
            function([[1.0]], [[True]])
        with pytest.raises(ValueError, match="finite"):
            function([np.nan], [True])
        with pytest.raises(ValueError, match="True and False"):
            function([1.0, 2.0], [1, 5])
    with pytest.raises(ValueError, match="ties must be"):
        auc([1.0], [True], ties="full")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="level must"):
        auc_interval([1.0], [True], level=95)
