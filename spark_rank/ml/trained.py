"""The parts of a model, whether `fit` learned it or a run holds it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import Config
from spark_rank.data.rating_scale import Level
from spark_rank.features.files import ItemFeatures, open_distributed
from spark_rank.frames.block_counts import counted, item_counts
from spark_rank.frames.newcomers import newcomer_levels
from spark_rank.records.data import RatingScale
from spark_rank.records.features import FeatureFacts
from spark_rank.records.models import Status
from spark_rank.stages.training import scale_of
from spark_rank.users.candidates import ListRules, item_facts
from spark_rank.users.learning import LearnJob
from spark_rank.users.predicting import PairJob, as_bytes, newcomer_model
from spark_rank.users.rank_scale import RankScale
from spark_rank.users.specs import LearnerSpec


@dataclass(frozen=True)
class Trained:
    """Tables, feature files and settings of one learner's models.

    `models` has the rows of the learner and of the item offset. `tables` holds `item_features`
    and the tables of reviewers, if any; `features` holds facts about them. `levels` and
    `rating_scale` describe the scale of the ratings.
    """

    spark: SparkSession
    config: Config
    job: LearnJob
    users: DataFrame
    items: DataFrame
    blocks: DataFrame
    models: DataFrame
    tables: dict[str, DataFrame]
    features: FeatureFacts
    levels: list[Level]
    rating_scale: RatingScale
    status: Status
    # after `foldIn`, the model whose cached tables these tables still read
    base: Trained | None = None

    @property
    def spec(self) -> LearnerSpec:
        """Return the learner whose models score."""
        return next(spec for spec in self.job.specs if not spec.is_baseline)

    @property
    def scale(self) -> RankScale | None:
        """Return the levels of the ratings; None for a continuous scale without cuts."""
        return scale_of([(rating, lower) for _, rating, lower, _ in self.levels])

    @property
    def limits(self) -> tuple[float, float]:
        """Return the least and the greatest rating."""
        return self.rating_scale.low, self.rating_scale.high

    @property
    def buckets(self) -> int:
        """Return the number of buckets of users."""
        return self.config.prepare.buckets

    def own_models(self) -> DataFrame:
        """Return the models of the learner, one per user."""
        return self.models.where(F.col("learner") == self.spec.label)

    def scoring_models(self) -> DataFrame:
        """Return these models without the columns in which none of them has a value.

        Spark takes long to hand columns of null lists to a worker, and scoring does without them.
        """
        return self.own_models().select(*self._filled_columns)

    @cached_property
    def _filled_columns(self) -> list[str]:
        own = self.own_models()
        filled = own.agg(*[F.max(F.col(name).isNotNull()).alias(name) for name in own.columns])
        row = filled.head()
        return [name for name in own.columns if row is None or row[name] is not False]

    @cached_property
    def opened(self) -> ItemFeatures:
        """Return the features, mapped into the driver's memory."""
        return open_distributed(self.job.files)

    @cached_property
    def counts(self) -> pa.Table:
        """Return ``item_id, item, n_train, n`` of every item that somebody has rated."""
        return item_counts(counted(self.blocks, self.rating_scale), self.items).toArrow()

    @cached_property
    def pair_job(self) -> PairJob:
        """Return the job that scores pairs of users and items."""
        levels = newcomer_levels(self.blocks, self.counts, self.opened)
        newcomer = newcomer_model(self.opened, self.spec, self.scale, levels.prior)
        return PairJob(self.job.files, self.scale, as_bytes(newcomer))

    @cached_property
    def item_facts(self) -> pa.Table:
        """Return ``item, item_id, title, n_ratings, candidate`` of every item, by number."""
        items = self.items.select("item", "item_id").toArrow()
        return item_facts(items, self.counts, None, ListRules(min_ratings=0, counted_only=True))
