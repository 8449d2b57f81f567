"""The generalisation bounds beside the closed forms in print, and in a simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from spark_rank.metrics import (
    margin_bound,
    margin_loss,
    mean_squared_difference,
    pairwise_misranking,
    stability_bound,
)

positive = st.floats(0.01, 50.0)
sizes = st.integers(1, 10_000)
chances = st.floats(1e-6, 0.5)
powers = st.sampled_from([1, 2])


@given(positive, sizes, positive, positive, positive, chances)
def test_stability_is_corollary_1(
    empirical: float, m: int, C: float, k2: float, M: float, delta: float
) -> None:
    root = math.sqrt(2 / m * math.log(2 / delta))
    first = empirical + 8 * k2 * C / m + 2 * (2 * k2 * C + M) * root
    second = empirical + 128 * k2 * C * M**2 / m + 4 * M**2 * (16 * k2 * C + 1) * root
    for power, expected in ((1, first), (2, second)):
        bound = stability_bound(
            empirical,
            m=m,
            C=C,
            kappa_squared=k2,
            M=M,
            delta=delta,
            power=power,  # type: ignore[arg-type]
        )
        assert_allclose(bound, expected, rtol=1e-12)


@given(positive, sizes, positive, positive, positive, chances)
def test_margin_is_its_closed_form(
    empirical: float, m: int, rho: float, r: float, norm: float, delta: float
) -> None:
    complexity = 4 * math.sqrt(r**2 * norm**2 / (rho**2 * m))
    expected = empirical + complexity + math.sqrt(math.log(1 / delta) / (2 * m))
    bound = margin_bound(empirical, m=m, rho=rho, radius=r, norm_bound=norm, delta=delta)
    assert_allclose(bound, expected, rtol=1e-12)


@given(powers, sizes, positive, chances, st.floats(1.1, 5.0))
def test_more_data_and_less_freedom_tighten(
    power: int, m: int, C: float, delta: float, factor: float
) -> None:
    def stability(m: int = m, C: float = C, delta: float = delta) -> float:
        return stability_bound(
            0.3,
            m=m,
            C=C,
            kappa_squared=1.0,
            M=2.0,
            delta=delta,
            power=power,  # type: ignore[arg-type]
        )

    def margin(m: int = m, rho: float = 1.0, norm_bound: float = C, delta: float = delta) -> float:
        return margin_bound(0.3, m=m, rho=rho, radius=1.0, norm_bound=norm_bound, delta=delta)

    assert 0.3 < stability(m=m + 1) < stability() < stability(C=C * factor)
    assert stability(delta=delta / factor) > stability()
    assert 0.3 < margin(m=m + 1) < margin() < margin(norm_bound=C * factor)
    assert margin(rho=factor) < margin() < margin(delta=delta / factor)


def test_stability_holds_for_the_learner_it_is_about() -> None:
    """MPRank in one dimension, in closed form: the true error is that of a large sample."""
    rng = np.random.default_rng(0)
    x_all = rng.uniform(-1, 1, 20_000)
    y_all = 0.5 * x_all + rng.uniform(-0.5, 0.5, len(x_all))
    C, m, delta, failures = 0.5, 200, 0.1, 0
    for _ in range(50):
        chosen = rng.integers(0, len(x_all), m)
        x, y = x_all[chosen], y_all[chosen]
        centred = x - x.mean()
        w = centred @ (y - y.mean()) / (m / (2 * C) + centred @ centred)
        empirical, true = (
            mean_squared_difference(w * x, y),
            mean_squared_difference(w * x_all, y_all),
        )
        assert empirical is not None
        assert true is not None
        largest = np.abs(w * x_all - y_all).max()
        bound = stability_bound(
            empirical, m=m, C=C, kappa_squared=1.0, M=largest, delta=delta, power=2
        )
        failures += true > bound
    assert failures <= 50 * delta


def test_margin_bound_holds_for_every_ranker_of_the_class() -> None:
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, (3_000, 2))
    y = (x @ [1.0, 0.5] + rng.normal(0, 0.3, len(x)) > 0).astype(float)
    angles = np.linspace(0, 2 * np.pi, 12)
    true = [pairwise_misranking(x @ [np.cos(a), np.sin(a)], y) for a in angles]
    rho, m, failures = 0.5, 2_000, 0
    for _ in range(20):
        up = x[rng.choice(np.flatnonzero(y == 1), m)]
        down = x[rng.choice(np.flatnonzero(y == 0), m)]
        held = []
        for angle, risk in zip(angles, true, strict=True):
            w = np.array([np.cos(angle), np.sin(angle)])
            empirical = np.clip(1 - (up - down) @ w / rho, 0, 1).mean()
            bound = margin_bound(
                empirical, m=m, rho=rho, radius=np.sqrt(2), norm_bound=1.0, delta=0.1
            )
            held.append(risk is not None and risk <= bound)
        failures += not all(held)
    assert failures <= 2
    # the sample of pairs above is what margin_loss averages over all pairs
    assert_allclose(
        margin_loss(x @ [1.0, 0.0], y, rho),
        np.clip(1 - (x[y == 1, 0][:, None] - x[y == 0, 0]) / rho, 0, 1).mean(),
        rtol=1e-10,
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [({"m": 0}, "m must"), ({"m": np.nan}, "m must"), ({"m": np.inf}, "m must"),
     ({"delta": 0.0}, "delta must"), ({"delta": 1.0}, "delta must"), ({"delta": np.nan}, "delta"),
     ({"C": np.nan}, "C must"), ({"power": np.nan}, "power must"),
     ({"C": -1.0}, "C must"), ({"M": np.nan}, "M must"), ({"kappa_squared": np.inf}, "kappa"),
     ({"power": 3}, "power must")],
)  # fmt: skip
def test_wrong_stability_arguments(change: dict[str, float], message: str) -> None:
    good = {"m": 10, "C": 1.0, "kappa_squared": 1.0, "M": 1.0, "delta": 0.1, "power": 1}
    with pytest.raises(ValueError, match=message):
        stability_bound(0.0, **(good | change))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "message"),
    [({"m": 0}, "m must"), ({"m": np.nan}, "m must"), ({"rho": np.nan}, "rho must"),
     ({"rho": 0.0}, "rho must"), ({"radius": -1.0}, "radius must"),
     ({"norm_bound": np.nan}, "norm_bound must"), ({"delta": 2.0}, "delta must")],
)  # fmt: skip
def test_wrong_margin_arguments(change: dict[str, float], message: str) -> None:
    good = {"m": 10, "rho": 1.0, "radius": 1.0, "norm_bound": 1.0, "delta": 0.1}
    with pytest.raises(ValueError, match=message):
        margin_bound(0.0, **(good | change))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="empirical"):
        margin_bound(np.nan, **good)  # type: ignore[arg-type]
