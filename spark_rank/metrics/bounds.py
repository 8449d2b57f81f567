"""Generalisation bounds: from the error on a training sample to the expected error.

References
----------
Cortes, Mohri, Rastogi: An Alternative Ranking Problem for Search Engines, section 3.
Mohri, Rostamizadeh, Talwalkar: Foundations of Machine Learning, chapter on ranking.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from spark_rank.metrics.vectors import FloatArray


def stability_bound(
    empirical: float,
    *,
    m: int,
    C: float,
    kappa_squared: float,
    M: float,
    delta: float,
    power: Literal[1, 2],
) -> float:
    """Bound the expected pair cost of MPRank or SVRank with probability 1 − δ (Corollary 1).

    ``R ≤ R̂ + 8κ²C/m + 2(2κ²C + M) √(2 ln(2/δ)/m)`` for n = 1 (eq. 65),
    ``R ≤ R̂ + 128κ²CM²/m + 4M²(16κ²C + 1) √(2 ln(2/δ)/m)`` for n = 2 (eq. 66). Both are
    ``R̂ + 2β + (βm + (2M)^n) √(2 ln(2/δ)/m)`` of Theorem 1 with the stability
    ``β = 4Cσ²κ²/m``, σ = 1 for n = 1 and 4M for n = 2 (Lemma 1 and Proposition 3). Useful if C is
    far below √m.

    Parameters
    ----------
    empirical
        R̂, the mean of the cost over all m² pairs of the training sample: `pair_cost`.
    m
        The size of the sample.
    C
        The trade-off of the objective ``‖h‖² + C R̂``.
    kappa_squared
        κ², at least K(x, x) for every item.
    M
        At least |h(x) − y| for every item, in training or not.
    delta
        The probability that the bound fails.
    power
        The n of the cost.
    """
    return float(stability_bounds(
        empirical, m=m, C=C, kappa_squared=kappa_squared, M=M, delta=delta, power=power
    ))  # fmt: skip


def stability_bounds(
    empirical: ArrayLike,
    *,
    m: ArrayLike,
    C: ArrayLike,
    kappa_squared: float,
    M: ArrayLike,
    delta: float,
    power: Literal[1, 2],
) -> FloatArray:
    """Return `stability_bound` of many samples; the vectors have one entry per sample."""
    costs = _checked(empirical, "empirical")
    trade_offs, widest = _checked(C, "C"), _checked(M, "M")
    _checked(kappa_squared, "kappa_squared")
    sizes = _checked_sizes(m, delta)
    if power not in (1, 2):
        raise ValueError(f"power must be 1 or 2, not {power!r}")
    admissibility = 1.0 if power == 1 else 4.0 * widest
    stability = 4.0 * trade_offs * admissibility**2 * kappa_squared / sizes
    chance = np.sqrt(2.0 / sizes * math.log(2.0 / delta))
    deviation = (stability * sizes + (2.0 * widest) ** power) * chance
    return np.asarray(costs + 2.0 * stability + deviation)


def margin_bound(
    empirical: float, *, m: int, rho: float, radius: float, norm_bound: float, delta: float
) -> float:
    """Bound the expected misranking of a kernel ranker with probability 1 − δ.

    ``R ≤ R̂_ρ + 4 √(r²Λ²/(ρ²m)) + √(ln(1/δ)/2m)``, for all h with ‖h‖ ≤ Λ at once. The sample has
    m *independent pairs*. Pairs of fewer items are not independent; then m must be the number of
    disjoint pairs. A value above 1 is no information.

    Parameters
    ----------
    empirical
        R̂_ρ, the mean of Φ_ρ over the sample: `margin_loss`.
    m
        The number of pairs.
    rho
        The margin ρ, fixed before the data are seen.
    radius
        r, with r² at least K(x, x) for every item.
    norm_bound
        Λ, at least the norm of h in the space of the kernel.
    delta
        The probability that the bound fails.
    """
    return float(
        margin_bounds(empirical, m=m, rho=rho, radius=radius, norm_bound=norm_bound, delta=delta)
    )


def margin_bounds(
    empirical: ArrayLike,
    *,
    m: ArrayLike,
    rho: float,
    radius: float,
    norm_bound: ArrayLike,
    delta: float,
) -> FloatArray:
    """Return `margin_bound` of many samples; the vectors have one entry per sample."""
    costs, norms = _checked(empirical, "empirical"), _checked(norm_bound, "norm_bound")
    _checked(radius, "radius")
    if not (math.isfinite(rho) and rho > 0.0):
        raise ValueError(f"rho must be a positive number, not {rho}")
    sizes = _checked_sizes(m, delta)
    complexity = 4.0 * radius * norms / (rho * np.sqrt(sizes))
    return np.asarray(costs + complexity + np.sqrt(math.log(1.0 / delta) / (2.0 * sizes)))


def _checked(values: ArrayLike, name: str) -> FloatArray:
    numbers = np.asarray(values, dtype=np.float64)
    wrong = numbers[~(np.isfinite(numbers) & (numbers >= 0.0))]
    if wrong.size:
        raise ValueError(f"{name} must be a number of at least 0, not {wrong.flat[0]}")
    return numbers


def _checked_sizes(m: ArrayLike, delta: float) -> FloatArray:
    sizes = np.asarray(m, dtype=np.float64)
    wrong = sizes[~(np.isfinite(sizes) & (sizes >= 1))]
    if wrong.size:
        raise ValueError(f"m must be a number of at least 1, not {wrong.flat[0]:g}")
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta must lie between 0 and 1, not {delta}")
    return sizes
