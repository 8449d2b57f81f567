"""Ensembles learned through Spark from small data, without a run; their tasks may be killed.

Run: ``python -m tests.stages.ensembles_at_work FOLDER`` leaves there what undisturbed and killed
tasks learned, and a file for every one killed.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from spark_rank.features.files import distribute_local, write_files
from spark_rank.sequences.examples import SequenceJob, SequenceSpec, Trial, View
from spark_rank.sequences.files import Examples, TrialPart, as_files
from spark_rank.sequences.learning import sequence_parts
from spark_rank.session.session import spark_session
from spark_rank.stages import ensemble_sequence, ensemble_users
from spark_rank.tables.contract import arrow_schema
from spark_rank.users.ensemble_learning import BLOCK, part_batches
from spark_rank.users.ensembles import EnsembleSpec
from spark_rank.users.fitting import Limits
from spark_rank.users.learning import LearnJob
from spark_rank.users.rank_scale import RankScale

N_MEMBERS, N_ITEMS, D = 100, 30, 3
PARAMS = {"n_members": N_MEMBERS, "tau": 0.5, "seed": 7}
PART = TrialPart(1, 0, 90, 20)
_RNG = np.random.default_rng(8)
# features without a short binary expansion: sums of floats would depend on their order
X = _RNG.normal(size=(110, D))
RANKS = np.searchsorted([-1.0, 0.0, 1.0], X @ [1.0, -2.0, 0.5] + _RNG.normal(size=110)) + 1
MATRIX = _RNG.normal(size=(N_ITEMS, D)).astype(np.float32)
OFFSET = _RNG.normal(size=N_ITEMS)
USERS = [
    (f"u {u}", _RNG.permutation(N_ITEMS)[: 8 + u].tolist(), _RNG.integers(1, 6, 8 + u).tolist())
    for u in range(6)
]
Rows = list[dict[str, Any]]


def sequence_rows(spark: SparkSession, folder: Path, groups: int, combine: str = "bpm") -> Rows:
    """Return the outcomes of one sequence, in chunks."""
    params = {**PARAMS, "combine": combine}
    return outcomes(spark, folder, Examples(X, RANKS), PART, params, groups, chunk=40)


def outcomes(
    spark: SparkSession,
    folder: Path,
    examples: Examples,
    part: TrialPart,
    params: dict[str, Any],
    groups: int,
    chunk: int,
) -> Rows:
    """Return the outcomes of examples with four ranks."""
    files = as_files(examples.features, examples.ranks, folder)
    distribute_local(spark, folder, files.all())
    spec = SequenceSpec("it", params, View(files, squared=False), True, "linear", None, "{}")
    job = SequenceJob((Trial(1, part, 0, False),), (spec,), 4, 7, chunk)
    return in_order(ensemble_sequence.sequence_models(spark, job, groups), "first_round")


def user_job(spark: SparkSession, folder: Path) -> LearnJob:
    """Return a job whose feature files are distributed."""
    prior = np.empty((0, D), dtype=np.float32)
    files = write_files(folder, MATRIX, OFFSET, prior, [f"item {i}" for i in range(N_ITEMS)])
    distribute_local(spark, folder, files.all())
    specs = tuple(
        EnsembleSpec(combine, "oap", True, {**PARAMS, "combine": combine}, keep_members=True)
        for combine in ("bpm", "voted")
    )
    limits = Limits(RankScale((1.0, 2.0, 3.0, 4.0, 5.0)), 2000, 6, 5)
    return LearnJob(files, specs, {}, 2, 1.0, limits)


def blocks() -> pa.RecordBatch:
    """Return the users' blocks, two thirds of each to learn from."""
    rows = [
        {"user": u, "user_id": user_id, "items": items, "ratings": [float(r) for r in ratings],
         "n_train": 2 * len(items) // 3}
        for u, (user_id, items, ratings) in enumerate(USERS)
    ]  # fmt: skip
    return pa.RecordBatch.from_pylist(rows, schema=arrow_schema(BLOCK))


def user_rows(spark: SparkSession, job: LearnJob, groups: int, partitions: int = 2) -> Rows:
    """Return every user's models; of one partition Spark would make one task of all groups."""
    table = spark.createDataFrame(pa.Table.from_batches([blocks()])).repartition(partitions)
    return in_order(ensemble_users.ensemble_models(table, job, groups, 2), "user_id")


def in_order(found: DataFrame, key: str) -> Rows:
    """Return the rows in an order that does not depend on partitions."""
    rows: Rows = found.toArrow().to_pylist()
    return sorted(rows, key=lambda row: (row["learner"], row[key]))


Parts = Callable[..., Iterator[pa.RecordBatch]]


def dying(original: Parts, folder: Path) -> Parts:
    """Return `original`, whose every other task dies after its first batch, the first time."""

    def parts(batches: Iterator[pa.RecordBatch], **how: Any) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        for batch in original(batches, **how):
            yield batch
            if context.attemptNumber() == 0 and context.partitionId() % 2:
                name = f"killed-{original.__name__}-{context.partitionId()}"
                (folder / name).touch()
                os.kill(os.getpid(), signal.SIGKILL)

    return parts


def main(folder: Path) -> None:
    """Learn everything twice, the second time with tasks that die."""
    # two cores, and a task may fail three times
    settings = {"spark.master": "local[2,4]", "spark.sql.shuffle.partitions": "2",
                "spark.log.level": "OFF", "spark.driver.memory": "1g"}  # fmt: skip
    with spark_session("tests", settings) as spark:
        job = user_job(spark, folder)
        found = [(sequence_rows(spark, folder, 4), user_rows(spark, job, 4))]
        ensemble_sequence.sequence_parts = dying(sequence_parts, folder)
        ensemble_users.part_batches = dying(part_batches, folder)
        found.append((sequence_rows(spark, folder, 4), user_rows(spark, job, 4)))
    (folder / "rows.txt").write_text(repr(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
