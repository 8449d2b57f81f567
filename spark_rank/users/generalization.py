"""Computes generalisation bounds of every user's model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_rank.learners.ridge.systems import ridge_of
from spark_rank.metrics import margin_bounds, stability_bounds

# bound -> columns of `metrics`: the training cost that it starts from, the bound, what it bounds
BOUNDS_OF = {
    "stability": ("train_msd", "stability_bound", "msd"),
    "margin": ("train_margin_loss", "margin_bound", "misranking"),
}


# models with the same values here share the formula of their bound
_KIND = ("learner", "kernel", "gamma", "hyperparameters")


@dataclass(frozen=True)
class BoundFacts:
    """The facts that are the same for all users: stable learners, ranges, margin, confidence.

    `squared_radius` is at least the largest ‖x‖² of all items, `rating_range` the largest rating
    minus the smallest, `offset_range` the same of the item offsets. `stable` holds the
    labels of learners with a stability bound, which holds with probability 1 − `delta`.
    """

    stable: frozenset[str]
    squared_radius: float
    rating_range: float
    offset_range: float
    margin: float
    delta: float


def bound_columns(batch: pa.RecordBatch, facts: BoundFacts) -> dict[str, NDArray[np.float64]]:
    """Return both bounds of a batch of models; NaN where a model has none."""
    bounds = {name: np.full(batch.num_rows, np.nan) for name in ("stability_bound", "margin_bound")}
    learned = pc.equal(batch.column("status"), "learned")
    bounded = pc.and_(learned, pc.is_valid(batch.column("norm"))).to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(bounded)
    models = batch.take(pa.array(rows))
    for group in _groups_of_kind(models):
        group_models = models.take(pa.array(group))
        kind = {name: group_models.column(name)[0].as_py() for name in _KIND}
        kappa_squared = _kernel_bound(
            kind["kernel"], kind["gamma"], kind["hyperparameters"], facts.squared_radius
        )
        bounds["margin_bound"][rows[group]] = _margin(group_models, kappa_squared, facts)
        if kind["learner"] in facts.stable:
            parameters = _parameters(kind["hyperparameters"])
            bounds["stability_bound"][rows[group]] = _stability(
                group_models, parameters, kappa_squared, facts
            )
    return bounds


def _groups_of_kind(models: pa.RecordBatch) -> list[NDArray[np.int64]]:
    """Return groups of rows whose models are of one kind."""
    codes = np.zeros(models.num_rows, dtype=np.int64)
    for name in _KIND:
        encoded = models.column(name).dictionary_encode("encode")
        codes = codes * len(encoded.dictionary) + encoded.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order])) + 1
    return [part for part in np.split(order, starts) if len(part)]


def _stability(
    models: pa.RecordBatch, parameters: Mapping[str, Any], kappa_squared: float, facts: BoundFacts
) -> NDArray[np.float64]:
    """Bound the MSD of MPRank (eq. 66).

    M is what the objective guarantees for any data: ‖w‖² ≤ C·R̂(0) ≤ C·B², so that a score is at
    most κ√C·B away from the middle of targets whose range is B.
    """
    m = _numbers(models, "n_train")
    # C of the objective ‖w‖² + C·R̂, whose ridge is m/(2C)
    C = m / (2.0 * ridge_of(parameters["C"], parameters["ridge"], parameters["growth"], m))
    # the prior adds at most its norm times ‖x‖, in both directions
    expected = np.nan_to_num(_numbers(models, "expected_norm"))
    shifted = facts.offset_range + 2.0 * np.sqrt(facts.squared_radius) * expected
    offset = np.nan_to_num(_numbers(models, "offset_weight")) != 0.0
    spread = facts.rating_range + np.where(offset, shifted, 0.0)
    M = spread * (1.0 + np.sqrt(kappa_squared * C))
    costs = _numbers(models, "train_msd")
    # with a huge C the bound overflows
    with np.errstate(over="ignore"):
        defined = np.isfinite(M**4 * C * kappa_squared) & ~np.isnan(costs)
    bounds = np.full(len(m), np.nan)
    bounds[defined] = stability_bounds(
        costs[defined], m=m[defined], C=C[defined], kappa_squared=kappa_squared,
        M=M[defined], delta=facts.delta, power=2,
    )  # fmt: skip
    return bounds


def _margin(models: pa.RecordBatch, kappa_squared: float, facts: BoundFacts) -> NDArray[np.float64]:
    """Bound the misranking by the margin loss, with half as many independent pairs as items.

    Λ is the norm of the model. A bound for all norms at once would add a term of order
    √(log log Λ / m).
    """
    losses = _numbers(models, "train_margin_loss")
    defined = ~np.isnan(losses)
    bounds = np.full(len(losses), np.nan)
    bounds[defined] = margin_bounds(
        losses[defined],
        m=np.maximum(_numbers(models, "n_train")[defined] // 2, 1),
        rho=facts.margin,
        radius=float(np.sqrt(kappa_squared)),
        norm_bound=_numbers(models, "norm")[defined],
        delta=facts.delta,
    )
    return bounds


def _numbers(models: pa.RecordBatch, name: str) -> NDArray[np.float64]:
    """Return a column of numbers; null becomes NaN."""
    values = models.column(name).cast(pa.float64())
    return np.asarray(values.to_numpy(zero_copy_only=False))


def _kernel_bound(
    kernel: str, gamma: float | None, hyperparameters: str, squared_radius: float
) -> float:
    """Return κ², an upper bound of K(x, x) over the items."""
    parameters = _parameters(hyperparameters)
    if kernel == "poly":
        inner = (1.0 if gamma is None else gamma) * squared_radius + parameters["coef0"]
        return float(inner ** parameters["degree"])
    linear = squared_radius if "linear" in kernel else 0.0
    return float(linear + (parameters["rbf_weight"] if "rbf" in kernel else 0.0))


@lru_cache(maxsize=256)
def _parameters(hyperparameters: str) -> dict[str, Any]:
    return dict(json.loads(hyperparameters))
