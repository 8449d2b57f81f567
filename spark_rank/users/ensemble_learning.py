"""Learns every user's ensembles: from whole user blocks, or group by group of the members.

With one group, a task learns all members of its users (`ensemble_batches`). With several, a task
learns one group (`part_batches`), and another task adds up the parts (`combine_batches`). The rows
are the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from spark_rank.features.files import FeatureFiles, ItemFeatures, open_distributed
from spark_rank.learners import OAP
from spark_rank.learners.errors import LearnerError
from spark_rank.learners.perceptrons.diversity import disagreement, mean_angle
from spark_rank.learners.perceptrons.rounds import IntArray
from spark_rank.tables.contract import Column, arrow_schema, ddl
from spark_rank.tables.contracts import ENSEMBLE_MODELS
from spark_rank.users.batches import build_batch
from spark_rank.users.ensembles import EnsembleSpec, curve_of, problem_number, split_members
from spark_rank.users.fitting import Limits, Ranker, Sample, with_offset
from spark_rank.users.learning import LearnJob, learn_user, learn_users, obstacle_to_learning
from spark_rank.users.measuring import with_training_metrics
from spark_rank.users.member_sums import (
    PART_COLUMNS,
    MemberPart,
    as_row,
    consecutive,
    part_of,
    sum_of_rows,
)
from spark_rank.users.model_rows import member_rules
from spark_rank.users.prior_scores import prior_of
from spark_rank.users.problems import Problem, problems
from spark_rank.users.specs import LearnerSpec, Params

ENSEMBLE_SCHEMA = arrow_schema(ENSEMBLE_MODELS.columns)
# the part of the first group carries the user's block, which `combine_batches` needs
BLOCK = (
    Column("user", "int", "dense user number"),
    Column("user_id", "string", "id as in the input"),
    Column("items", "array<int>", "dense item numbers"),
    Column("ratings", "array<float>", "ratings"),
    Column("n_train", "int", "how many of them are for training"),
    Column("bucket", "int", "bucket of the user"),
)
_BLOCK_SCHEMA = arrow_schema(BLOCK)
_USER_PARTS = (*PART_COLUMNS, *BLOCK)
_USER_PART_SCHEMA = arrow_schema(_USER_PARTS)
USER_PART_DDL = ddl(_USER_PARTS)
_ROWS_AT_ONCE = 500

Row = dict[str, Any]
OpenFeatures = Callable[[FeatureFiles], ItemFeatures]
Part = Callable[[EnsembleSpec, Problem, LearnJob], MemberPart]


def ensemble_batches(
    batches: Iterator[pa.RecordBatch], job: LearnJob, open_features: OpenFeatures = open_distributed
) -> Iterator[pa.RecordBatch]:
    """Turn user blocks into rows of `ensemble_models`, all members of a user in one task."""
    features = open_features(job.files)

    def learn(batch: pa.RecordBatch, specs: Sequence[LearnerSpec]) -> pa.RecordBatch:
        rows = [
            ensemble_row(problem, spec, job, features.item_ids, all_members)
            for problem in problems(batch, features, job.panel)
            for spec in ensembles_of(specs)
        ]
        return build_batch(with_training_metrics(rows, job.margin), ENSEMBLE_SCHEMA)

    return learn_users(batches, job, learn, ENSEMBLE_SCHEMA)


def part_batches(
    batches: Iterator[pa.RecordBatch],
    job: LearnJob,
    group: int,
    groups: int,
    open_features: OpenFeatures = open_distributed,
) -> Iterator[pa.RecordBatch]:
    """Turn user blocks into parts: one group of members of every user and ensemble."""
    features = open_features(job.files)
    for batch in batches:
        rows = []
        users_problems = problems(batch, features, job.panel)
        for problem, block in zip(users_problems, batch.to_pylist(), strict=True):
            for spec in ensembles_of(job.specs):
                split = split_members(spec.params["n_members"], groups)
                if group < len(split):
                    row = _part_row(problem, spec, job, *split[group])
                    rows.append(row | block if group == 0 else row)
        yield build_batch(rows, _USER_PART_SCHEMA)


def combine_batches(
    batches: Iterator[pa.RecordBatch], job: LearnJob, open_features: OpenFeatures = open_distributed
) -> Iterator[pa.RecordBatch]:
    """Turn parts, sorted by user and ensemble, into rows of `ensemble_models`."""
    features = open_features(job.files)
    specs = {spec.label: spec for spec in ensembles_of(job.specs)}
    finished: list[Row] = []
    for (_, label), rows in consecutive(batches, ("problem", "learner")):
        (block,) = [row for row in rows if row["first_member"] == 0]
        one = pa.RecordBatch.from_pylist([block], schema=_BLOCK_SCHEMA)
        (problem,) = problems(one, features, job.panel)
        parts = _sum_of(rows)
        row = ensemble_row(problem, specs[label], job, features.item_ids, parts)
        finished.append(row | {"bucket": block["bucket"]})
        if len(finished) == _ROWS_AT_ONCE:
            yield build_batch(with_training_metrics(finished, job.margin), ENSEMBLE_SCHEMA)
            finished = []
    if finished:
        yield build_batch(with_training_metrics(finished, job.margin), ENSEMBLE_SCHEMA)


def ensembles_of(specs: Sequence[LearnerSpec]) -> list[EnsembleSpec]:
    """Return the ensembles among the learners of a job."""
    return [spec for spec in specs if isinstance(spec, EnsembleSpec)]


def all_members(spec: EnsembleSpec, problem: Problem, job: LearnJob) -> MemberPart:
    """Learn all members of one user's ensemble."""
    return some_members(spec, problem, job, 0, spec.params["n_members"])


def some_members(
    spec: EnsembleSpec, problem: Problem, job: LearnJob, first: int, last: int
) -> MemberPart:
    """Learn the members first to last − 1 of one user's ensemble."""
    prior = prior_of(problem, spec)
    sample = prior.sample(problem)
    ensemble, ranks = _begin(spec, problem, sample, job.limits)
    X = with_offset(sample.X, sample.offset)
    group = ensemble.train_members(X, ranks, first=first, last=last)
    held_out = with_offset(*prior.held_out(problem))
    return part_of(group, ensemble.combine, held_out, keep_rules=spec.keep_members)


def ensemble_row(
    problem: Problem, spec: EnsembleSpec, job: LearnJob, item_ids: pa.StringArray, members: Part
) -> Row:
    """Return a row of `ensemble_models`; an error of one user is recorded in the row."""
    columns: Row = {}

    def fit(
        _learner_spec: LearnerSpec, params: Params | None, sample: Sample, limits: Limits
    ) -> Ranker:
        part = members(spec, problem, job)
        ensemble, ranks = _begin(spec, problem, sample, limits)
        X = with_offset(sample.X, sample.offset)
        predicted, _ = part.sums.round_ranks(ensemble.combine, X)
        losses = np.abs(predicted - ranks)
        columns.update(
            n_members=ensemble.n_members,
            online_loss=int(losses.sum()) / len(losses),
            curve=curve_of(losses),
            **member_columns(part),
        )
        if ensemble.combine == "bpm" and spec.keep_members:
            rules = split_rules(part, part.sums.thresholds.shape[1] + 1)
            columns["members"] = member_rules(*rules, prior_of(problem, spec))
        return Ranker(combined(ensemble, part))

    row = learn_user(problem, spec, job, item_ids, fit)
    return row | columns if row["status"] != "failed" else row


def member_columns(part: MemberPart) -> Row:
    """Return the members' counts while learning, and how much they differ at the end."""
    return {
        "member_presented": part.presented,
        "member_correct": part.correct,
        "member_updates": part.updates,
        "angle": mean_angle(part.directions, part.sums.mean_rule()[0]),
        "disagreement": disagreement(part.test_counts),
    }


def combined(ensemble: OAP, part: MemberPart) -> OAP:
    """Return the fitted ensemble; `part` is the sum of all its members."""
    coef, thresholds = part.sums.mean_rule()
    member_coef, member_thresholds = split_rules(part, len(thresholds) + 1)
    learned = {
        "coef_": coef,
        "thresholds_": thresholds,
        "member_coef_": member_coef,
        "member_thresholds_": member_thresholds,
        "member_correct_": part.correct,
        "n_rounds_": part.sums.first_round + part.sums.n_rounds,
        "total_loss_": None,  # only the curve needs it
    }
    return OAP.from_params({**ensemble.get_params(), **learned})


def split_rules(part: MemberPart, n_ranks: int) -> tuple[Any, Any]:
    """Return the coefficients and the thresholds of the members."""
    width = part.rules.shape[1] - (n_ranks - 1)
    rules = np.ascontiguousarray(part.rules[:, : max(width, 0)])
    return rules, np.ascontiguousarray(part.rules[:, max(width, 0) :])


def _begin(
    spec: EnsembleSpec, problem: Problem, sample: Sample, limits: Limits
) -> tuple[OAP, IntArray]:
    if limits.scale is None:
        raise LearnerError("a learner of ranks needs a rating scale with levels")
    ensemble = spec.ensemble(limits.scale.n_ranks, problem_number(problem.user_id))
    return ensemble, limits.scale.ranks(sample.ratings)


def _part_row(problem: Problem, spec: EnsembleSpec, job: LearnJob, first: int, last: int) -> Row:
    """Return the part of a group as a row; without values if it cannot be learned."""
    row: Row = {"problem": problem.user_id, "learner": spec.label, "first_member": first}
    if obstacle_to_learning(problem, job.min_ratings) is not None:
        return row
    try:
        return as_row(problem.user_id, spec.label, some_members(spec, problem, job, first, last))
    except Exception:  # noqa: BLE001 - `combine_batches` learns again and records the error
        return row


def _sum_of(rows: Sequence[Row]) -> Part:
    """Return a function that adds the parts up, or learns all members again if one part failed."""

    def members(spec: EnsembleSpec, problem: Problem, job: LearnJob) -> MemberPart:
        if any(row["n_rounds"] is None for row in rows) or job.limits.scale is None:
            return all_members(spec, problem, job)
        return sum_of_rows(rows, job.limits.scale.n_ranks)

    return members
