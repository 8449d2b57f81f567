"""Learns an ensemble on one long sequence in Spark workers, its members split over tasks.

A task streams the sequence through one group of members and returns, for every chunk of rounds,
sums over its members (`sequence_parts`). Another task collects the sums of a block of rounds
(`blocks`) and adds them up chunk by chunk. With the chunk's examples this gives the ensemble's rank
at every round, and after the last chunk its rule (`sequence_results`). A task needs
O(N d + k · chunk) memory, and the order of a reordered trial.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from spark_rank.learners.base import FloatArray
from spark_rank.learners.errors import LearnerError
from spark_rank.learners.perceptrons.blocks import block_of
from spark_rank.learners.perceptrons.replay import RuleSum
from spark_rank.learners.perceptrons.rounds import IntArray
from spark_rank.metrics import exact_rank_rate, pairwise_misranking, rank_loss
from spark_rank.sequences.examples import SequenceJob, SequenceSpec, Trial, TrialSequence, View
from spark_rank.sequences.files import Examples, SequenceFiles, open_sequence
from spark_rank.sequences.models import rule_columns
from spark_rank.tables.contract import Column, arrow_schema, ddl
from spark_rank.tables.contracts import ENSEMBLE_MODELS
from spark_rank.users.batches import build_batch
from spark_rank.users.ensemble_learning import combined, member_columns, split_rules
from spark_rank.users.ensembles import CURVE_ROUNDS
from spark_rank.users.member_sums import (
    KEY,
    PART_COLUMNS,
    MemberPart,
    as_row,
    consecutive,
    part_of,
    sum_of_rows,
)

_FAILURE = Column("failure", "string", "the failure's message; null otherwise")
_PARTS = (*PART_COLUMNS, _FAILURE)
_PART_SCHEMA = arrow_schema(_PARTS)
PART_DDL = ddl(_PARTS)

# what a chunk of rounds, or all rounds of a rival, adds to the curve; and the metrics of the test
# part
OUTCOME = (
    Column("first_round", "bigint", "number of rounds before these"),
    Column("n_rounds", "bigint", "number of these rounds"),
    Column("losses", "array<bigint>", "sums of the rank losses up to the rounds of the grid"),
    Column("total", "bigint", "sum of all rank losses of these rounds"),
    Column("rank_loss", "double", "on the test part, after the last round; null otherwise"),
    Column("exact_rank", "double", "on the test part, as rank_loss"),
    Column("misranking", "double", "on the test part, as rank_loss"),
    _FAILURE,
)
_MODEL = {column.name for column in ENSEMBLE_MODELS.columns}
RESULTS = (*ENSEMBLE_MODELS.columns, *(column for column in OUTCOME if column.name not in _MODEL))
_RESULT_SCHEMA = arrow_schema(RESULTS)
RESULT_DDL = ddl(RESULTS)

Row = dict[str, Any]
OpenSequence = Callable[[SequenceFiles], Examples]


@dataclass(frozen=True)
class Work:
    """Members first..last−1 of an ensemble `spec` in a trial; both by position in the job."""

    trial: int
    spec: int
    first: int
    last: int


def sequence_parts(
    batches: Iterator[pa.RecordBatch],
    job: SequenceJob,
    work: Sequence[Work],
    open_files: OpenSequence = open_sequence,
) -> Iterator[pa.RecordBatch]:
    """Yield a part per chunk of rounds, for each row's `work`; a row has the work's position."""
    for batch in batches:
        for place in batch.column("id").to_pylist():
            for row in _part_rows(job, work[place], open_files):
                yield build_batch([row], _PART_SCHEMA)


def sequence_results(
    batches: Iterator[pa.RecordBatch], job: SequenceJob, open_files: OpenSequence = open_sequence
) -> Iterator[pa.RecordBatch]:
    """Turn parts, sorted by trial, ensemble and block, into outcomes; the last has the model."""
    specs = {spec.label: spec for spec in job.specs}
    trials = {str(trial.number): trial for trial in job.trials}
    blocks = consecutive(batches, KEY)
    # one sequence object for all blocks of a trial: reordering it sorts all its rounds
    for (problem, label), of_sequence in groupby(blocks, key=lambda block: block[0][:2]):
        spec, trial = specs[label], trials[problem]
        sequence = sequence_of(job, spec.view, trial, open_files(spec.view.files))
        rows = [row for _, parts in of_sequence for row in _block_rows(job, spec, sequence, parts)]
        # one batch for all rows: a batch of so many columns costs as much as replaying a block
        yield build_batch(rows, _RESULT_SCHEMA)


def sequence_of(job: SequenceJob, view: View, trial: Trial, files: Examples) -> TrialSequence:
    """Return the examples of a trial in a view."""
    return TrialSequence(files, trial, view.squared, job.seed, view.gamma)


def outcome(first_round: int, losses: IntArray) -> Row:
    """Return the columns that some rounds add to the curve."""
    totals = np.cumsum(losses, dtype=np.int64)
    begin, end = np.searchsorted(CURVE_ROUNDS, [first_round, first_round + len(losses)], "right")
    return {
        "first_round": first_round,
        "n_rounds": len(losses),
        "losses": totals[CURVE_ROUNDS[begin:end] - first_round - 1],
        "total": int(totals[-1]),
    }


def held_out_metrics(scores: FloatArray, predicted: IntArray, ranks: IntArray) -> Row:
    """Return the metrics of a test part, {} if it is empty; misranking is None if all ranks tie."""
    if len(ranks) == 0:
        return {}
    return {
        "rank_loss": rank_loss(predicted, ranks),
        "exact_rank": exact_rank_rate(predicted, ranks),
        "misranking": pairwise_misranking(scores, ranks),
    }


def _part_rows(job: SequenceJob, work: Work, open_files: OpenSequence) -> Iterator[Row]:
    spec, trial = job.specs[work.spec], job.trials[work.trial]
    sequence = sequence_of(job, spec.view, trial, open_files(spec.view.files))
    ensemble, group = job.ensemble(spec, trial), None
    problem, n_train = str(trial.number), trial.part.n_train
    try:
        for X, ranks in sequence.chunks(job.chunk):
            group = ensemble.train_members(X, ranks, first=work.first, last=work.last, resume=group)
            held_out = sequence.held_out()[0] if group.n_rounds == n_train else None
            part = part_of(group, ensemble.combine, held_out, keep_rules=spec.keep_members)
            yield as_row(problem, spec.label, part)
    except LearnerError as error:
        yield {"problem": problem, "learner": spec.label, "block": block_of(n_train),
               "first_round": n_train, "failure": str(error)}  # fmt: skip


def _block_rows(
    job: SequenceJob, spec: SequenceSpec, sequence: TrialSequence, parts: Sequence[Row]
) -> Iterator[Row]:
    """Yield the outcome of every chunk of a block; after a failure, one row with its message."""
    key: Row = {"trial": sequence.trial.number, "learner": spec.label}
    failures = [part["failure"] for part in parts if part["failure"] is not None]
    if failures:
        yield key | {"failure": min(failures)}
        return
    rule: RuleSum | None = None
    by_round = itemgetter("first_round")
    for first, chunk in groupby(sorted(parts, key=by_round), key=by_round):
        part = sum_of_rows(chunk, job.n_ranks)
        X, ranks = sequence.rounds(first, first + part.sums.n_rounds)
        predicted, rule = part.sums.round_ranks(spec.params["combine"], X, rule)
        row = key | outcome(first, np.abs(predicted - ranks))
        if first + len(ranks) == sequence.trial.part.n_train:
            row |= _model(job, spec, part, sequence)
        yield row


def _model(job: SequenceJob, spec: SequenceSpec, part: MemberPart, sequence: TrialSequence) -> Row:
    trial, (X, ranks) = sequence.trial, sequence.held_out()
    learned, rules = combined(job.ensemble(spec, trial), part), split_rules(part, job.n_ranks)
    scores, predicted = learned.decision_function(X), learned.predict(X)
    return {
        "status": "learned",
        "n_train": trial.part.n_train,
        "n_test": trial.part.n_test,
        "hyperparameters": spec.hyperparameters,
        "kernel": spec.kernel,
        "gamma": spec.gamma,
        "on_rating_scale": False,
        "intercept": 0.0,
        "offset_weight": 0.0,
        **rule_columns(job, spec, trial, learned, rules, sequence.examples.supports),
        "n_members": learned.n_members,
        **member_columns(part),
        **held_out_metrics(scores, predicted, ranks),
    }
