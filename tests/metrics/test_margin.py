"""The margin loss beside the mean over explicit pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from spark_rank.metrics import margin_loss, pairwise_misranking

halves = st.integers(-8, 8).map(lambda n: n / 2)
vectors = st.integers(2, 40).flatmap(
    lambda m: st.tuples(
        st.lists(halves | st.floats(-4, 4), min_size=m, max_size=m),
        st.lists(st.integers(1, 6).map(float), min_size=m, max_size=m),
    )
)
margins = st.sampled_from([0.01, 0.5, 1.0, 1.7, 20.0])


def pair_mean(h: list[float], y: list[float], rho: float) -> float | None:
    """Φ_ρ of every pair with y_i > y_j, averaged."""
    losses = []
    for i in range(len(y)):
        for j in range(len(y)):
            if y[i] > y[j]:
                z = h[i] - h[j]
                losses.append(0.0 if z >= rho else 1.0 if z <= 0 else 1.0 - z / rho)
    return sum(losses) / len(losses) if losses else None


@given(vectors, margins)
def test_it_is_the_mean_over_pairs(pair: tuple[list[float], list[float]], rho: float) -> None:
    expected = pair_mean(*pair, rho)
    got = margin_loss(*pair, rho)
    if expected is None:
        assert got is None
    else:
        assert_allclose(got, expected, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("rho", [0.001, 0.2, 3.0])
def test_many_levels_and_cells(rho: float) -> None:
    rng = np.random.default_rng(0)
    h, y = rng.normal(size=300).tolist(), rng.normal(size=300).tolist()
    assert_allclose(margin_loss(h, y, rho), pair_mean(h, y, rho), rtol=1e-11)


@given(vectors, margins, margins)
def test_it_grows_with_the_margin_from_the_misranking(
    pair: tuple[list[float], list[float]], rho: float, other: float
) -> None:
    misranking = pairwise_misranking(*pair)
    if misranking is None:
        return
    low, high = (margin_loss(*pair, r) for r in sorted((rho, other)))
    assert low is not None
    assert high is not None
    assert misranking - 1e-12 <= low <= high + 1e-12 <= 1.0 + 2e-12
    # powers of two scale without rounding
    scaled = margin_loss([4 * v for v in pair[0]], pair[1], 4 * rho)
    assert_allclose(scaled, margin_loss(*pair, rho), rtol=1e-12)


def test_distant_groups_keep_their_digits() -> None:
    h, y = [0.0, 2.0**-10, 1e9, 1e9 + 2.0**-10], [1.0, 2.0, 1.0, 2.0]
    # pairs: two at a distance of 2^-10, one far apart the right way, one the wrong way
    expected = (2 * (1 - 2.0**-10 / 2.0**-9) + 0 + 1) / 4
    assert margin_loss(h, y, 2.0**-9) == expected


def test_undefined_and_refused() -> None:
    assert margin_loss([], [], 1.0) is None
    assert margin_loss([1.0], [1.0], 1.0) is None
    assert margin_loss([1.0, 2.0], [3.0, 3.0], 1.0) is None
    for rho in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="rho must be"):
            margin_loss([1.0, 2.0], [1.0, 2.0], rho)
    with pytest.raises(ValueError, match="one length"):
        margin_loss([1.0], [1.0, 2.0], 1.0)
    with pytest.raises(ValueError, match="finite"):
        margin_loss([1.0, np.inf], [1.0, 2.0], 1.0)


@given(st.integers(1, 40).flatmap(
    lambda m: st.tuples(
        st.lists(halves, min_size=m, max_size=m),
        st.lists(st.integers(1, 6).map(float), min_size=m, max_size=m),
    )
), st.sampled_from([0.5, 1.0, 20.0]))  # fmt: skip
def test_the_indicator_form_counts_every_pair_within_the_margin(
    pair: tuple[list[float], list[float]], rho: float
) -> None:
    h, y = pair
    within = [h[i] - h[j] <= rho for i in range(len(y)) for j in range(len(y)) if y[i] > y[j]]
    found, ramp = margin_loss(h, y, rho, "indicator"), margin_loss(h, y, rho)
    if not within:
        assert found is None
        return
    assert found == pytest.approx(np.mean(within))
    assert found >= ramp - 1e-12


def test_another_form_is_refused() -> None:
    with pytest.raises(ValueError, match="'ramp' or 'indicator'"):
        margin_loss([1.0], [1.0], 1.0, "hinge")  # type: ignore[arg-type]
