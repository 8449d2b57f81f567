"""Generalisation bounds of every user's model, beside the costs that they bound."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_rank.learners.ridge import ridge_of
from spark_rank.metrics import margin_bound, stability_bound

# bound -> the columns of `metrics` with the cost that it adds to, itself, and what it bounds
BOUNDS_OF = {
    "stability": ("train_msd", "stability_bound", "msd"),
    "margin": ("train_margin_loss", "margin_bound", "misranking"),
}


@dataclass(frozen=True)
class BoundFacts:
    """What holds for all users: the learner behind each label, the sizes of things, levels.

    `squared_radius` is at least the largest ‖x‖² of all items, `rating_range` the largest rating
    minus the smallest, `offset_range` likewise of the item offsets.
    """

    learners: Mapping[str, str]
    squared_radius: float
    rating_range: float
    offset_range: float
    margin: float
    delta: float


def bound_columns(batch: pa.RecordBatch, facts: BoundFacts) -> dict[str, NDArray[np.float64]]:
    """Return both bounds for a batch of models; NaN where a model has none."""
    names = ("learner", "status", "kernel", "gamma", "hyperparameters", "offset_weight", "n_train",
             "norm", "expected_norm", "train_msd", "train_margin_loss")  # fmt: skip
    columns = [batch.column(name).to_pylist() for name in names]
    stability = np.full(batch.num_rows, np.nan)
    margin = np.full(batch.num_rows, np.nan)
    for row, values in enumerate(zip(*columns, strict=True)):
        model = dict(zip(names, values, strict=True))
        if model["status"] != "learned" or model["norm"] is None:
            continue
        kappa_squared = _kernel_bound(
            model["kernel"], model["gamma"], model["hyperparameters"], facts.squared_radius
        )
        if facts.learners.get(model["learner"]) == "mprank":
            stability[row] = _stability(model, kappa_squared, facts)
        if model["train_margin_loss"] is not None:
            margin[row] = _margin(model, kappa_squared, facts)
    return {"stability_bound": stability, "margin_bound": margin}


def _stability(model: Mapping[str, Any], kappa_squared: float, facts: BoundFacts) -> float:
    """Bound the MSD of MPRank (eq. 66).

    M is what the objective guarantees before any data are seen: ‖w‖² ≤ C·R̂(0) ≤ C·B², so that a
    score is at most κ√C·B away from the middle of targets that span B.
    """
    m = model["n_train"]
    C = _trade_off(model["hyperparameters"], m)
    spread = facts.rating_range
    if model["offset_weight"]:
        # what is expected of the user adds at most its norm times ‖x‖, on both sides
        expected = model["expected_norm"] or 0.0
        spread += facts.offset_range + 2.0 * np.sqrt(facts.squared_radius) * expected
    M = spread * (1.0 + np.sqrt(kappa_squared * C))
    if not np.isfinite(M**4 * C * kappa_squared):
        return np.nan  # an absurd C: the bound is beyond all numbers
    return stability_bound(
        model["train_msd"], m=m, C=C, kappa_squared=kappa_squared, M=float(M), delta=facts.delta,
        power=2,
    )  # fmt: skip


def _margin(model: Mapping[str, Any], kappa_squared: float, facts: BoundFacts) -> float:
    """Bound the misranking by the margin loss, with half as many independent pairs as items.

    Λ is the norm that the model has; a bound that were to hold for every norm at once would add
    a term of order √(log log Λ / m).
    """
    return margin_bound(
        model["train_margin_loss"],
        m=max(model["n_train"] // 2, 1),
        rho=facts.margin,
        radius=float(np.sqrt(kappa_squared)),
        norm_bound=model["norm"],
        delta=facts.delta,
    )


def _kernel_bound(
    kernel: str, gamma: float | None, hyperparameters: str, squared_radius: float
) -> float:
    """Return κ², at least K(x, x) for every item."""
    parameters = _parameters(hyperparameters)
    if kernel == "poly":
        inner = (1.0 if gamma is None else gamma) * squared_radius + parameters["coef0"]
        return float(inner ** parameters["degree"])
    linear = squared_radius if "linear" in kernel else 0.0
    return float(linear + (parameters["rbf_weight"] if "rbf" in kernel else 0.0))


def _trade_off(hyperparameters: str, m: int) -> float:
    """Return C of the objective ‖w‖² + C·R̂, whose ridge is m/(2C)."""
    parameters = _parameters(hyperparameters)
    ridge = ridge_of(parameters["C"], parameters["ridge"], parameters["growth"], m)
    return m / (2.0 * ridge)


@lru_cache(maxsize=256)
def _parameters(hyperparameters: str) -> dict[str, Any]:
    return dict(json.loads(hyperparameters))
