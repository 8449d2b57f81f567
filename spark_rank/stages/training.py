"""What `tune` and `train` share: learners, users to learn, the rating scale, the workers' job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.config.schema import TrainConfig
from spark_rank.errors import ConfigError, InputDataError
from spark_rank.features.files import FeatureFiles, open_distributed
from spark_rank.frames.newcomers import newcomer_levels
from spark_rank.records.data import PrepareFacts
from spark_rank.records.features import FactorFacts, FeatureFacts, ShownFacts, feature_facts
from spark_rank.stages.feature_tables import distribute_files
from spark_rank.store.run import Run
from spark_rank.tables.contracts import BLOCKS, ITEM_COUNTS, PANEL, RATING_SCALE
from spark_rank.users.fitting import Limits
from spark_rank.users.learning import LearnJob
from spark_rank.users.newcomers import Levels
from spark_rank.users.rank_scale import RankScale
from spark_rank.users.specs import LearnerSpec


def specs_of(settings: TrainConfig) -> list[LearnerSpec]:
    """Return the specifications of the configured learners, for the workers."""
    return [
        LearnerSpec(
            entry.label, entry.learner, entry.item_offset, entry.params, entry.grid,
            entry.selection,
        )
        for entry in settings.learners
    ]  # fmt: skip


def target_blocks(settings: TrainConfig, blocks: DataFrame) -> DataFrame:
    """Return the blocks of the users to learn."""
    size = F.size("items")
    if settings.targets_min is not None:
        blocks = blocks.where(size >= settings.targets_min)
    if settings.targets_max is not None:
        blocks = blocks.where(size <= settings.targets_max)
    return blocks


def learn_job(
    settings: TrainConfig, specs: Sequence[LearnerSpec], spark: SparkSession, run: Run
) -> LearnJob:
    """Distribute the feature files; return the job of the workers."""
    files = distribute_files(spark, run)
    # from the record: this command's configuration may name another kind of features
    shared = (run.record("features") or {})["settings"]["kind"] == "panel"
    panel = {row["user"]: row["feature"] for row in run.read(PANEL).collect()} if shared else {}
    job = job_on(files, settings, specs, panel, rank_scale(run))
    job = replace(job, levels=_levels(files, run))
    if settings.weights == "none":
        return job
    return replace(job, propensities=run_propensities("train.weights", run))


def run_propensities(key: str, run: Run) -> ShownFacts:
    """Return the propensities of a run's features, or raise `ConfigError`; `key` asks for them."""
    kind = (run.record("features") or {})["settings"]["kind"]
    return fitted_propensities(key, run.facts(feature_facts(kind)))


def fitted_propensities(key: str, facts: FeatureFacts) -> ShownFacts:
    """Return the propensities among the facts, or raise `ConfigError`; `key` asks for them."""
    if not isinstance(facts, FactorFacts) or facts.shown is None:
        raise ConfigError(
            f"{key}: needs the propensities of the features: set features.propensities to fitted "
            f"and start anew, or leave {key} out"
        )
    return facts.shown


def _levels(files: FeatureFiles, run: Run) -> Levels | None:
    """Return the levels of users without training ratings; None if there are no such users."""
    if run.all_ratings or run.facts(PrepareFacts).users_without_training == 0:
        return None
    counts = run.read(ITEM_COUNTS).select("item", "n_train").toArrow()
    return newcomer_levels(run.read(BLOCKS), counts, open_distributed(files))


def job_on(
    files: FeatureFiles,
    settings: TrainConfig,
    specs: Sequence[LearnerSpec],
    panel: Mapping[int, int],
    scale: RankScale | None,
) -> LearnJob:
    """Return the job of the workers; `panel` has the feature that is a user's own ratings."""
    limits = Limits(scale, settings.max_kernel_ratings, settings.landmarks, settings.folds)
    of_ranks = [spec.label for spec in specs if spec.kind.of_ranks]
    if of_ranks and (scale is None or scale.n_ranks < 2):
        raise InputDataError(
            f"{of_ranks[0]} learns ranks, but the ratings have no levels, or only one: cut the "
            "scale into levels with input.cuts, or leave that learner out"
        )
    return LearnJob(files, tuple(specs), panel, settings.min_ratings, settings.margin, limits)


def tasks_by_bucket(run: Run) -> int:
    """Return the number of tasks for work by bucket: one per bucket."""
    return int((run.record("prepare") or {})["settings"]["buckets"])


def rank_scale(run: Run) -> RankScale | None:
    """Return the levels of the ratings; None if the scale is continuous and not cut."""
    rows = sorted(run.read(RATING_SCALE).collect(), key=lambda row: row["rank"])
    return scale_of([(row["rating"], row["lower"]) for row in rows])


def scale_of(levels: Sequence[tuple[float, float | None]]) -> RankScale | None:
    """Return the scale of levels, each with the cut where it begins; None without levels."""
    # ratings are stored as float32: cuts are rounded like them
    cuts = tuple(float(np.float32(lower)) for _, lower in levels if lower is not None)
    return RankScale(tuple(rating for rating, _ in levels), cuts or None) if levels else None
