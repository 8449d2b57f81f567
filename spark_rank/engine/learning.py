"""Runs learners over user blocks: what a Spark worker does with a batch of users.

`learn_batches` is what `DataFrame.mapInArrow` calls. Everything below it takes and returns plain
arrays and is tested without Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_rank.data.contracts import arrow_schema
from spark_rank.data.tables import MODELS
from spark_rank.engine.batches import build_batch
from spark_rank.engine.fitting import Fitted, LandmarkScorer, Ranker, Scorer, fit, is_cut_short
from spark_rank.engine.known import known_before
from spark_rank.engine.model_rows import model_columns
from spark_rank.engine.problems import Problem, problems
from spark_rank.engine.rank_scale import RankScale
from spark_rank.engine.scoring import training_metrics
from spark_rank.engine.selection import Limits, Sample, best_candidate
from spark_rank.engine.specs import LearnerSpec, Params, as_json
from spark_rank.features.files import FeatureFiles, ItemFeatures, open_distributed
from spark_rank.learners import ItemOffsetScorer
from spark_rank.learners.errors import LearnerError

MODEL_SCHEMA = arrow_schema(MODELS.columns)

LEARNED, APPROXIMATED, FALLBACK, FAILED = "learned", "approximated", "fallback", "failed"
TOO_FEW, ALL_EQUAL = "too_few_ratings", "equal_ratings"
LANDMARKS, CUT_SHORT = "landmarks", "first_ratings"
NUMERIC_FAILURE, UNEXPECTED = "numeric_failure", "unexpected_error"

Row = dict[str, Any]


@dataclass(frozen=True)
class LearnJob:
    """What a worker needs to know: feature files, learners, panel members, limits."""

    files: FeatureFiles
    specs: tuple[LearnerSpec, ...]
    panel: Mapping[int, int]
    min_ratings: int
    margin: float
    limits: Limits


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
        "excluded_feature": problem.excluded_feature,
        "on_rating_scale": spec.kind.on_rating_scale,
        "test_ratings": problem.ratings[problem.test],
    }
    try:
        return row | _learned_columns(problem, spec, job, item_ids)
    except LearnerError as error:
        outcome = {"reason": NUMERIC_FAILURE, "detail": str(error)}
    except Exception as error:  # noqa: BLE001 - one bad user must never end the job
        outcome = {"reason": UNEXPECTED, "detail": f"{type(error).__name__}: {error}"}
    params = spec.make(job.limits.scale).get_params()
    return row | {"status": FAILED, "hyperparameters": as_json(params), **outcome}


def _learned_columns(
    problem: Problem, spec: LearnerSpec, job: LearnJob, item_ids: pa.StringArray
) -> Row:
    obstacle = None if spec.is_baseline else _obstacle(problem, job.min_ratings)
    known = known_before(problem, spec, fallback=obstacle is not None)
    params, fitted = _fit(spec, known.sample(problem), obstacle, job.limits)
    scores = fitted.scores(problem.X, known.offset)
    return {
        "hyperparameters": as_json(params),
        **_status(spec, fitted, problem.n_train, obstacle, job.limits),
        "test_scores": scores[problem.test],
        "test_ranks": _test_ranks(spec, fitted, problem, known.offset, scores, job.limits.scale),
        "expected_norm": None if known.expected is None else float(np.linalg.norm(known.expected)),
        **training_metrics(
            scores[problem.train],
            problem.ratings[problem.train],
            on_rating_scale=spec.kind.on_rating_scale,
            margin=job.margin,
        ),
        **model_columns(fitted, problem, known, scores, item_ids),
        **_fallback_thresholds(spec, obstacle, job.limits.scale),
    }


def _obstacle(problem: Problem, min_ratings: int) -> str | None:
    if problem.n_train < min_ratings:
        return TOO_FEW
    ratings = problem.ratings[problem.train]
    return ALL_EQUAL if ratings.min() == ratings.max() else None


def _fit(
    spec: LearnerSpec, sample: Sample, obstacle: str | None, limits: Limits
) -> tuple[Params, Fitted]:
    """Return the hyper-parameters, chosen if they are this user's own, and the fitted learner."""
    if obstacle is not None:
        fallback = ItemOffsetScorer().fit(sample.X, sample.ratings, offset=sample.offset)
        return spec.make(limits.scale).get_params(), Scorer(fallback)
    chosen = best_candidate(spec, sample, limits) if spec.chosen_per_user else spec.params
    fitted = fit(
        spec, chosen, sample.X, sample.ratings, sample.offset,
        scale=limits.scale, max_kernel_ratings=limits.max_kernel_ratings,
    )  # fmt: skip
    return spec.make(limits.scale, chosen).get_params(), fitted


def _status(
    spec: LearnerSpec, fitted: Fitted, n_train: int, obstacle: str | None, limits: Limits
) -> Row:
    if obstacle is not None:
        return {"status": FALLBACK, "reason": obstacle}
    if isinstance(fitted, LandmarkScorer):
        return {"status": APPROXIMATED, "reason": LANDMARKS}
    if is_cut_short(fitted.learner, n_train, limits.max_kernel_ratings):
        return {"status": APPROXIMATED, "reason": CUT_SHORT}
    return {"status": LEARNED, "reason": None}


def _test_ranks(
    spec: LearnerSpec,
    fitted: Fitted,
    problem: Problem,
    offset: NDArray[np.float64] | None,
    scores: NDArray[np.float64],
    scale: RankScale | None,
) -> NDArray[np.int64] | None:
    """Return the ranks predicted for held-out items; of a fallback, those of its scores."""
    if not spec.kind.of_ranks or scale is None:
        return None
    if isinstance(fitted, Ranker):
        known = None if offset is None else offset[problem.test]
        return fitted.ranks(problem.X[problem.test], known)
    return scale.ranks(scores[problem.test])


def _fallback_thresholds(spec: LearnerSpec, obstacle: str | None, scale: RankScale | None) -> Row:
    if obstacle is None or not spec.kind.of_ranks or scale is None:
        return {}
    return {"thresholds": scale.thresholds()}
