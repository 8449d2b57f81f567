"""Measures every point of a grid on a sample of users: the work of a worker, and the summary.

The held-out part of a user is here made of training ratings that were held back from the item
features, so that neither features nor learner have seen the ratings that measure a point.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_rank.features.files import FeatureFiles, ItemFeatures, open_distributed
from spark_rank.learners.errors import LearnerError
from spark_rank.tables.contract import Column, arrow_schema, ddl
from spark_rank.users.batches import build_batch
from spark_rank.users.choice_prior import ChoicePrior, mean_and_error, measured_prior
from spark_rank.users.fitting import Limits, Sample
from spark_rank.users.isolation import Loss, learn_isolated
from spark_rank.users.learning import LearnJob
from spark_rank.users.prior_scores import prior_of
from spark_rank.users.problems import Problem, problems
from spark_rank.users.rank_scale import RankScale
from spark_rank.users.selection import candidate_errors, held_back_errors
from spark_rank.users.specs import LearnerSpec

_ERROR_COLUMNS = (
    Column("learner", "string", "name of the learner"),
    Column("user_id", "string", "id as in the input"),
    Column("n_ratings", "bigint", "training ratings that were not held back"),
    Column(
        "errors",
        "array<double>",
        "error of every point of the grid on the ratings held back; null after a failure",
    ),
    Column(
        "own_errors",
        "array<double>",
        "the user's own errors of every point; null if not needed or undefined",
    ),
    Column("detail", "string", "message of the failure; null otherwise"),
)
ERRORS_DDL = ddl(_ERROR_COLUMNS)
_ERROR_SCHEMA = arrow_schema(_ERROR_COLUMNS)

Row = dict[str, Any]


def error_batches(
    batches: Iterator[pa.RecordBatch],
    job: LearnJob,
    open_features: Callable[[FeatureFiles], ItemFeatures] = open_distributed,
) -> Iterator[pa.RecordBatch]:
    """Turn user blocks into rows of errors, one per user and learner; none where undefined."""
    features = open_features(job.files)

    def errors(batch: pa.RecordBatch, specs: Sequence[LearnerSpec]) -> pa.RecordBatch:
        batch_problems = problems(batch, features, job.panel)
        rows = [
            row for problem in batch_problems for row in _error_rows(problem, specs, job.limits)
        ]
        return build_batch(rows, _ERROR_SCHEMA)

    for batch in batches:
        if job.isolated:
            yield from learn_isolated(batch, job.specs, errors, _given_up)
        else:
            yield errors(batch, job.specs)


def _error_rows(problem: Problem, specs: Sequence[LearnerSpec], limits: Limits) -> Iterator[Row]:
    for spec in specs:
        row: Row = {"learner": spec.label, "user_id": problem.user_id}
        try:
            prior = prior_of(problem, spec)
            sample = prior.sample(problem)
            X, offset = prior.held_out(problem)
            held_back = Sample(X, problem.ratings[problem.test], offset)
            errors = held_back_errors(spec, sample, held_back, limits)
            own_errors = candidate_errors(spec, sample, limits) if spec.chosen_per_user else None
        except Exception as error:  # noqa: BLE001 - one bad user must never end the job
            yield {**row, "detail": f"{type(error).__name__}: {error}"}
        else:
            if errors is not None:
                yield {
                    **row,
                    "n_ratings": len(sample.ratings),
                    "errors": errors,
                    "own_errors": own_errors,
                }


def _given_up(user: pa.RecordBatch, spec: LearnerSpec, loss: Loss) -> pa.RecordBatch:
    (user_id,) = user.column("user_id").to_pylist()
    row = {"learner": spec.label, "user_id": user_id, "detail": f"{loss.reason}: {loss.detail}"}
    return build_batch([row], _ERROR_SCHEMA)


@dataclass(frozen=True)
class SampleErrors:
    """The errors of the sample's users on one grid: a row per user, a column per point."""

    held_back: NDArray[np.float64]
    user_errors: list[NDArray[np.float64] | None]
    n_ratings: NDArray[np.int64]

    @classmethod
    def of(cls, spec: LearnerSpec, errors: pa.Table) -> SampleErrors:
        """Read the rows of one learner; users with undefined errors have none."""
        rows = errors.filter(
            pc.and_(pc.equal(errors["learner"], spec.label), pc.is_valid(errors["errors"]))
        )
        values = rows["errors"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
        user_errors = [
            None if errors_of_user is None else np.array(errors_of_user)
            for errors_of_user in rows["own_errors"].to_pylist()
        ]
        table = values.reshape(len(rows), len(spec.candidates()))
        return cls(table, user_errors, rows["n_ratings"].to_numpy().astype(np.int64))

    def prior(self) -> ChoicePrior | None:
        """Return the prior for choosing per user; None if one point for all is as good."""
        return measured_prior(self.held_back, self.user_errors, self.n_ratings)


def grid_scores(
    specs: Sequence[LearnerSpec], errors: pa.Table, scale: RankScale | None
) -> list[Row]:
    """Return a row per learner and point of its grid: the mean error over the users.

    The point of least mean is chosen, the first among equals. Sums are exact, so that the order
    of the users does not matter.
    """
    rows = []
    for spec in specs:
        sample = SampleErrors.of(spec, errors)
        scores = [mean_and_error(column) for column in sample.held_back.T]
        best = int(np.argmin([error for error, _ in scores]))
        if not math.isfinite(scores[best][0]):
            raise LearnerError(
                f"{spec.label}: no point of its grid can be chosen: "
                + (
                    "each failed for some user of the sample: try other values"
                    if len(sample.user_errors)
                    else "no user of the sample could be measured: raise tune.users"
                )
            )
        for position, (params, score) in enumerate(zip(spec.candidates(), scores, strict=True)):
            error, noise = (value if math.isfinite(value) else None for value in score)
            rows.append({
                "learner": spec.label,
                "candidate": position + 1,
                "hyperparameters": spec.hyperparameters(scale, params),
                "measure": spec.measure,
                "users": len(sample.user_errors),
                "error": error,
                "standard_error": noise,
                "chosen": position == best,
            })  # fmt: skip
    return rows
