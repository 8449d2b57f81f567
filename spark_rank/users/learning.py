"""Runs learners over user blocks: the work of a Spark worker on a batch of users.

`DataFrame.mapInArrow` calls `learn_batches`. Everything below it takes and returns plain arrays
and is tested without Spark.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_rank.features.files import FeatureFiles, ItemFeatures, open_distributed
from spark_rank.learners import ItemOffsetScorer
from spark_rank.learners.errors import LearnerError
from spark_rank.records.features import ShownFacts
from spark_rank.users.batches import build_batch
from spark_rank.users.fitting import (
    Fitted,
    LandmarkScorer,
    Limits,
    Sample,
    Scorer,
    fit,
    is_cut_short,
)
from spark_rank.users.isolation import (
    OUT_OF_MEMORY,
    Learn,
    Loss,
    learn_isolated,
)
from spark_rank.users.model_batches import MODEL_SCHEMA, ModelBatches
from spark_rank.users.model_rows import model_columns
from spark_rank.users.newcomers import Levels, newcomer_columns
from spark_rank.users.prior_scores import prior_of
from spark_rank.users.problems import (
    Problem,
    ProblemGroup,
    Users,
    problem_groups,
)
from spark_rank.users.propensity_weights import with_propensity_weights
from spark_rank.users.rank_scale import RankScale
from spark_rank.users.selection import best_candidate
from spark_rank.users.specs import LearnerSpec, Params
from spark_rank.users.together import learn_together

LEARNED, APPROXIMATED, FALLBACK, FAILED = "learned", "approximated", "fallback", "failed"
TOO_FEW, ALL_EQUAL, NO_FEATURES = "too_few_ratings", "equal_ratings", "no_features"
NO_RATINGS = "no_ratings"
LANDMARKS, CUT_SHORT, NOT_CONVERGED = "landmarks", "first_ratings", "not_converged"
NUMERIC_FAILURE, UNEXPECTED = "numeric_failure", "unexpected_error"

Row = dict[str, Any]
Fit = Callable[[LearnerSpec, Params | None, Sample, Limits], Fitted]

_log = logging.getLogger(__name__)
_logged: set[tuple[str, str]] = set()


@dataclass(frozen=True)
class LearnJob:
    """The settings of a worker: feature files, learners, members of the panel, limits.

    With `isolated`, users are learned in child processes, which may crash without harm. `levels`
    are those of users without training ratings, if there are any. With `propensities`, a rating
    weighs one over its propensity.
    """

    files: FeatureFiles
    specs: tuple[LearnerSpec, ...]
    panel: Mapping[int, int]
    min_ratings: int
    margin: float
    limits: Limits
    isolated: bool = False
    levels: Levels | None = None
    propensities: ShownFacts | None = None


def learn_batches(
    batches: Iterator[pa.RecordBatch],
    job: LearnJob,
    open_features: Callable[[FeatureFiles], ItemFeatures] = open_distributed,
) -> Iterator[pa.RecordBatch]:
    """Train every learner for every user block; one row per user and learner."""
    features = open_features(job.files)

    def learn(batch: pa.RecordBatch, specs: Sequence[LearnerSpec]) -> pa.RecordBatch:
        models = ModelBatches(specs, job.margin, job.limits.scale)
        batch_job = replace(job, specs=tuple(specs))
        if job.propensities is not None:
            batch = with_propensity_weights(batch, job.propensities)
        for group in problem_groups(batch, features, job.panel):
            learn_group(group, batch_job, features.item_ids, models)
        return models.in_order()

    return learn_users(batches, job, learn, MODEL_SCHEMA)


def learn_users(
    batches: Iterator[pa.RecordBatch], job: LearnJob, learn: Learn, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `learn` for every batch; if `job.isolated`, from child processes.

    `schema` is that of the rows.
    """
    give_up = partial(_given_up, job=job, schema=schema)
    for batch in batches:
        if job.isolated:
            results = learn_isolated(batch, job.specs, learn, give_up)
        else:
            results = iter([learn(batch, job.specs)])
        for rows in results:
            yield _in_buckets(rows, batch)


def _in_buckets(rows: pa.RecordBatch, blocks: pa.RecordBatch) -> pa.RecordBatch:
    """Return the model rows with the buckets of their users' blocks."""
    users = pc.index_in(rows.column("user_id"), blocks.column("user_id"))
    buckets = blocks.column("bucket").take(users)
    place = rows.schema.get_field_index("bucket")
    return rows.set_column(place, rows.schema.field(place), buckets)


def _given_up(
    user: pa.RecordBatch, spec: LearnerSpec, loss: Loss, *, job: LearnJob, schema: pa.Schema
) -> pa.RecordBatch:
    """Return the row of a user whose learning crashes, made from the block alone."""
    block = Users.of(user)
    (n_train,) = block.n_train.tolist()
    row = {
        "user_id": block.user_ids[0],
        "learner": spec.label,
        "n_train": n_train,
        "n_test": len(block.items) - n_train,
        **_optional("excluded_feature", job.panel.get(block.users[0])),
        "on_rating_scale": spec.kind.on_rating_scale,
        "status": FAILED,
        "hyperparameters": spec.hyperparameters(job.limits.scale),
        "reason": loss.reason,
        "detail": loss.detail,
    }
    place = "" if loss.place is None else f" in {loss.place}"
    _log.warning("user %s, %s: %s%s", block.user_ids[0], spec.label, loss.detail, place)
    return build_batch([row], schema)


def learn_group(
    group: ProblemGroup, job: LearnJob, item_ids: pa.StringArray, models: ModelBatches
) -> None:
    """Learn a group of users with every learner, in one call if it can, else one by one."""
    in_one_call = [learn_together(spec, group, job.limits, job.min_ratings) for spec in job.specs]
    one_by_one: NDArray[np.bool_] = np.column_stack([
        np.ones(len(group.blocks.users), bool) if result is None else ~result.learned
        for result in in_one_call
    ])  # fmt: skip
    rows = {
        user * len(job.specs) + number: learn_user(problem, spec, job, item_ids)
        for user, problem in group.problems(np.logical_or.reduce(one_by_one, axis=1))
        for number, spec in enumerate(job.specs)
        if one_by_one[user, number]
    }
    models.add(group, in_one_call, rows)


def learn_user(
    problem: Problem,
    spec: LearnerSpec,
    job: LearnJob,
    item_ids: pa.StringArray,
    fit_one: Fit = fit,
) -> Row:
    """Return a model row; an error of this user is recorded in the row.

    `fit_one` fits the learner to the training part if there is enough to learn from.
    """
    row = _head(problem, spec)
    try:
        return row | _learned_columns(problem, spec, job, item_ids, fit_one)
    except LearnerError as error:
        outcome = {"reason": NUMERIC_FAILURE, "detail": str(error)}
    except MemoryError as error:
        outcome = {"reason": OUT_OF_MEMORY, "detail": _error_text(error)}
    except Exception as error:  # noqa: BLE001 - one bad user must never end the job
        outcome = {"reason": UNEXPECTED, "detail": _error_text(error)}
        _log_once(problem.user_id, spec.label, type(error).__name__)
    hyperparameters = spec.hyperparameters(job.limits.scale)
    return row | {"status": FAILED, "hyperparameters": hyperparameters, **outcome}


def _head(problem: Problem, spec: LearnerSpec) -> Row:
    """Return the columns of a row that do not depend on learning."""
    return {
        "user_id": problem.user_id,
        "learner": spec.label,
        "n_train": problem.n_train,
        "n_test": len(problem.items) - problem.n_train,
        **_optional("excluded_feature", problem.excluded_feature),
        **_optional("reviewers", problem.reviewers),
        "on_rating_scale": spec.kind.on_rating_scale,
    }


def _error_text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _log_once(user_id: str, label: str, error: str) -> None:
    """Log the current exception, if it is the first of its type and learner in this process."""
    if (label, error) not in _logged:
        _logged.add((label, error))
        _log.warning("user %s, %s: unexpected error", user_id, label, exc_info=True)


def _learned_columns(
    problem: Problem,
    spec: LearnerSpec,
    job: LearnJob,
    item_ids: pa.StringArray,
    fit_one: Fit,
) -> Row:
    if problem.n_train == 0 and job.levels is not None:
        return _newcomer_columns(problem, spec, job.limits.scale, job.levels)
    obstacle = None if spec.is_baseline else _obstacle(problem, spec, job.min_ratings)
    prior = prior_of(problem, spec, fallback=obstacle is not None)
    sample = prior.sample(problem)
    hyperparameters, fitted = _fit(spec, sample, obstacle, job.limits, fit_one)
    training_scores = fitted.training_scores(sample)
    return {
        "training": (training_scores, sample.ratings),
        "hyperparameters": hyperparameters,
        **_status(spec, fitted, problem.n_train, obstacle, job.limits),
        **_optional("expected_norm", prior.expected_norm),
        **model_columns(fitted, problem, prior, training_scores, item_ids),
        **_fallback_thresholds(spec, obstacle, job.limits.scale),
    }


def _newcomer_columns(
    problem: Problem, spec: LearnerSpec, scale: RankScale | None, levels: Levels
) -> Row:
    """Return the columns of a user without training ratings, of whom only the prior is known."""
    prior = prior_of(problem, spec, fallback=not spec.is_baseline)
    return {
        "status": FALLBACK,
        "reason": NO_RATINGS,
        "hyperparameters": spec.hyperparameters(scale),
        **_optional("expected_norm", prior.expected_norm),
        **newcomer_columns(
            spec, scale, levels.of(prior), has_offset=prior.offset is not None,
            expected=prior.expected,
        ),
    }  # fmt: skip


def _optional(name: str, value: Any) -> Row:
    """Return the column if it has a value: without it a batch need not build the column."""
    return {} if value is None else {name: value}


def _obstacle(problem: Problem, spec: LearnerSpec, min_ratings: int) -> str | None:
    """Return the reason why this learner cannot learn from the user; None if it can."""
    if spec.needs_features and problem.X.shape[1] == 0:
        return NO_FEATURES
    return obstacle_to_learning(problem, min_ratings)


def obstacle_to_learning(problem: Problem, min_ratings: int) -> str | None:
    """Return the reason why nothing can be learned from the training part; None if it can."""
    if problem.n_train < min_ratings:
        return TOO_FEW
    ratings = problem.ratings[problem.train]
    return ALL_EQUAL if ratings.min() == ratings.max() else None


def _fit(
    spec: LearnerSpec, sample: Sample, obstacle: str | None, limits: Limits, fit_one: Fit
) -> tuple[str, Fitted]:
    """Return the hyper-parameters, chosen for this user if the job asks for it, and the learner."""
    if obstacle is not None:
        fallback = ItemOffsetScorer().fit(
            sample.X, sample.ratings, offset=sample.offset, sample_weight=sample.weights
        )
        return spec.hyperparameters(limits.scale), Scorer(fallback)
    chosen = best_candidate(spec, sample, limits) if spec.chosen_per_user else None
    return spec.hyperparameters(limits.scale, chosen), fit_one(spec, chosen, sample, limits)


def _status(
    spec: LearnerSpec, fitted: Fitted, n_train: int, obstacle: str | None, limits: Limits
) -> Row:
    if obstacle is not None:
        return {"status": FALLBACK, "reason": obstacle}
    if isinstance(fitted, LandmarkScorer):
        return {"status": APPROXIMATED, "reason": LANDMARKS}
    if is_cut_short(fitted.learner, n_train, limits.max_kernel_ratings):
        return {"status": APPROXIMATED, "reason": CUT_SHORT}
    if not getattr(fitted.learner, "converged_", True):
        return {"status": APPROXIMATED, "reason": NOT_CONVERGED, "detail": _shortfall(fitted)}
    return {"status": LEARNED}


def _shortfall(fitted: Fitted) -> str:
    """Return a sentence on how far from the optimum the learner may have stopped."""
    learner: Any = fitted.learner
    if not hasattr(learner, "duality_gap_"):
        return f"stopped after {learner.n_rounds_} rounds: raise tol or max_rounds"
    return (
        f"the objective may exceed its minimum by a relative {learner.duality_gap_:.1e} after "
        f"{learner.n_iter_} rounds: lower C, or raise tol or max_iter"
    )


def _fallback_thresholds(spec: LearnerSpec, obstacle: str | None, scale: RankScale | None) -> Row:
    if obstacle is None or not spec.kind.of_ranks or scale is None:
        return {}
    return {"thresholds": scale.thresholds()}
