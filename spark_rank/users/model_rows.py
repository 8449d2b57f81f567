"""Turns fitted learners into rows of `models`, which hold all that scoring needs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_rank.users.fitting import Fitted
from spark_rank.users.prior_scores import Prior
from spark_rank.users.problems import Problem

Row = dict[str, Any]
Vector = NDArray[np.float64]


def model_columns(
    fitted: Fitted,
    problem: Problem,
    prior: Prior,
    training_scores: Vector,
    item_ids: pa.StringArray,
) -> Row:
    """Return the learner's own columns, and `norm`, as the table `models` has them.

    The prior's weights are added to the learned ones, so that scoring adds only the item offset.
    Positions of training examples become ids of items.
    """
    row = fitted.to_row()
    items = problem.items[problem.train]
    support = row.pop("support", None)
    columns = (
        _with_offset_feature(row, prior) if fitted.learner.of_ranks else _beside_offset(row, prior)
    )
    norm = _norm(row, fitted, prior, training_scores, problem)
    if norm is not None:
        columns["norm"] = norm
    if row.get("dual") is not None:
        supports = items if support is None else items[support]
        columns["support_items"] = item_ids.take(pa.array(supports))
    return {name: value for name, value in columns.items() if value is not None}


def _beside_offset(row: Row, prior: Prior) -> Row:
    """Return the columns of a learner that fits the ratings minus the offset."""
    columns = {"intercept": 0.0, **row, "offset_weight": float(prior.offset is not None)}
    if prior.expected is not None:
        coef = row.get("weights")
        columns["weights"] = prior.expected if coef is None else coef + prior.expected
    return columns


def _with_offset_feature(row: Row, prior: Prior) -> Row:
    """Return the columns of a learner whose last feature is the offset, if any."""
    columns = {**row, "intercept": 0.0, "offset_weight": 0.0}
    if row.get("weights") is not None:
        (weights,) = on_features(row["weights"][None, :], prior)
        columns |= {"weights": weights[:-1], "offset_weight": float(weights[-1])}
    if row.get("prototypes") is not None:
        columns["prototypes"] = on_features(row["prototypes"], prior).ravel()
    if row.get("members") is not None:
        rules, cuts = row["members"]
        columns["members"] = member_rules(rules, cuts, prior)
    return columns


def _norm(
    row: Row, fitted: Fitted, prior: Prior, training_scores: Vector, problem: Problem
) -> float | None:
    """Return the norm of the learned function in its kernel's space; None if no bound uses it."""
    learner: Any = fitted.learner
    if learner.of_ranks:
        # an offset is a feature of unknown size: no bound could use the norm
        coef = row.get("weights") if prior.offset is None else None
        return None if coef is None else float(np.linalg.norm(coef))
    coef = getattr(learner, "coef_", None)
    if coef is not None:
        return float(np.linalg.norm(coef))
    if row.get("dual") is None:
        return None
    # ‖w‖² = αᵀKα: α times what the model adds to constant and offset
    added = training_scores - row["intercept"]
    if prior.offset is not None:
        added = added - prior.offset[problem.train]
    return float(np.sqrt(max(row["dual"] @ added, 0.0)))


def member_rules(
    coef: NDArray[np.float64], thresholds: NDArray[np.float64], prior: Prior
) -> Vector:
    """Return the rules end to end: weights of features and item offset, then thresholds."""
    return np.column_stack([on_features(coef, prior), thresholds]).ravel()


def linear_rule(coef: Vector, prior: Prior) -> Row:
    """Return the columns `weights` (of the features) and `offset_weight`."""
    (weights,) = on_features(coef[None, :], prior)
    return {"weights": weights[:-1], "offset_weight": float(weights[-1])}


def on_features(coef: NDArray[np.float64], prior: Prior) -> NDArray[np.float64]:
    """Return rows with the weights of the features and, last, of the item offset."""
    if prior.offset is None:
        return np.column_stack([coef, np.zeros(len(coef))])
    on_offset = coef[:, -1:]
    weights = coef[:, :-1] if prior.expected is None else coef[:, :-1] + on_offset * prior.expected
    return np.column_stack([weights, on_offset])
