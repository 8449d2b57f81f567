"""tune: errors of grid points on a sample of users, on ratings that no feature has seen."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import Config, FeaturesConfig
from spark_rank.config.schema import FACTOR_KINDS
from spark_rank.config.sections import check_train
from spark_rank.data.blocks import with_held_back
from spark_rank.errors import ConfigError, InputDataError
from spark_rank.events import emit
from spark_rank.frames.tuning import least_ratings, sample_errors, tuning_sample
from spark_rank.learners.errors import LearnerError
from spark_rank.records.models import TuneFacts
from spark_rank.stages.features import item_content
from spark_rank.stages.stage import Stage, StageResult
from spark_rank.stages.training import learn_job, specs_of, target_blocks
from spark_rank.stages.unseen_features import unseen_features
from spark_rank.store.run import Run
from spark_rank.tables.contract import arrow_schema
from spark_rank.tables.contracts import BLOCKS, ITEM_FEATURES, ITEMS, TUNING
from spark_rank.users.choice_prior import ChoicePrior
from spark_rank.users.grid_edges import edges
from spark_rank.users.learning import LearnJob
from spark_rank.users.rank_scale import RankScale
from spark_rank.users.specs import LearnerSpec
from spark_rank.users.tuning import Row, SampleErrors, grid_scores
from spark_rank.wording import count_of


def tune(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Measure every point of every grid, and choose: for all users, or as each user's start."""
    specs = [spec for spec in specs_of(config.train) if spec.grid]
    if not specs:
        raise ConfigError(
            "tune: no learner in train.learners has a grid: add one, or leave `tune` out"
        )
    earlier_choice = _kept_choice(config, run)
    if earlier_choice is not None:
        return earlier_choice
    job = learn_job(config.train, specs, spark, run)
    features, tasks = _as_recorded(config, run), spark.sparkContext.defaultParallelism * 4
    errors = errors_on_sample(
        config, features, run.read(BLOCKS), run.read(ITEMS), job, tasks, item_content(run)
    )
    rows, words, facts = choices(specs, errors, job.limits.scale)
    table = pa.Table.from_pylist(rows, arrow_schema(TUNING.columns))
    written = run.write(TUNING, spark.createDataFrame(table).coalesce(1))
    return StageResult(words, {TUNING.table: written}, facts)


def errors_on_sample(
    config: Config,
    features: FeaturesConfig,
    blocks: DataFrame,
    items: DataFrame,
    job: LearnJob,
    tasks: int,
    content: DataFrame | None = None,
) -> pa.Table:
    """Return the errors of the sample's users on ratings that the features have not seen.

    `features` are the settings of the features of `job`, `content` the items' content, if any.
    """
    settings = config.train
    targets = target_blocks(settings, blocks)
    users = tuning_sample(targets, config.tune.users, settings.min_ratings, config.seed)
    if len(users) == 0:
        raise InputDataError(
            f"tune: no user has the {least_ratings(settings.min_ratings)} training ratings that "
            "the choice of hyper-parameters needs: leave the grids out"
        )
    chosen = blocks.sparkSession.createDataFrame(users)
    held_back = with_held_back(blocks, chosen, settings.folds, max(settings.min_ratings, 2))
    files = unseen_features(features, held_back, items, job.files, config.seed, content)
    return sample_errors(held_back, chosen, replace(job, files=files), tasks)


def choices(
    specs: Sequence[LearnerSpec], errors: pa.Table, scale: RankScale | None
) -> tuple[list[Row], str, TuneFacts]:
    """Return the rows of the table `tuning`, and the choices in words and as facts."""
    try:
        rows = grid_scores(specs, errors, scale)
    except LearnerError as error:
        raise InputDataError(f"tune: {error}") from None
    best = {row["learner"]: row["candidate"] - 1 for row in rows if row["chosen"]}
    points = {spec.label: spec.candidates()[best[spec.label]] for spec in specs}
    priors = {spec.label: SampleErrors.of(spec, errors).prior()
              for spec in specs if spec.chosen_per_user}  # fmt: skip
    words = "; ".join(_in_words(spec, points[spec.label], priors) for spec in specs)
    failures = errors.column("detail").drop_null().to_pylist()
    if failures:
        words += f"; left out {count_of(len(failures), 'failure')}, the first: {failures[0]}"
    at_edges = [text for spec in specs for text in edges(spec, points[spec.label])]
    for text in at_edges:
        emit("grid_edge", text, stage="tune", level="warning")
    facts = TuneFacts(
        chosen=points,
        priors={label: None if p is None else p.to_facts() for label, p in priors.items()},
        edges=tuple(at_edges),
        failures=len(failures),
    )
    return rows, words, facts


def _in_words(
    spec: LearnerSpec, point: dict[str, Any], priors: dict[str, ChoicePrior | None]
) -> str:
    text = ", ".join(f"{name} {point[name]}" for name in spec.grid)
    if spec.label not in priors:
        return f"{spec.label}: {text}"
    if priors[spec.label] is None:
        return f"{spec.label}: {text} for all users: choices by a user's own errors are no better"
    return f"{spec.label}: chosen user by user, starting from {text}"


def _kept_choice(config: Config, run: Run) -> StageResult | None:
    """Return the choice of the run whose factors are kept, if its settings are the same."""
    named = config.features.kept_from
    if named is None:
        return None
    earlier = Run(run.spark, config.store, named)
    record = earlier.record("tune")
    if record is None or record["settings"] != _plain_settings(config):
        return None
    columns = [column.name for column in TUNING.columns]
    rows = run.write(TUNING, earlier.read(TUNING).select(*columns).coalesce(1))
    return StageResult(f"kept from {named}: {record['message']}", {TUNING.table: rows},
                       earlier.facts(TuneFacts))  # fmt: skip


def _as_recorded(config: Config, run: Run) -> FeaturesConfig:
    """Return the recorded settings of the run's features, not those of this command."""
    settings = {**(run.record("features") or {})["settings"]}
    settings.pop("kept_from", None)
    recorded = replace(config.features, **settings)
    if recorded.kind not in FACTOR_KINDS:
        return recorded
    # kept factors may have another rank than the configuration
    width = run.read(ITEM_FEATURES).select(F.size("features").alias("width")).head()
    return replace(recorded, rank=width["width"] - 1) if width else recorded


def decided_specs(config: Config, run: Run) -> list[LearnerSpec]:
    """Return the learners of the configuration, with the run's choices from their grids."""
    specs = specs_of(config.train)
    if not is_needed(config):
        return specs
    record = run.record("tune") or {}
    if record["settings"] != _plain_settings(config):
        raise ConfigError(
            f"run {run.run_id!r} has chosen hyper-parameters for other settings than these: start "
            "a new run with --set run_id=NAME, or go back to the old values"
        )
    return decided(specs, run.facts(TuneFacts))


def decided(specs: Sequence[LearnerSpec], facts: TuneFacts) -> list[LearnerSpec]:
    """Return the learners with the choices in the facts of `choices`."""
    return [_decided(spec, facts) if spec.grid else spec for spec in specs]


def _decided(spec: LearnerSpec, facts: TuneFacts) -> LearnerSpec:
    prior = facts.priors.get(spec.label)
    if prior is not None:
        return replace(spec, prior=ChoicePrior.from_facts(prior))
    return replace(spec, params=facts.chosen[spec.label], grid={})


def is_needed(config: Config) -> bool:
    """Tell whether a learner has a grid to choose from."""
    return any(entry.grid for entry in config.train.learners)


def _plain_settings(config: Config) -> Any:
    return json.loads(json.dumps(_deciding_settings(config)))


def _deciding_settings(config: Config) -> Any:
    entries = [entry for entry in config.train.learners if entry.grid]
    settings = config.train
    return {
        "tune": {"users": config.tune.users},
        "learners": [
            {"name": entry.label, "learner": entry.learner, "item_offset": entry.item_offset,
             "params": entry.params, "grid": entry.grid, "selection": entry.selection}
            for entry in entries
        ],
        "min_ratings": settings.min_ratings,
        "max_kernel_ratings": settings.max_kernel_ratings,
        "landmarks": settings.landmarks,
        "folds": settings.folds,
        "targets": [settings.targets_min, settings.targets_max],
    }  # fmt: skip


STAGE = Stage(
    name="tune",
    run=tune,
    settings=_deciding_settings,
    needs=lambda config: ("features", "prepare"),
    validate=check_train,
)
