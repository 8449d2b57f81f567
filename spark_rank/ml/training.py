"""Learns models from rows of ratings, as `fit` does; the stages call the same functions."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_rank.config import Config
from spark_rank.config.schema import ITEM_OFFSET
from spark_rank.data.blocks import user_blocks
from spark_rank.data.formats.content_tables import read_content
from spark_rank.data.rating_scale import find_scale, known_scale
from spark_rank.errors import ConfigError, InputDataError, TooManyFailuresError
from spark_rank.features.files import FeatureFiles, distribute_local
from spark_rank.features.given import read_vectors
from spark_rank.frames.blocks import (
    check_ratings,
    item_numbers,
    number_ratings,
    user_numbers,
)
from spark_rank.frames.item_features import FeatureArrays, feature_tables, given_features
from spark_rank.frames.train import train
from spark_rank.frames.weights import WEIGHT, check_weights, with_weights
from spark_rank.learners import learner_class
from spark_rank.ml.caches import Caches
from spark_rank.ml.trained import Trained
from spark_rank.session.crashes import isolating_on_crash
from spark_rank.stages.feature_arrays import feature_arrays
from spark_rank.stages.train import status_counts, status_in_words
from spark_rank.stages.training import fitted_propensities, job_on, scale_of, specs_of
from spark_rank.stages.tune import choices, decided, errors_on_sample
from spark_rank.store.failures import failure_examples
from spark_rank.users.learning import FAILED, LearnJob
from spark_rank.users.specs import BASELINE_SPECS, LearnerSpec
from spark_rank.wording import count_of


def train_on(rows: DataFrame, config: Config) -> Trained:
    """Learn a model of every user from ``user_id, item_id, rating, timestamp``.

    Cached DataFrames live as long as the result; after a failure they are freed at once.
    """
    caches = Caches()
    with caches.released_on_failure():
        trained = _trained(rows, config, caches)
    caches.live_as_long_as(trained)
    return trained


def _trained(ratings_in: DataFrame, config: Config, caches: Caches) -> Trained:
    rows = caches.keep(ratings_in)
    count = check_ratings(rows, config.input)
    weighted = WEIGHT in rows.columns
    if weighted:
        check_takes_weights(config)
        check_weights(rows)
    users = caches.keep(user_numbers(rows, count))
    described = _described_items(rows, config)
    items = caches.keep(item_numbers(rows, count, described))
    content = None if described is None else caches.keep(described.join(items, "item_id"))
    ratings = number_ratings(rows, users, items, count, config.input.duplicates)
    blocks = caches.keep(user_blocks(ratings, users, items, config.prepare, config.seed))
    # means of duplicates lie between the levels: the scale is that of the input's ratings
    as_given = config.input.duplicates == "mean"
    rated = rows if as_given else blocks.select(F.explode("ratings").alias("rating"))
    stored = rated.select(F.col("rating").cast("float").alias("rating"))
    levels, rating_scale = find_scale(stored, config.input.cuts, known_scale(config.input))
    learned_from = blocks
    if weighted:
        learned_from = caches.keep(with_weights(blocks, rows, users, items))
        learned_from.count()
    users_left = blocks.count()
    caches.drop(rows)  # from here on nothing reads the input again
    if users_left == 0:
        raise InputDataError(
            f"each of the {count_of(count, 'rating')} has a duplicate, and duplicates "
            f"{config.input.duplicates!r} drops them all: choose another policy"
        )
    middle = (rating_scale.low + rating_scale.high) / 2.0
    arrays = _features(config, blocks, items, middle, content)
    panel = _panel(config, arrays)
    scale = scale_of([(rating, lower) for _, rating, lower, _ in levels])
    files = _distributed(blocks, arrays)
    job = job_on(files, config.train, specs_of(config.train), panel, scale)
    facts = arrays.facts(files)
    if config.train.weights != "none":
        job = replace(job, propensities=fitted_propensities("trainWeights", facts))
    job = replace(job, specs=tuple(_decided(config, blocks, items, job, content)))
    models = _learned(learned_from, job, caches)
    if weighted:
        caches.drop(learned_from)
    status = status_counts(models)
    _check_failures(models, status, config)
    return Trained(
        blocks.sparkSession, config, job, users, items, blocks, models,
        feature_tables(blocks.sparkSession, arrays),
        facts, levels, rating_scale, status,
    )  # fmt: skip


def check_takes_weights(config: Config) -> None:
    """Raise `ConfigError` if a learner takes no weights or has a grid."""
    for entry in config.train.learners:
        if not learner_class(entry.learner).takes_weights:
            raise ConfigError(
                f"fit: the learner {entry.learner!r} takes no weights: leave weightCol out, or use "
                "mprank"
            )
        if entry.grid:
            raise ConfigError(
                "fit: a grid cannot be searched with weights: set learnerParams instead of "
                "learnerGrid, or leave weightCol out"
            )


def _described_items(rows: DataFrame, config: Config) -> DataFrame | None:
    """Return ``item_id, name, value`` of the table that describes items; None without one."""
    if config.input.items is None:
        return None
    content = read_content(rows.sparkSession, [config.input.items])
    return content.withColumnRenamed("id", "item_id")


def _features(
    config: Config,
    blocks: DataFrame,
    items: DataFrame,
    middle: float,
    content: DataFrame | None,
) -> FeatureArrays:
    settings = config.features
    if settings.kind != "given":
        return feature_arrays(
            settings, blocks, items, middle=middle, seed=config.seed, stage="fit", content=content
        )
    if settings.given is None:
        raise InputDataError(
            "fit: features of kind 'given' come from a file: set the parameter `given` to its path"
        )
    vectors = read_vectors(blocks.sparkSession, [settings.given], "given")
    return given_features(
        blocks, items, vectors, standard=settings.given_scale == "standard",
        shrinkage=settings.offset_shrinkage,
    )  # fmt: skip


def _panel(config: Config, arrays: FeatureArrays) -> dict[int, int]:
    """Return the feature column of every reviewer, by the number of the user."""
    if config.features.kind != "panel" or arrays.reviewers is None:
        return {}
    names = (arrays.reviewers.column(name).to_pylist() for name in ("user", "feature"))
    return dict(zip(*names, strict=True))


def _distributed(blocks: DataFrame, arrays: FeatureArrays) -> FeatureFiles:
    """Send the feature files to every node, where they stay as long as the session."""
    with tempfile.TemporaryDirectory(prefix="spark-rank-") as folder:
        files = arrays.write(Path(folder))
        distribute_local(blocks.sparkSession, Path(folder), files.all())
    return files


def _decided(
    config: Config, blocks: DataFrame, items: DataFrame, job: LearnJob, content: DataFrame | None
) -> list[LearnerSpec]:
    """Return the item offset and the learner, with the grid point that the sample chooses."""
    baselines = [spec for spec in BASELINE_SPECS if spec.label == ITEM_OFFSET]
    grids = [spec for spec in job.specs if spec.grid]
    if not grids:
        return [*baselines, *job.specs]
    grid_job = replace(job, specs=tuple(grids))
    tasks = 4 * config.prepare.buckets
    errors = errors_on_sample(config, config.features, blocks, items, grid_job, tasks, content)
    _, _, facts = choices(grids, errors, job.limits.scale)
    return [*baselines, *decided(job.specs, facts)]


def _learned(blocks: DataFrame, job: LearnJob, caches: Caches) -> DataFrame:
    def learned(isolated: bool) -> DataFrame:
        models = caches.keep(train(blocks, replace(job, isolated=isolated)))
        models.count()
        return models

    return isolating_on_crash(learned, "fit", "the models")


def _check_failures(models: DataFrame, status: dict[str, dict[str, int]], config: Config) -> None:
    """Raise `TooManyFailuresError` if more users failed than the settings allow."""
    for learner, by_status in status.items():
        failed = sum(n for name, n in by_status.items() if name.startswith(FAILED))
        if failed > config.train.max_failed_share * sum(by_status.values()):
            raise TooManyFailuresError(
                f"{learner}: {failed:,} users failed ({status_in_words(by_status)}), more than "
                f"maxFailedShare {config.train.max_failed_share:g} allows; for example "
                f"{failure_examples(models)[learner]}"
            )
