"""Statistics over users: the mean of a per-user metric with its intervals, and its distribution.

Values that are NaN belong to users with an undefined metric and are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from spark_rank.metrics.vectors import FloatArray, IntArray

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_MAX_SINGLES = 1_000  # more users than this are resampled in blocks
_BLOCKS = 500
_DRAWS_AT_ONCE = 1 << 20


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float


@dataclass(frozen=True)
class Description:
    """The distribution of a metric over users; None where undefined.

    Attributes
    ----------
    users
        The number of users with the metric.
    mean, sd
        None without users; the standard deviation (n − 1) with fewer than two.
    quantiles
        The value at every level of `QUANTILES`, linear between order statistics as in NumPy; None
        with fewer than two users.
    t_interval, bootstrap_interval
        Of the mean; None with fewer than two users.
    """

    users: int
    mean: float | None
    sd: float | None
    quantiles: dict[float, float] | None
    t_interval: Interval | None
    bootstrap_interval: Interval | None


def describe(
    values: ArrayLike, *, level: float = 0.95, resamples: int = 1_000, seed: int = 0
) -> Description:
    """Return users, mean, sd, quantiles and both intervals of the mean.

    O(n log n) and the cost of `bootstrap_interval`.
    """
    sample = defined_values(values)
    several = len(sample) > 1
    quantiles = np.quantile(sample, QUANTILES) if several else None
    return Description(
        users=len(sample),
        mean=float(sample.mean()) if len(sample) else None,
        sd=float(sample.std(ddof=1)) if several else None,
        quantiles=None
        if quantiles is None
        else dict(zip(QUANTILES, quantiles.tolist(), strict=True)),
        t_interval=t_interval(sample, level),
        bootstrap_interval=bootstrap_interval(sample, level, resamples, seed),
    )


def t_interval(values: ArrayLike, level: float = 0.95) -> Interval | None:
    """Return Student's interval of the mean, ``mean ± t_{n−1} · sd/√n``: O(n). None if n < 2."""
    sample = defined_values(values)
    n = len(sample)
    if n < 2:
        check_level(level)
        return None
    return t_interval_of(float(sample.mean()), float(sample.std(ddof=1)), n, level)


def t_interval_of(mean: float, sd: float, n: int, level: float = 0.95) -> Interval:
    """Return Student's interval from the mean and standard deviation of n ≥ 2 values."""
    check_level(level)
    reach = float(stdtrit(n - 1, 0.5 + level / 2.0) * sd / np.sqrt(n))
    return Interval(mean - reach, mean + reach)


def bootstrap_interval(
    values: ArrayLike, level: float = 0.95, resamples: int = 1_000, seed: int = 0
) -> Interval | None:
    """Return the percentile bootstrap interval of the mean (Efron 1979). None if n < 2.

    Deterministic for a seed and an order of the values. Up to 1,000 users are drawn one by one:
    O(resamples · n). More users are put in a pseudo-random order, also from the seed, and cut into
    500 blocks, which are drawn instead: O(n + resamples · 500). The mean of a random block varies
    like the mean of as many single users, so the interval has the same width. Blocks only average
    out the skewness, which the mean of so many users does anyway.
    """
    check_level(level)
    if resamples < 1:
        raise ValueError(f"resamples must be at least 1, not {resamples}")
    sample = defined_values(values)
    if len(sample) < 2:
        return None
    # deviations from the mean, because a large common value would cost digits
    centre = float(sample.mean())
    deviations = sample - centre
    if len(sample) <= _MAX_SINGLES:
        means = _means_of_singles(deviations, resamples, seed)
    else:
        means = _means_of_blocks(deviations, resamples, seed)
    low, high = np.quantile(means, [0.5 - level / 2.0, 0.5 + level / 2.0])
    return Interval(centre + float(low), centre + float(high))


def _means_of_singles(sample: FloatArray, resamples: int, seed: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    means = np.empty(resamples)
    step = max(1, _DRAWS_AT_ONCE // len(sample))
    for start in range(0, resamples, step):
        count = min(step, resamples - start)
        drawn = rng.integers(0, len(sample), (count, len(sample)), dtype=np.int32)
        means[start : start + count] = sample[drawn].mean(axis=1)
    return means


def _means_of_blocks(sample: FloatArray, resamples: int, seed: int) -> FloatArray:
    """Cut the sample into blocks, and draw these."""
    order, times = _draws_of_blocks(len(sample), resamples, seed)
    starts = np.arange(_BLOCKS) * len(sample) // _BLOCKS
    sums = np.add.reduceat(sample[order], starts)
    sizes = np.diff(starts, append=len(sample)).astype(np.float64)
    return np.asarray((times @ sums) / (times @ sizes))


@lru_cache(maxsize=1)  # the next metric usually has the same number of users
def _draws_of_blocks(n: int, resamples: int, seed: int) -> tuple[IntArray, FloatArray]:
    """Return an order of n values, and how often every resample has each block."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(n)
    drawn = rng.integers(0, _BLOCKS, (resamples, _BLOCKS), dtype=np.int32)
    places = drawn + _BLOCKS * np.arange(resamples)[:, None]
    times = np.bincount(places.ravel(), minlength=resamples * _BLOCKS)
    return order, times.reshape(resamples, _BLOCKS).astype(np.float64)


def defined_values(values: ArrayLike) -> FloatArray:
    """Return the values that are not NaN (None counts as NaN), or raise ValueError."""
    sample = np.array(values, dtype=np.float64)
    if sample.ndim != 1:
        raise ValueError(f"values must be a vector, one per user, not of shape {sample.shape}")
    sample = sample[~np.isnan(sample)]
    if np.isinf(sample).any():
        raise ValueError("values must be finite, or NaN where a user has none")
    return sample


def check_level(level: float) -> None:
    """Raise ValueError unless the confidence level lies between 0 and 1."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie between 0 and 1, such as 0.95, not {level}")
