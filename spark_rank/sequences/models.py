"""Writes an ensemble that was learned on a sequence in the columns of `ensemble_models`.

Where possible the rule has the same columns as a user's model in `models`: weights on features and
item offset, or coefficients of the landmarks, which are in the row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_limits

from spark_rank.learners import OAP
from spark_rank.learners.base import FloatArray
from spark_rank.sequences.examples import SequenceJob, SequenceSpec, Trial
from spark_rank.sequences.files import Supports
from spark_rank.sequences.landmarks import landmark_places
from spark_rank.users.model_rows import linear_rule, member_rules

Row = dict[str, Any]
Rules = tuple[FloatArray, FloatArray]


def rule_columns(
    job: SequenceJob,
    spec: SequenceSpec,
    trial: Trial,
    learned: OAP,
    members: Rules,
    supports: Supports | None,
) -> Row:
    """Return the combined rule or the members' votes, and the members if they are kept.

    `members` are their coefficients and thresholds, empty if they are not kept.
    """
    row: Row = {}
    if job.user is not None:
        row |= {"user_id": job.user.user_id, "reviewers": job.user.reviewers,
                "excluded_feature": job.user.excluded_feature}  # fmt: skip
    if supports is not None:
        return row | _expansions(job, trial, learned, members, supports)
    as_items = job.user is not None and spec.kernel == "linear"
    if learned.combine == "bpm":
        rule = {"weights": learned.coef_}
        row |= linear_rule(learned.coef_, spec.prior) if as_items else rule
    row |= _thresholds_or_votes(learned)
    if members[0].size:
        rules = np.column_stack(members).ravel()
        row["members"] = member_rules(*members, spec.prior) if as_items else rules
    return row


def _expansions(
    job: SequenceJob, trial: Trial, learned: OAP, members: Rules, supports: Supports
) -> Row:
    """Return rules on landmark features as sums of kernels: w·φ(x) is Σ_j dual_j K(x_j, x)."""
    points, root = supports.of(trial.part)
    row = _thresholds_or_votes(learned)
    if job.user is None:
        row["support_features"] = points.ravel()
    else:
        chosen = landmark_places(trial.part, len(points), job.seed)
        row["support_items"] = pa.array([job.user.item_ids[place] for place in chosen])
    if learned.combine == "bpm":
        row["dual"] = _duals(learned.coef_[None, :], root)[0]
    coef, thresholds = members
    if coef.size:
        row["members"] = np.column_stack([_duals(coef, root), thresholds]).ravel()
    return row


def _thresholds_or_votes(learned: OAP) -> Row:
    if learned.combine == "bpm":
        return {"thresholds": learned.thresholds_}
    return {"member_votes": learned.votes()}


def _duals(coef: FloatArray, root: FloatArray) -> FloatArray:
    """Return a row of coefficients per rule; one thread, so that sums have a fixed order."""
    with threadpool_limits(1):
        return np.asarray(coef @ root.T)
