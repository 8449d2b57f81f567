"""The single learners that ensembles are compared with, on the same sequence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from spark_rank.learners import RIVALS
from spark_rank.learners.errors import LearnerError
from spark_rank.sequences.examples import SequenceJob, Trial, View
from spark_rank.sequences.files import open_sequence
from spark_rank.sequences.learning import (
    OUTCOME,
    OpenSequence,
    held_out_metrics,
    outcome,
    sequence_of,
)
from spark_rank.tables.contract import Column, arrow_schema, ddl
from spark_rank.users.batches import build_batch

RIVAL_RESULTS = (
    Column("trial", "int", "number of the trial"),
    Column("learner", "string", "name of the rival"),
    *OUTCOME,
)
RIVAL_DDL = ddl(RIVAL_RESULTS)
_SCHEMA = arrow_schema(RIVAL_RESULTS)

Row = dict[str, Any]


def rival_results(
    batches: Iterator[pa.RecordBatch],
    job: SequenceJob,
    work: Sequence[tuple[int, str]],
    view: View,
    open_files: OpenSequence = open_sequence,
) -> Iterator[pa.RecordBatch]:
    """Yield the outcome of each row's `work`: a rival on a trial; a row has the work's position."""
    for batch in batches:
        for place in batch.column("id").to_pylist():
            trial, name = job.trials[work[place][0]], work[place][1]
            row: Row = {"trial": trial.number, "learner": name}
            try:
                row |= _learn(job, trial, name, view, open_files)
            except LearnerError as error:
                row["failure"] = str(error)
            yield build_batch([row], _SCHEMA)


def _learn(job: SequenceJob, trial: Trial, name: str, view: View, open_files: OpenSequence) -> Row:
    """Stream the sequence through a rival: O(T) memory for its curve and a voted one's rules."""
    sequence = sequence_of(job, view, trial, open_files(view.files))
    kind: Any = RIVALS[name][0]
    learner = kind(job.n_ranks, **RIVALS[name][1])
    for X, ranks in sequence.chunks(job.chunk):
        learner.partial_fit(X, ranks)
    rounds = np.arange(1, learner.n_rounds_ + 1)
    totals = np.rint(learner.online_loss_ * rounds).astype(np.int64)
    X, ranks = sequence.held_out()
    row = outcome(0, np.diff(totals, prepend=0))
    if len(ranks):
        row |= held_out_metrics(learner.decision_function(X), learner.predict(X), ranks)
    return row
