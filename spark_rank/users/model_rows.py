"""Fitted learners as rows of the table `models`: all that scoring needs, without this package."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_rank.learners import OAP, MulticlassPerceptron, PRank, RankBoost
from spark_rank.users.fitting import Fitted, LandmarkScorer, Ranker
from spark_rank.users.prior_scores import Known
from spark_rank.users.problems import Problem

Row = dict[str, Any]
Vector = NDArray[np.float64]


def model_columns(
    fitted: Fitted,
    problem: Problem,
    known: Known,
    training_scores: Vector,
    item_ids: pa.StringArray,
) -> Row:
    """Return the columns from `kernel` to `ranker_alphas`, and `norm`; of voting ensembles members.

    What was expected of the user goes into the weights, so that only the item offset is left to
    add.
    """
    if isinstance(fitted, Ranker):
        return _of_ranks(fitted.learner, problem, known, item_ids)
    learner: Any = fitted.learner
    row: Row = {
        "intercept": getattr(learner, "intercept_", 0.0),
        "offset_weight": float(known.offset is not None),
    }
    for name, value in (
        ("kernel", getattr(learner, "kernel", None)),
        ("gamma", getattr(learner, "gamma_", None)),
        ("weights", known.expected),
    ):
        if value is not None:
            row[name] = value
    if isinstance(fitted, LandmarkScorer):
        support = problem.items[problem.train][fitted.positions]
        return row | {
            "kernel": fitted.kernel.name,
            "gamma": None if fitted.kernel.name == "linear" else fitted.kernel.gamma,
            "norm": float(np.linalg.norm(learner.coef_)),
            **_dual(fitted.dual, support, item_ids),
        }
    if isinstance(learner, RankBoost):
        return row | _base_rankers(learner)
    coef, dual = getattr(learner, "coef_", None), getattr(learner, "dual_coef_", None)
    if coef is not None:
        weights = coef if known.expected is None else coef + known.expected
        return row | {"weights": weights, "norm": float(np.linalg.norm(coef))}
    if dual is None:
        return row
    # ‖w‖² = αᵀKα: α times what the model adds to constant and offset
    added = training_scores - learner.intercept_
    if known.offset is not None:
        added = added - known.offset[problem.train]
    norm = float(np.sqrt(max(dual @ added, 0.0)))
    return row | {"norm": norm, **_dual(dual, problem.items[problem.train], item_ids)}


def _dual(dual: Vector, items: NDArray[np.int32], item_ids: pa.StringArray) -> Row:
    return {"dual": dual, "support_items": item_ids.take(pa.array(items))}


def _base_rankers(learner: RankBoost) -> Row:
    return {
        "ranker_features": learner.features_,
        "ranker_cuts": learner.cuts_,
        "ranker_below": learner.complements_,
        "ranker_alphas": learner.alphas_,
    }


def _of_ranks(
    learner: Any,
    problem: Problem,
    known: Known,
    item_ids: pa.StringArray,
) -> Row:
    row: Row = {"kernel": getattr(learner, "kernel", "linear"), "intercept": 0.0,
                "offset_weight": 0.0}  # fmt: skip
    if isinstance(learner, MulticlassPerceptron):
        return row | {"prototypes": on_features(learner.coef_, known).ravel()}
    if isinstance(learner, PRank) and (learner.kernel != "linear" or learner.readout == "voted"):
        return row | _supports(learner, problem, item_ids)
    if isinstance(learner, OAP) and learner.combine != "bpm":
        rules = learner.member_coef_, learner.member_thresholds_
        return row | {"members": member_rules(*rules, known), "member_votes": learner.votes()}
    return row | {
        **linear_rule(learner.coef_, known),
        "thresholds": learner.thresholds_,
        # an offset is a feature of unknown size: no bound could use the norm
        **({"norm": float(np.linalg.norm(learner.coef_))} if known.offset is None else {}),
    }


def member_rules(
    coef: NDArray[np.float64], thresholds: NDArray[np.float64], known: Known
) -> Vector:
    """Return rule after rule: weights on the features and the item offset, thresholds."""
    return np.column_stack([on_features(coef, known), thresholds]).ravel()


def linear_rule(coef: Vector, known: Known) -> Row:
    """Return the columns of weights on the features and on the item offset."""
    (weights,) = on_features(coef[None, :], known)
    return {"weights": weights[:-1], "offset_weight": float(weights[-1])}


def on_features(coef: NDArray[np.float64], known: Known) -> NDArray[np.float64]:
    """Return rows of weights on the features and, last, on the item offset."""
    if known.offset is None:
        return np.column_stack([coef, np.zeros(len(coef))])
    on_offset = coef[:, -1:]
    weights = coef[:, :-1] if known.expected is None else coef[:, :-1] + on_offset * known.expected
    return np.column_stack([weights, on_offset])


def _supports(learner: PRank, problem: Problem, item_ids: pa.StringArray) -> Row:
    n_examples = learner.n_rounds_ // learner.epochs
    moved = problem.items[problem.train][(learner.support_rounds_ - 1) % n_examples]
    voted = learner.readout == "voted"
    return {
        "gamma": None if learner.kernel == "linear" else learner.gamma,
        "thresholds": (learner.rule_thresholds_ if voted else learner.thresholds_).ravel(),
        "votes": learner.votes() if voted else None,
        **_dual(learner.support_coef_ if voted else learner.coef_, moved, item_ids),
    }
