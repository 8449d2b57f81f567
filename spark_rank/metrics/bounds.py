"""Generalisation bounds: from the error on a training sample to the expected one.

References
----------
Cortes, Mohri, Rastogi: An Alternative Ranking Problem for Search Engines, section 3.
Mohri, Rostamizadeh, Talwalkar: Foundations of Machine Learning, chapter on ranking.
"""

from __future__ import annotations

import math
from typing import Literal


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
    ``β = 4Cσ²κ²/m``, σ = 1 for n = 1 and 4M for n = 2 (Lemma 1 and Proposition 3). Useful where C
    is far below √m.

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
        At least |h(x) − y| for every item, seen or not.
    delta
        The chance that the bound fails.
    power
        The n of the cost.
    """
    _check(empirical, "empirical", least=0.0)
    for value, name in ((C, "C"), (kappa_squared, "kappa_squared"), (M, "M")):
        _check(value, name, least=0.0)
    _check_sample(m, delta)
    if power not in (1, 2):
        raise ValueError(f"power must be 1 or 2, not {power!r}")
    admissibility = 1.0 if power == 1 else 4.0 * M
    stability = 4.0 * C * admissibility**2 * kappa_squared / m
    deviation = (stability * m + (2.0 * M) ** power) * math.sqrt(2.0 / m * math.log(2.0 / delta))
    return empirical + 2.0 * stability + deviation


def margin_bound(
    empirical: float, *, m: int, rho: float, radius: float, norm_bound: float, delta: float
) -> float:
    """Bound the expected misranking of a kernel ranker with probability 1 − δ.

    ``R ≤ R̂_ρ + 4 √(r²Λ²/(ρ²m)) + √(ln(1/δ)/2m)``, for all h with ‖h‖ ≤ Λ at once. The sample is
    of m *independent pairs*; pairs formed among fewer items are not independent, and then m is
    to be the number of disjoint ones. A value above 1 says nothing.

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
        The chance that the bound fails.
    """
    _check(empirical, "empirical", least=0.0)
    _check(radius, "radius", least=0.0)
    _check(norm_bound, "norm_bound", least=0.0)
    if not (math.isfinite(rho) and rho > 0.0):
        raise ValueError(f"rho must be a positive number, not {rho}")
    _check_sample(m, delta)
    complexity = 4.0 * radius * norm_bound / (rho * math.sqrt(m))
    return empirical + complexity + math.sqrt(math.log(1.0 / delta) / (2.0 * m))


def _check(value: float, name: str, *, least: float) -> None:
    if not (math.isfinite(value) and value >= least):
        raise ValueError(f"{name} must be a number of at least {least:g}, not {value}")


def _check_sample(m: int, delta: float) -> None:
    if m < 1:
        raise ValueError(f"m must be at least 1, not {m}")
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta must lie between 0 and 1, not {delta}")
