"""Scores every point of a grid on a sample of users: the work of a worker, and the summary."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_rank.data.contracts import Column, arrow_schema, ddl
from spark_rank.engine.batches import build_batch
from spark_rank.engine.fitting import Limits
from spark_rank.engine.isolation import Loss, is_asked_for, learn_isolated
from spark_rank.engine.known import known_before
from spark_rank.engine.learning import LearnJob
from spark_rank.engine.problems import Problem, problems
from spark_rank.engine.rank_scale import RankScale
from spark_rank.engine.selection import candidate_errors
from spark_rank.engine.specs import LearnerSpec
from spark_rank.features.files import FeatureFiles, ItemFeatures, open_distributed
from spark_rank.learners.errors import LearnerError

_ERROR_COLUMNS = (
    Column("learner", "string", "name of the learner"),
    Column("user_id", "string", "id as in the input"),
    Column("errors", "array<double>", "error of every point of the grid; null after a failure"),
    Column("detail", "string", "what the failure said; null otherwise"),
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
        found = problems(batch, features, job.panel)
        rows = [row for problem in found for row in _error_rows(problem, specs, job.limits)]
        return build_batch(rows, _ERROR_SCHEMA)

    isolated = is_asked_for(job.isolated)
    for batch in batches:
        if isolated:
            yield from learn_isolated(batch, job.specs, errors, _given_up)
        else:
            yield errors(batch, job.specs)


def _error_rows(problem: Problem, specs: Sequence[LearnerSpec], limits: Limits) -> Iterator[Row]:
    for spec in specs:
        row: Row = {"learner": spec.label, "user_id": problem.user_id}
        try:
            sample = known_before(problem, spec).sample(problem)
            errors = candidate_errors(spec, sample, limits)
        except Exception as error:  # noqa: BLE001 - one bad user must never end the job
            yield {**row, "detail": f"{type(error).__name__}: {error}"}
        else:
            if errors is not None:
                yield {**row, "errors": errors}


def _given_up(user: pa.RecordBatch, spec: LearnerSpec, loss: Loss) -> pa.RecordBatch:
    (user_id,) = user.column("user_id").to_pylist()
    row = {"learner": spec.label, "user_id": user_id, "detail": f"{loss.reason}: {loss.detail}"}
    return build_batch([row], _ERROR_SCHEMA)


def grid_scores(
    specs: Sequence[LearnerSpec], errors: pa.Table, scale: RankScale | None
) -> list[Row]:
    """Return a row per learner and point of its grid: the mean error over the users.

    The point of least mean is chosen, of equals the first. Sums are exact, so that the order in
    which the users come decides nothing.
    """
    rows = []
    for spec in specs:
        candidates = spec.candidates()
        own = errors.filter(pc.equal(errors.column("learner"), spec.label)).column("errors")
        own = own.drop_null()
        values = own.combine_chunks().flatten().to_numpy(zero_copy_only=False)
        table = values.reshape(len(own), len(candidates))
        scores = [_mean(column) for column in table.T]
        if all(mean is None for mean, _ in scores):
            raise LearnerError(
                f"{spec.label}: no point of its grid can be told from the others: "
                + ("none could be learned by every user" if len(own) else "no user can tell")
            )
        best = int(np.argmin([math.inf if mean is None else mean for mean, _ in scores]))
        for position, (params, (mean, error)) in enumerate(zip(candidates, scores, strict=True)):
            rows.append({
                "learner": spec.label,
                "candidate": position + 1,
                "hyperparameters": spec.hyperparameters(scale, params),
                "users": len(own),
                "error": mean,
                "standard_error": error,
                "chosen": position == best,
            })  # fmt: skip
    return rows


def _mean(values: Any) -> tuple[float | None, float | None]:
    """Return mean and its standard error; None where a user's model failed or there is no user."""
    if len(values) == 0 or not np.isfinite(values).all():
        return None, None
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return mean, None
    squares = math.fsum((value - mean) ** 2 for value in values)
    return mean, math.sqrt(squares / (len(values) - 1) / len(values))
