"""Intervals of a mean over users: beside SciPy, and how often they cover in simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from spark_rank.metrics import bootstrap_interval, describe, t_interval
from spark_rank.metrics.intervals import QUANTILES

samples = st.lists(st.floats(-100, 100), min_size=2, max_size=40)


@given(samples, st.sampled_from([0.5, 0.9, 0.99]))
def test_t_interval_is_that_of_scipy(sample: list[float], level: float) -> None:
    interval = t_interval(sample, level)
    assert interval is not None
    mean, scale = np.mean(sample), stats.sem(sample)
    reach = scale * stats.t.ppf(0.5 + level / 2, len(sample) - 1)
    assert_allclose(interval, (mean - reach, mean + reach), rtol=1e-9, atol=1e-9)


@given(samples, st.floats(-1000, 1000))
def test_intervals_move_with_the_values(sample: list[float], shift: float) -> None:
    moved = np.array(sample) + shift
    for interval in (t_interval, bootstrap_interval):
        before, after = interval(sample), interval(moved)
        assert before is not None
        assert after is not None
        assert_allclose(after, np.array(before) + shift, atol=1e-8)
        assert before.low <= before.high


@pytest.mark.parametrize("n", [40, 12_000])
def test_bootstrap_agrees_with_scipy(n: int) -> None:
    rng = np.random.default_rng(7)
    sample = rng.exponential(size=n)
    ours = bootstrap_interval(sample, 0.9, 4_000, seed=1)
    theirs = stats.bootstrap(
        (sample,),
        np.mean,
        confidence_level=0.9,
        n_resamples=2_000,
        method="percentile",
        batch=100,
        rng=np.random.default_rng(2),
    ).confidence_interval
    assert ours is not None
    # either end is known to about 2 standard errors / sqrt(resamples)
    assert_allclose(ours, theirs, atol=0.3 * stats.sem(sample))


@pytest.mark.parametrize(("n", "trials"), [(60, 400), (6_000, 200)])
def test_intervals_cover(n: int, trials: int) -> None:
    rng = np.random.default_rng(n)
    covered = np.zeros(2)
    for trial in range(trials):
        sample = rng.gamma(2.0, size=n)
        # users come in any order; here by value, the worst for blocks
        sample.sort()
        intervals = t_interval(sample, 0.9), bootstrap_interval(sample, 0.9, 200, seed=trial)
        covered += [i is not None and i.low <= 2.0 <= i.high for i in intervals]
    slack = 4 * np.sqrt(0.9 * 0.1 / trials)
    assert (np.abs(covered / trials - 0.9) <= slack).all(), covered / trials


def test_a_seed_decides_the_bootstrap() -> None:
    for n in (30, 6_001):
        sample = np.random.default_rng(n).normal(size=n)
        assert bootstrap_interval(sample, seed=3) == bootstrap_interval(sample, seed=3)
        assert bootstrap_interval(sample, seed=3) != bootstrap_interval(sample, seed=4)


def test_many_resamples_need_no_more_memory_than_a_few() -> None:
    few = bootstrap_interval(np.arange(4_000.0), resamples=3_000)
    assert few is not None
    assert_allclose(few, t_interval(np.arange(4_000.0)), rtol=0.01)


@given(samples)
def test_description_is_that_of_numpy(sample: list[float]) -> None:
    described = describe([*sample, np.nan], seed=5)
    assert described.users == len(sample)
    assert_allclose(described.mean, np.mean(sample), atol=1e-12)
    assert_allclose(described.sd, np.std(sample, ddof=1), atol=1e-12)
    assert described.quantiles == {q: np.quantile(sample, q) for q in QUANTILES}
    assert described.t_interval == t_interval(sample)
    assert described.bootstrap_interval == bootstrap_interval(sample, seed=5)


def test_undefined_is_none() -> None:
    for sample in ([], [np.nan], [None]):
        nothing = describe(sample)  # type: ignore[arg-type]
        assert (nothing.users, nothing.mean, nothing.sd, nothing.quantiles) == (0, None, None, None)
        assert nothing.t_interval is None
        assert nothing.bootstrap_interval is None
    one = describe([3.0])
    assert (one.users, one.mean, one.sd, one.quantiles) == (1, 3.0, None, None)
    assert one.t_interval is None
    assert one.bootstrap_interval is None
    assert t_interval([2.0, 2.0]) == (2.0, 2.0)
    assert bootstrap_interval([2.0, 2.0]) == (2.0, 2.0)


def test_wrong_input_is_refused() -> None:
    for interval in (t_interval, bootstrap_interval):
        with pytest.raises(ValueError, match="level must"):
            interval([1.0, 2.0], 95.0)
        with pytest.raises(ValueError, match="must be finite"):
            interval([1.0, np.inf])
        with pytest.raises(ValueError, match="must be a vector"):
            interval([[1.0]])
    with pytest.raises(ValueError, match="resamples must"):
        bootstrap_interval([1.0, 2.0], resamples=0)
