"""The source of a sequence: a Parquet file, or one user's ratings with the run's features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from spark_rank.config import Config
from spark_rank.config.schema import EnsembleLearnerConfig
from spark_rank.errors import ConfigError, InputDataError
from spark_rank.features.files import MappedFile, open_distributed
from spark_rank.learners.errors import LearnerError
from spark_rank.learners.kernels import Kernel
from spark_rank.reader.recorded import ensemble_spec
from spark_rank.sequences.examples import SequenceUser, Trial, View
from spark_rank.sequences.files import (
    SequenceFiles,
    TrialPart,
    as_files,
    read_sequence,
    sequence_facts,
    write_sequence,
)
from spark_rank.sequences.landmarks import landmark_features
from spark_rank.stages.ingest_inputs import files_of
from spark_rank.stages.training import learn_job
from spark_rank.store.run import Run
from spark_rank.tables.contracts import BLOCKS
from spark_rank.users.ensemble_learning import BLOCK
from spark_rank.users.ensembles import problem_number
from spark_rank.users.fitting import with_offset
from spark_rank.users.learning import LearnJob
from spark_rank.users.prior_scores import Prior, prior_of
from spark_rank.users.problems import Problem, problems
from spark_rank.wording import count_of

COEF0 = 1.0  # constant of the polynomial kernel


@dataclass(frozen=True)
class Source:
    """A sequence as files in a local folder.

    `views` are the features that each ensemble sees, `prior` the offset and the expected weights
    of the user, `words` a description.
    """

    trials: tuple[Trial, ...]
    views: tuple[View, ...]
    n_ranks: int
    words: str
    prior: tuple[Prior, ...]
    user: SequenceUser | None = None

    @property
    def files(self) -> list[MappedFile]:
        """Return the files, each once."""
        every = [file for view in self.views for file in view.files.all()]
        return list(dict.fromkeys(every))


def sequence_source(config: Config, run: Run, folder: Path) -> Source:
    """Write the sequence that the settings name into a local folder."""
    return _user(config, run, folder) if config.ensemble.user else _parquet(config, run, folder)


def _parquet(config: Config, run: Run, folder: Path) -> Source:
    settings = config.ensemble
    assert settings.sequence is not None
    key = f"ensemble.sequence: {settings.sequence}"
    paths = [info.path for info in files_of("ensemble.sequence", settings.sequence, run)]
    for path in paths:
        if run.files.head(path, 4) != b"PAR1":
            raise InputDataError(f"{key}: {path} is not a Parquet file")
    table = read_sequence(run.spark, paths, key)
    facts = sequence_facts(table, key)
    if len(facts.parts) > 1 and settings.trials > 1:
        raise ConfigError(
            f"ensemble.trials: {settings.trials}, but the column `trial` already has "
            f"{len(facts.parts)} trials: set ensemble.trials to 1"
        )
    files = write_sequence(table, facts, folder)
    if len(facts.parts) > 1:
        trials = tuple(Trial(part.trial, part, part.trial, False) for part in facts.parts)
    else:
        trials = repeated(facts.parts[0], settings.trials, 0)
    views = [_view(entry, files, trials, config.seed, folder) for entry in settings.learners]
    prior = (Prior(None, None),) * len(views)
    return Source(trials, tuple(views), facts.n_ranks, f"{facts.n_examples:,} examples", prior)


def repeated(part: TrialPart, times: int, problem: int) -> tuple[Trial, ...]:
    """Return `times` trials of the same examples; all but the first are shuffled."""
    return tuple(Trial(n + 1, part, problem + n, n > 0) for n in range(times))


def _user(config: Config, run: Run, folder: Path) -> Source:
    settings = config.ensemble
    specs = [ensemble_spec(entry, config.seed) for entry in settings.learners]
    job = learn_job(config.train, specs, run.spark, run)
    assert job.limits.scale is not None
    problem, user = _problem(job, config.ensemble.user or "", run)
    ranks = job.limits.scale.ranks(problem.ratings)
    files: dict[bool, SequenceFiles] = {}
    for spec in specs:
        if spec.item_offset not in files:
            X = with_offset(problem.X, prior_of(problem, spec).offset)
            files[spec.item_offset] = as_files(X, ranks, folder)
    part = TrialPart(1, 0, problem.n_train, len(ranks) - problem.n_train)
    trials = repeated(part, settings.trials, problem_number(problem.user_id))
    views = [
        _view(entry, files[entry.item_offset], trials, config.seed, folder)
        for entry in settings.learners
    ]
    words = f"{count_of(len(ranks), 'rating')} of user {problem.user_id}"
    prior = tuple(prior_of(problem, spec) for spec in specs)
    return Source(trials, tuple(views), job.limits.scale.n_ranks, words, prior, user)


def _problem(job: LearnJob, user_id: str, run: Run) -> tuple[Problem, SequenceUser]:
    blocks = run.read(BLOCKS).where(F.col("user_id") == user_id)
    block = blocks.select(*[column.name for column in BLOCK]).toArrow().combine_chunks()
    if len(block) == 0:
        raise ConfigError(
            f"ensemble.user: the run has no user {user_id!r}: choose an id of the table `users`; "
            "prepare.filters may have removed this one"
        )
    features = open_distributed(job.files)
    (problem,) = problems(block.to_batches()[0], features, job.panel)
    ids = features.item_ids.take(pa.array(problem.items[problem.train])).to_pylist()
    user = SequenceUser(problem.user_id, tuple(ids), problem.excluded_feature, problem.reviewers)
    return problem, user


def _view(
    entry: EnsembleLearnerConfig,
    files: SequenceFiles,
    trials: Sequence[Trial],
    seed: int,
    folder: Path,
) -> View:
    """Return the view of an ensemble: the features, their terms of degree 2, or landmarks."""
    if entry.kernel == "linear":
        return View(files, squared=False)
    if entry.kernel == "poly" and entry.degree == 2:
        return View(files, squared=True, gamma=entry.gamma)
    kernel = Kernel(entry.kernel, entry.gamma, entry.degree, COEF0)
    parts = list(dict.fromkeys(trial.part for trial in trials))
    features = np.load(folder / files.features.name, mmap_mode="r", allow_pickle=False)
    try:
        mapped, supports = landmark_features(features, parts, kernel, entry.budget, seed, folder)
    except LearnerError as error:
        raise InputDataError(f"ensemble: {entry.label}: {error}") from None
    return View(replace(files, features=mapped, supports=supports), squared=False)
