"""rank: each user's held-out items in the order of a chosen preference function."""

from __future__ import annotations

from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import Config
from spark_rank.config.schema import TrainConfig
from spark_rank.data.contracts import ddl
from spark_rank.data.tables import BLOCKS, MODELS, RANKINGS
from spark_rank.engine.preferring import RankJob, rank_batches
from spark_rank.engine.stage import Stage, StageResult
from spark_rank.engine.store import Run
from spark_rank.errors import ConfigError
from spark_rank.stages.features import distribute_files
from spark_rank.stages.training import recorded_training


def rank(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Bring every user's items, ratings and scores together, and order them."""
    settings, asked = config.rank, asked_learners(config, recorded_training(run))
    files = distribute_files(spark, run)
    job = RankJob(settings.preference, settings.method, settings.top, files)
    candidates = _candidates(run, asked, config.seed)
    ranked = candidates.mapInArrow(partial(rank_batches, job=job), ddl(RANKINGS.columns))
    rows = run.write(RANKINGS, ranked)
    facts = _facts(spark.read.parquet(run.path(RANKINGS.table)))
    return StageResult(
        f"{rows:,} users, {facts['calls']:,} questions for {facts['items']:,} items",
        {RANKINGS.table: rows},
        {"learners": asked, **facts},
        rows,
    )


def asked_learners(config: Config, training: TrainConfig) -> list[str]:
    """Return the labels of the learners whose scores or votes decide."""
    labels = [entry.label for entry in training.learners]
    unknown = [name for name in config.rank.learners if name not in labels]
    if unknown:
        raise ConfigError(
            f"rank.learners: the run has no models of {unknown[0]!r}, only of {', '.join(labels)}"
        )
    named = config.rank.learners or (labels if config.rank.preference == "votes" else labels[:1])
    return sorted(named)


def _candidates(run: Run, asked: list[str], seed: int) -> DataFrame:
    """Return users for whom every asked learner has scores, with their held-out items."""
    scored = (
        run.read(MODELS)
        .where(F.col("learner").isin(asked) & F.col("test_scores").isNotNull())
        .groupBy("user_id")
        .agg(
            F.array_sort(F.collect_list(F.struct("learner", "test_scores"))).alias("entries"),
            F.first("test_ratings").alias("ratings"),
        )
        .where(F.size("entries") == len(asked))
    )
    items = run.read(BLOCKS).select(
        "user_id", F.expr("slice(items, n_train + 1, size(items))").alias("items")
    )
    return scored.join(items, "user_id").select(
        "user_id",
        "items",
        "ratings",
        F.flatten(F.col("entries.test_scores")).alias("scores"),
        F.xxhash64(F.lit(seed), F.lit("rank"), "user_id").alias("draw"),
    )


def _facts(rankings: DataFrame) -> dict[str, Any]:
    found = rankings.agg(F.sum("calls"), F.sum("n_items")).head() or (None, None)
    return {"calls": found[0] or 0, "items": found[1] or 0}


STAGE = Stage(
    name="rank",
    run=rank,
    settings=lambda config: config.rank,
    needs=lambda config: ("train", "prepare", "features"),
)
