"""prepare: ratings to user blocks with the split inside."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_rank.config import Config
from spark_rank.data.blocks import user_blocks
from spark_rank.data.tables import BLOCKS, ITEMS, RATINGS, USERS
from spark_rank.engine.stage import Stage, StageResult
from spark_rank.engine.store import Run


def prepare(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Gather each user's ratings into one row, in hash order, and mark the training part."""
    blocks = user_blocks(
        run.read(RATINGS).select("user", "item", "rating", "timestamp"),
        run.read(USERS),
        run.read(ITEMS),
        seed=config.seed,
        train_share=config.prepare.train_share,
        buckets=config.prepare.buckets,
    )
    users = run.write(BLOCKS, blocks, partition_by=("bucket",))
    written = spark.read.parquet(run.path(BLOCKS.table))
    train, total, most = written.agg(
        F.sum("n_train"), F.sum(F.size("items")), F.max(F.size("items"))
    ).head() or (0, 0, 0)
    return StageResult(
        f"{users:,} users: {train:,} ratings to learn from, {total - train:,} held out",
        {"blocks": users},
        {"train_ratings": train, "test_ratings": total - train, "most_ratings_of_a_user": most},
    )


STAGE = Stage(
    name="prepare",
    run=prepare,
    settings=lambda config: config.prepare,
    needs=lambda config: ("ingest",),
)
