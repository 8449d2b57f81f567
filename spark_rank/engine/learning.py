"""Runs learners over user blocks: what a Spark worker does with a batch of users.

`learn_batches` is what `DataFrame.mapInArrow` calls. Everything below it takes and returns plain
arrays and is tested without Spark.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_rank.data.contracts import arrow_schema
from spark_rank.data.tables import MODELS
from spark_rank.engine.batches import build_batch
from spark_rank.engine.problems import Problem, problems
from spark_rank.engine.scoring import training_metrics
from spark_rank.features.files import FeatureFiles, ItemFeatures, open_distributed
from spark_rank.learners import BASELINES, PER_USER, ItemOffsetScorer, Learner
from spark_rank.learners.errors import LearnerError

MODEL_SCHEMA = arrow_schema(MODELS.columns)

LEARNED, FALLBACK, FAILED = "learned", "fallback", "failed"
TOO_FEW, ALL_EQUAL = "too_few_ratings", "equal_ratings"
NUMERIC_FAILURE, UNEXPECTED = "numeric_failure", "unexpected_error"

Row = dict[str, Any]


@dataclass(frozen=True)
class LearnerSpec:
    """A learner to train: its label, its class by name, its hyper-parameters."""

    label: str
    learner: str
    item_offset: bool
    params: Mapping[str, Any] = field(default_factory=dict)

    def make(self) -> Learner:
        """Return a fresh, unfitted learner."""
        return {**PER_USER, **BASELINES}[self.learner](**self.params)

    # both are asked for once per user, and are the same for all of them
    @cached_property
    def hyperparameters(self) -> str:
        """Return all hyper-parameters, defaults too, as JSON."""
        return json.dumps(self.make().get_params(), sort_keys=True)

    @cached_property
    def on_rating_scale(self) -> bool:
        """Tell whether scores are ratings or only put items in order; of fallbacks likewise.

        A mean over the users that fell back alone would look like the learner's.
        """
        return getattr(self.make(), "on_rating_scale", True)

    @property
    def is_baseline(self) -> bool:
        """Tell whether the learner is one of the two that every other must beat."""
        return self.learner in BASELINES


BASELINE_SPECS = tuple(
    LearnerSpec(name, name, item_offset=name == "item_offset") for name in BASELINES
)


@dataclass(frozen=True)
class LearnJob:
    """What a worker needs to know: feature files, learners, panel members, limits."""

    files: FeatureFiles
    specs: tuple[LearnerSpec, ...]
    panel: Mapping[int, int]
    min_ratings: int
    margin: float


def learn_batches(
    batches: Iterator[pa.RecordBatch],
    job: LearnJob,
    open_features: Callable[[FeatureFiles], ItemFeatures] = open_distributed,
) -> Iterator[pa.RecordBatch]:
    """Train every learner for every user block; one row per user and learner."""
    features = open_features(job.files)
    for batch in batches:
        rows = [
            learn_user(problem, spec, job, features.item_ids)
            for problem in problems(batch, features, job.panel)
            for spec in job.specs
        ]
        yield build_batch(rows, MODEL_SCHEMA)


def learn_user(problem: Problem, spec: LearnerSpec, job: LearnJob, item_ids: pa.StringArray) -> Row:
    """Return a model row; whatever goes wrong with one user stays in that user's row."""
    row: Row = {
        "user_id": problem.user_id,
        "learner": spec.label,
        "n_train": problem.n_train,
        "n_test": len(problem.items) - problem.n_train,
        "hyperparameters": spec.hyperparameters,
        "excluded_feature": problem.excluded_feature,
        "test_ratings": problem.ratings[problem.test],
    }
    obstacle = None if spec.is_baseline else _obstacle(problem, job.min_ratings)
    learner: Learner = spec.make() if obstacle is None else ItemOffsetScorer()
    uses_offset = spec.item_offset or obstacle is not None
    # the baseline is the item's offset alone, whatever is known about the user
    expected = problem.expected if uses_offset and not spec.is_baseline else None
    known = problem.offset if expected is None else problem.full_offset
    offset = known if uses_offset else None
    try:
        scores = _fit_and_score(learner, problem, offset)
        outcome = {
            "status": LEARNED if obstacle is None else FALLBACK,
            "reason": obstacle,
            "offset_weight": float(uses_offset),
            "on_rating_scale": spec.on_rating_scale,
            "test_scores": scores[problem.test],
            "norm": _norm(learner, scores, problem, offset),
            "expected_norm": None if expected is None else float(np.linalg.norm(expected)),
            **training_metrics(
                scores[problem.train],
                problem.ratings[problem.train],
                on_rating_scale=spec.on_rating_scale,
                margin=job.margin,
            ),
            **_model_columns(learner, problem, expected, item_ids),
        }
    except LearnerError as error:
        outcome = {"status": FAILED, "reason": NUMERIC_FAILURE, "detail": str(error)}
    except Exception as error:  # noqa: BLE001 - one bad user must never end the job
        detail = f"{type(error).__name__}: {error}"
        outcome = {"status": FAILED, "reason": UNEXPECTED, "detail": detail}
    return row | outcome


def _obstacle(problem: Problem, min_ratings: int) -> str | None:
    if problem.n_train < min_ratings:
        return TOO_FEW
    ratings = problem.ratings[problem.train]
    return ALL_EQUAL if ratings.min() == ratings.max() else None


def _fit_and_score(
    learner: Any, problem: Problem, offset: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    train_offset = None if offset is None else offset[problem.train]
    learner.fit(problem.X[problem.train], problem.ratings[problem.train], offset=train_offset)
    scores: NDArray[np.float64] = learner.decision_function(problem.X, offset=offset)
    if not np.isfinite(scores).all():
        raise LearnerError("a score is not finite")
    return scores


def _norm(
    learner: Any,
    scores: NDArray[np.float64],
    problem: Problem,
    offset: NDArray[np.float64] | None,
) -> float | None:
    """Return ‖w‖, of a dual model √(αᵀKα): α times what the model adds to constant and offset."""
    coef, dual = getattr(learner, "coef_", None), getattr(learner, "dual_coef_", None)
    if coef is not None:
        return float(np.linalg.norm(coef))
    if dual is None:
        return None
    added = scores[problem.train] - learner.intercept_
    if offset is not None:
        added = added - offset[problem.train]
    return float(np.sqrt(max(dual @ added, 0.0)))


def _model_columns(
    learner: Any,
    problem: Problem,
    expected: NDArray[np.float64] | None,
    item_ids: pa.StringArray,
) -> Row:
    """Return what scores an item without this package: constant, weights, dual coefficients."""
    coef, dual = getattr(learner, "coef_", None), getattr(learner, "dual_coef_", None)
    parts = [part for part in (coef, expected) if part is not None]
    row: Row = {
        "kernel": getattr(learner, "kernel", None),
        "gamma": getattr(learner, "gamma_", None),
        "intercept": learner.intercept_,
        "weights": sum(parts) if parts else None,
    }
    if coef is None and dual is not None:
        row["dual"] = dual
        row["support_items"] = item_ids.take(pa.array(problem.items[problem.train]))
    return row
