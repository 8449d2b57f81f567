"""The bipartite case: the area under the ROC curve, its interval, and the curve itself.

References
----------
Hanley, McNeil: The Meaning and Use of the Area under a ROC Curve, Radiology 143, 1982.
DeLong, DeLong, Clarke-Pearson: Comparing the Areas under Two or More Correlated ROC Curves: a
Nonparametric Approach, Biometrics 44, 1988.
Sun, Xu: Fast Implementation of DeLong's Algorithm, IEEE Signal Processing Letters 21, 2014.
Fawcett: An Introduction to ROC Analysis, Pattern Recognition Letters 27, 2006.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from spark_rank.compiled import njit
from spark_rank.metrics.intervals import Interval, check_level
from spark_rank.metrics.order import sort_descending
from spark_rank.metrics.vectors import (
    BoolArray,
    FloatArray,
    IntArray,
    none_if_nan,
    scores_and_classes,
)


def auc(
    h: ArrayLike, positive: ArrayLike, *, ties: Literal["half", "strict"] = "half"
) -> float | None:
    """Return the share of pairs of a positive and a negative item that h orders correctly.

    O(m log m). None if there is no such pair.

    Parameters
    ----------
    h
        The scores.
    positive
        True (or 1) for the positive items, False (or 0) for the negative ones.
    ties
        A pair of equal scores counts ½ (``half``, the area under the curve) or as wrong
        (``strict``, the lecture's 1 − R̂).
    """
    if ties not in ("half", "strict"):
        raise ValueError(f"ties must be 'half' or 'strict', not {ties!r}")
    scores, classes = scores_and_classes(h, positive)
    ordered, order = sort_descending(scores)
    false, true, _ = curve_counts(ordered, classes[order])
    return none_if_nan(area_under_curve(false, true, 0.5 if ties == "half" else 0.0))


def roc_curve(
    h: ArrayLike, positive: ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """Return false-positive rates, true-positive rates and their thresholds: O(m log m).

    Point t classifies the items with h ≥ threshold_t as positive; the thresholds are +∞, which
    gives (0, 0), and the distinct scores from high to low: equal scores make one point. None
    where one of the classes is empty.
    """
    scores, classes = scores_and_classes(h, positive)
    ordered, order = sort_descending(scores)
    false, true, last = curve_counts(ordered, classes[order])
    if false[-1] == 0 or true[-1] == 0:
        return None
    thresholds = np.concatenate([[np.inf], ordered[last[1:]]])
    return false / false[-1], true / true[-1], thresholds


def auc_interval(h: ArrayLike, positive: ArrayLike, level: float = 0.95) -> Interval | None:
    """Return DeLong's confidence interval of the AUC (ties ½), in O(m log m).

    The AUC is a two-sample U-statistic; its variance is ``var(V₁₀)/m₊ + var(V₀₁)/m₋``, where V₁₀
    holds for every positive item the share of negative items below it (ties ½) and V₀₁ for every
    negative item the share of positive items above it (DeLong and others 1988; by ranks instead
    of pairs, Sun and Xu 2014). The interval is the normal one, cut to [0, 1]. It is chosen over
    that of Cortes and Mohri (2004), which averages over all classifications with a given number
    of errors instead of using the scores at hand, and is wider.

    It is asymptotic: with a dozen items per class, or an AUC near 0 or 1, it covers the AUC less
    often than `level` says. None with fewer than two items in a class, or if the variance is 0
    (perfect separation, or equal scores): an interval without width would claim certainty.
    """
    check_level(level)
    scores, classes = scores_and_classes(h, positive)
    ordered, order = sort_descending(scores)
    area, variance = area_and_variance(ordered, classes[order])
    if not variance > 0.0:
        return None
    reach = float(ndtri(0.5 + level / 2.0)) * math.sqrt(variance)
    return Interval(max(0.0, area - reach), min(1.0, area + reach))


@njit(cache=True)
def area_under_curve(false: IntArray, true: IntArray, tie_share: float) -> float:
    """Return the AUC from the counts of a curve, in O(m); NaN where a class is empty."""
    last = len(false) - 1
    right = 0
    tied = 0
    for t in range(1, last + 1):
        negatives = false[t] - false[t - 1]
        right += negatives * true[t - 1]
        tied += negatives * (true[t] - true[t - 1])
    pairs = false[last] * true[last]
    return np.nan if pairs == 0 else (right + tie_share * tied) / pairs


@njit(cache=True)
def curve_counts(scores: FloatArray, positive: BoolArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return the negatives and positives down to every distinct score, after a first point (0, 0).

    The third vector holds the position of the last item of every point (−1 for the first). O(m)
    from descending scores.
    """
    m = len(scores)
    false = np.zeros(m + 1, np.int64)
    true = np.zeros(m + 1, np.int64)
    last = np.full(m + 1, -1)
    point, n_true = 0, 0
    for i in range(m):
        n_true += positive[i]
        point += i == 0 or scores[i] != scores[i - 1]
        false[point] = i + 1 - n_true  # equal scores overwrite their point
        true[point] = n_true
        last[point] = i
    return false[: point + 1], true[: point + 1], last[: point + 1]


@njit(cache=True)
def area_and_variance(scores: FloatArray, positive: BoolArray) -> tuple[float, float]:
    """Return the AUC (ties ½) and DeLong's estimate of its variance, in O(m).

    NaN with fewer than two items in a class. `scores` descend.
    """
    false, true, _ = curve_counts(scores, positive)
    last = len(false) - 1
    m_negative, m_positive = false[last], true[last]
    if min(m_negative, m_positive) < 2:
        return np.nan, np.nan
    area = area_under_curve(false, true, 0.5)
    of_positives, of_negatives = 0.0, 0.0
    for t in range(1, last + 1):
        negatives_below = m_negative - 0.5 * (false[t] + false[t - 1])
        deviation = negatives_below / m_negative - area
        of_positives += (true[t] - true[t - 1]) * deviation * deviation
        deviation = 0.5 * (true[t] + true[t - 1]) / m_positive - area
        of_negatives += (false[t] - false[t - 1]) * deviation * deviation
    variance_of_positives = of_positives / (m_positive - 1) / m_positive
    return area, variance_of_positives + of_negatives / (m_negative - 1) / m_negative


@njit(cache=True)
def interpolate_curve(
    false: IntArray, true: IntArray, grid: FloatArray, rates: FloatArray | NDArray[np.float32]
) -> None:
    """Write the true-positive rates at ascending false-positive rates into `rates`.

    Linear between ROC points; where the curve rises straight up, its highest point (Fawcett 2006,
    vertical averaging). O(m + grid) from the counts of a curve. NaN where a class is empty.
    """
    last = len(false) - 1
    if false[last] == 0 or true[last] == 0:
        rates[:] = np.nan
        return
    point = 0
    for g in range(len(grid)):
        while point < last and false[point + 1] / false[last] <= grid[g]:
            point += 1
        height = float(true[point])
        if point < last:
            run = false[point + 1] - false[point]
            share = (grid[g] * false[last] - false[point]) / run
            height += max(share, 0.0) * (true[point + 1] - true[point])
        rates[g] = height / true[last]
