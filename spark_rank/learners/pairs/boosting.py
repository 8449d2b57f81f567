"""Compiled rounds of RankBoost over factorised pair weights.

The weight of a pair (x, x′), y_x < y_x′, is ``D(x, x′) = e^{φ(x) − φ(x′)} / T``: with a potential
φ per example and sums per level no pairs are stored. Exponents are relative to the largest of their
level, and T is a logarithm: after thousands of rounds the factors would overflow, while no product
here exceeds 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spark_rank.compiled import njit
from spark_rank.learners.base import FloatArray

TIE = 1e-10  # edges that differ by less tie, up to rounding: the first base ranker wins


class Weights(NamedTuple):
    """The factors of D, for m examples of k levels.

    ``e^{φ(x)} = lower · e^{lower_shift[level]}`` where x is the lower of a pair, and
    ``e^{−φ(x)} = upper · e^{−upper_shift[level]}`` where it is the higher; `lower` and `upper` are
    at most 1 and reach 1 in every level, and `lower_sums`, `upper_sums` add them up there.
    """

    lower: FloatArray
    upper: FloatArray
    lower_shift: FloatArray
    upper_shift: FloatArray
    lower_sums: FloatArray
    upper_sums: FloatArray


class Stumps(NamedTuple):
    """The base rankers: feature f has the cuts ``cuts[starts[f]:starts[f + 1]]``, ascending.

    `codes` (d×m) has for every value the position of its cut among those of its feature, or the
    number of these cuts if the value is missing.
    """

    codes: NDArray[np.int32]
    cuts: FloatArray
    starts: NDArray[np.int64]


@njit(cache=True, nogil=True)
def weigh_examples(potentials: FloatArray, levels: NDArray[np.int64], weights: Weights) -> float:
    """Fill in the factors of D and return log T, in O(m + k)."""
    lower_shift, upper_shift = weights.lower_shift, weights.upper_shift
    lower_shift[:] = -np.inf
    upper_shift[:] = np.inf
    for i in range(levels.shape[0]):
        lower_shift[levels[i]] = max(lower_shift[levels[i]], potentials[i])
        upper_shift[levels[i]] = min(upper_shift[levels[i]], potentials[i])
    lower_sums, upper_sums = weights.lower_sums, weights.upper_sums
    lower_sums[:] = 0.0
    upper_sums[:] = 0.0
    for i in range(levels.shape[0]):
        weights.lower[i] = np.exp(potentials[i] - lower_shift[levels[i]])
        weights.upper[i] = np.exp(upper_shift[levels[i]] - potentials[i])
        lower_sums[levels[i]] += weights.lower[i]
        upper_sums[levels[i]] += weights.upper[i]
    total = 0.0
    shift = -np.inf
    below = 0.0
    below_shift = -np.inf
    for level in range(1, lower_shift.shape[0]):
        below, below_shift = add_scaled(
            below, below_shift, lower_sums[level - 1], lower_shift[level - 1]
        )
        total, shift = add_scaled(
            total, shift, below * upper_sums[level], below_shift - upper_shift[level]
        )
    return shift + np.log(total)


@njit(cache=True, nogil=True)
def add_scaled(a: float, a_shift: float, b: float, b_shift: float) -> tuple[float, float]:
    """Return a e^{a_shift} + b e^{b_shift} as a number and a shift."""
    if a_shift >= b_shift:
        return a + b * np.exp(b_shift - a_shift), a_shift
    return a * np.exp(a_shift - b_shift) + b, b_shift


@njit(cache=True, nogil=True)
def net_weights(
    weights: Weights, levels: NDArray[np.int64], log_total: float, net: FloatArray
) -> None:
    """Write to `net` the weight of the pairs in which x is higher minus those in which it is lower.

    For a base ranker h, ``ε⁺ − ε⁻ = Σ_x net(x) h(x)``. O(m + k).
    """
    n_levels = weights.lower_shift.shape[0]
    lower_sums, upper_sums = weights.lower_sums, weights.upper_sums
    as_higher = np.zeros(n_levels)
    as_lower = np.zeros(n_levels)
    mass, shift = lower_sums[0], weights.lower_shift[0]
    for level in range(1, n_levels):
        as_higher[level] = mass * np.exp(shift - weights.upper_shift[level] - log_total)
        mass, shift = add_scaled(mass, shift, lower_sums[level], weights.lower_shift[level])
    mass, shift = upper_sums[n_levels - 1], -weights.upper_shift[n_levels - 1]
    for level in range(n_levels - 2, -1, -1):
        as_lower[level] = mass * np.exp(shift + weights.lower_shift[level] - log_total)
        mass, shift = add_scaled(mass, shift, upper_sums[level], -weights.upper_shift[level])
    for i in range(levels.shape[0]):
        higher = weights.upper[i] * as_higher[levels[i]]
        net[i] = higher - weights.lower[i] * as_lower[levels[i]]


@njit(cache=True, nogil=True)
def best_stump(stumps: Stumps, net: FloatArray, sums: FloatArray) -> tuple[int, int, bool]:
    """Return feature, position of the cut, and whether complement, of the largest ε⁺ − ε⁻.

    If base rankers tie: the lowest feature, then the lowest cut, then the direct one. The feature
    is −1 if no base ranker is better than chance. O(m d); `sums` has room for one number more than
    the greatest number of cuts of a feature.
    """
    best = 0.0
    feature, position, complement = -1, -1, False
    for f in range(stumps.codes.shape[0]):
        n_cuts = stumps.starts[f + 1] - stumps.starts[f]
        sums[: n_cuts + 1] = 0.0
        for i in range(net.shape[0]):
            sums[stumps.codes[f, i]] += net[i]
        rated = 0.0
        for cut in range(n_cuts):
            rated += sums[cut]
        below = 0.0
        for cut in range(n_cuts):
            if rated - below > best + TIE:
                best = rated - below
                feature, position, complement = f, cut, False
            if below > best + TIE:
                best = below
                feature, position, complement = f, cut, True
            below += sums[cut]
    return feature, position, complement


@njit(cache=True, nogil=True)
def split_masses(
    weights: Weights, levels: NDArray[np.int64], log_total: float, chosen: NDArray[np.bool_]
) -> tuple[float, float, float]:
    """Return ε⁺, ε⁻ and ε⁰ of the base ranker that is 1 on the `chosen` examples, in O(m + k)."""
    n_levels = weights.lower_shift.shape[0]
    lower_sums = np.zeros((2, n_levels))
    upper_sums = np.zeros((2, n_levels))
    for i in range(levels.shape[0]):
        side = 1 if chosen[i] else 0
        lower_sums[side, levels[i]] += weights.lower[i]
        upper_sums[side, levels[i]] += weights.upper[i]
    plus, minus, equal = 0.0, 0.0, 0.0
    zeros, ones, shift = 0.0, 0.0, -np.inf
    for level in range(1, n_levels):
        added_shift = weights.lower_shift[level - 1]
        higher_shift = max(shift, added_shift)
        kept, added = np.exp(shift - higher_shift), np.exp(added_shift - higher_shift)
        zeros = zeros * kept + lower_sums[0, level - 1] * added
        ones = ones * kept + lower_sums[1, level - 1] * added
        shift = higher_shift
        scale = np.exp(shift - weights.upper_shift[level] - log_total)
        plus += scale * zeros * upper_sums[1, level]
        minus += scale * ones * upper_sums[0, level]
        equal += scale * (zeros * upper_sums[0, level] + ones * upper_sums[1, level])
    return plus, minus, equal
