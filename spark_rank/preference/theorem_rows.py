"""One row per theorem and size: the measured value with its interval, beside the theory's value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

FloatArray = NDArray[np.float64]
Sample = tuple[FloatArray, ...]  # values, or numerators and denominators

_CONFIDENCE = 0.999
_ROUNDING = 1e-12


@dataclass(frozen=True)
class TheoremRow:
    """One theorem at one size.

    Attributes
    ----------
    theorem : the statement.
    kind : the kind of tournaments, or the algorithm.
    n, k : number of items, and the k of a top-k statement.
    trials : number of random tournaments (for statements on the optimal order, with ten runs of
        QuickSort each, averaged).
    measured : ratio of mean losses, mean calls, or R² of a fit; None where undefined.
    ci_low, ci_high : 99.9 % interval of `measured`; None where it is not a mean.
    reference : the value by the theorem.
    holds : whether the interval contains the reference of an equality, is on the right side of a
        bound, or an enumerated value or a fit reaches the reference. None if the trials do not
        decide it: the bound is within the interval, or there is nothing to measure.
    """

    theorem: str
    kind: str
    n: int
    k: int | None
    trials: int
    measured: float | None
    ci_low: float | None
    ci_high: float | None
    reference: float
    holds: bool | None


def equality(
    theorem: str, kind: str, n: int, sample: Sample, reference: float, *, k: int | None = None
) -> TheoremRow:
    """Return the row of a theorem that says the mean, or ratio of means, is `reference`."""
    interval = _interval(*sample)
    mean, low, high = interval or (None, None, None)
    holds = None
    if low is not None and high is not None:
        holds = low - _ROUNDING <= reference <= high + _ROUNDING
    return TheoremRow(theorem, kind, n, k, len(sample[0]), mean, low, high, reference, holds)


def at_most(
    theorem: str, kind: str, n: int, sample: Sample, reference: float, *, k: int | None = None
) -> TheoremRow:
    """Return the row of a theorem that says the ratio of means is at most `reference`."""
    interval = _interval(*sample)
    mean, low, high = interval or (None, None, None)
    holds = None
    if low is not None and high is not None:
        beyond, within = low > reference + _ROUNDING, high <= reference + _ROUNDING
        holds = True if within else False if beyond else None
    return TheoremRow(theorem, kind, n, k, len(sample[0]), mean, low, high, reference, holds)


def _interval(
    values: FloatArray, base: FloatArray | None = None
) -> tuple[float, float, float] | None:
    """Return mean(values) / mean(base) and its 99.9 % t interval, by the delta method.

    Without `base`, of the mean itself; None where mean(base) is 0.
    """
    below = np.ones_like(values) if base is None else base
    if below.mean() == 0.0:
        return None
    ratio = float(values.mean() / below.mean())
    spread = (values - ratio * below).std(ddof=1) / (below.mean() * np.sqrt(len(values)))
    reach = float(stdtrit(len(values) - 1, 0.5 + _CONFIDENCE / 2.0) * spread)
    return ratio, ratio - reach, ratio + reach
