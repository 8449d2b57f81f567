"""Features of a factor model, learned from training ratings."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from spark_rank.config import Config, FeaturesConfig
from spark_rank.errors import ConfigError, InputDataError
from spark_rank.events import emit
from spark_rank.features.factor_model import most_users
from spark_rank.features.factors import Factors, learn_factors, sample_users
from spark_rank.features.files import open_distributed
from spark_rank.reader.recorded import is_refitted
from spark_rank.records.features import FactorFacts
from spark_rank.stages.feature_tables import (
    distribute_files,
    feature_table,
    publish_files,
    squared_radius,
)
from spark_rank.stages.final_run import FinalRun
from spark_rank.stages.stage import StageResult
from spark_rank.store.run import Run
from spark_rank.tables.contracts import BLOCKS, ITEM_FEATURES, ITEMS
from spark_rank.wording import count_of


def factor_features(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Learn item factors and the prior of every user."""
    settings = config.features
    items = run.read(ITEMS).select("item", "item_id").toArrow().sort_by("item")
    found = learned_factors(
        settings,
        run.read(BLOCKS),
        n_items=len(items),
        seed=config.seed,
        stage=run.in_progress.stage,
    )
    offsets = items.append_column("offset", pa.array(found.offset))
    rows = run.write(ITEM_FEATURES, feature_table(spark, found.matrix, offsets))
    files = publish_files(run, found.matrix, offsets, found.prior)
    return StageResult(
        f"{count_of(rows, 'item')} × {count_of(settings.rank, 'factor')} from "
        f"{count_of(found.n_ratings, 'training rating')} of {count_of(found.n_users, 'user')}, "
        f"noise {found.noise:.3f}",
        {ITEM_FEATURES.table: rows},
        FactorFacts(
            files=files,
            squared_radius=squared_radius(found.matrix),
            users=found.n_users,
            ratings=found.n_ratings,
            noise=found.noise,
            spread=found.spread,
        ),
    )


def learned_factors(
    settings: FeaturesConfig, blocks: DataFrame, *, n_items: int, seed: int, stage: str
) -> Factors:
    """Learn factors from the training ratings of a sample of the blocks' users."""
    data = sample_users(
        blocks,
        n_items=n_items,
        share=settings.user_share,
        max_ratings=settings.max_ratings,
        max_users=most_users(settings.rank),
        seed=seed,
    )
    if len(data.ratings) == 0:
        raise InputDataError(
            f"{stage}: the sample of users has no training rating: raise features.user_share or "
            "features.max_ratings"
        )
    say = partial(_say_round, stage)
    return learn_factors(data, rank=settings.rank, rounds=settings.rounds, seed=seed, progress=say)


def run_with_factors(config: Config, run: Run) -> tuple[Run, dict[str, Any]]:
    """Return the run whose factors are kept, and its record of them, or raise `ConfigError`."""
    named = config.features.kept_from or ""
    earlier = Run(run.spark, config.store, named)
    if run.all_ratings and is_refitted(earlier):
        earlier = FinalRun(earlier)
    record = earlier.record("features")
    if record is None or record["settings"]["kind"] != "factors":
        raise ConfigError(
            f"features.kept_from: run {named!r} in {config.store} has no factors: name a run that "
            "has finished 'features' with features.kind 'factors'"
        )
    return earlier, record


def kept_features(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Take the factors of an earlier run; of items that it does not know nothing is expected."""
    earlier, record = run_with_factors(config, run)
    old = open_distributed(distribute_files(spark, earlier))
    items = run.read(ITEMS).select("item", "item_id").toArrow().sort_by("item")
    ids = items.column("item_id").combine_chunks()
    found = pc.index_in(ids, value_set=old.item_ids).to_numpy(zero_copy_only=False)
    known = ~np.isnan(found)
    rows = found[known].astype(np.int64)
    matrix = np.zeros((len(items), old.matrix.shape[1]), dtype=np.float32)
    offset = np.zeros(len(items))
    prior = np.zeros((len(items) + 2, old.matrix.shape[1]), dtype=np.float32)
    matrix[known], offset[known] = old.matrix[rows], old.offset[rows]
    # behind the items' rows are those that belong to no item
    prior[:-2][known], prior[-2:] = old.prior[rows], old.prior[-2:]
    offsets = items.append_column("offset", pa.array(offset))
    written = run.write(ITEM_FEATURES, feature_table(spark, matrix, offsets))
    learned = earlier.facts(FactorFacts)
    unknown = int(np.count_nonzero(~known))
    return StageResult(
        # a column more holds every user's own level, and is no factor
        f"{count_of(written, 'item')} × {count_of(matrix.shape[1] - 1, 'factor')} kept from "
        f"{earlier.run_id}, {count_of(unknown, 'item')} without: zeros",
        {ITEM_FEATURES.table: written},
        replace(
            learned,
            files=publish_files(run, matrix, offsets, prior),
            squared_radius=squared_radius(matrix),
            origin=learned.origin or record["fingerprint"],
            without=unknown,
        ),
    )


def _say_round(stage: str, number: int, noise: float) -> None:
    if number % 5 == 0:
        text = f"round {number}, noise {noise:.4f}"
        emit("round", text, stage=stage, number=number, noise=noise)
