"""prepare: ratings to user blocks with the split inside, and what the data look like."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from pyspark.sql import SparkSession

from spark_rank.config import Config, PrepareConfig
from spark_rank.config.sections import check_prepare
from spark_rank.data.blocks import user_blocks
from spark_rank.data.filters import FilterStep, filter_ratings, settled
from spark_rank.data.profile import data_profile
from spark_rank.data.splits import goes_by_time
from spark_rank.errors import InputDataError
from spark_rank.frames.item_counts import block_sizes, item_counts
from spark_rank.records.data import DataProfile, IngestFacts, PrepareFacts
from spark_rank.session.session import runtime_setting
from spark_rank.stages.stage import Stage, StageResult
from spark_rank.store.run import Run
from spark_rank.tables.contracts import BLOCKS, ITEM_COUNTS, ITEMS, RATINGS, USERS
from spark_rank.wording import count_of

# workers get ratings by the ten thousands, packed users by their bytes; and there are enough
# tasks to keep all cores to the end
_READING = {
    "spark.sql.files.maxPartitionBytes": "33554432",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.execution.arrow.maxBytesPerBatch": "16777216",
}


def prepare(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Filter, gather each user's ratings into one row, mark the training part, and profile."""
    settings = config.prepare
    users, items = run.read(USERS), run.read(ITEMS)
    everything = run.read(RATINGS).select("user", "item", "rating", "timestamp")
    ratings, activity, steps = filter_ratings(everything, users, settings, config.seed, run.keep)
    profile = data_profile(ratings, activity, run.facts(IngestFacts).rating_scale)
    _check_times(settings, profile)
    with ExitStack() as stack:
        for name, value in _READING.items():
            stack.enter_context(runtime_setting(spark, name, value))
        blocks = user_blocks(ratings, users, items, settings, config.seed)
        written = run.write(BLOCKS, blocks, ("bucket",))
    made = run.written(BLOCKS)
    counts = item_counts(made, items)
    counted = run.write(ITEM_COUNTS, counts)
    sizes = block_sizes(made)
    return StageResult(
        f"{count_of(written, 'user')}: {count_of(sizes.train_ratings, 'rating')} to learn from, "
        f"{sizes.test_ratings:,} held out{_in_words(settings, steps)}",
        {BLOCKS.table: written, ITEM_COUNTS.table: counted},
        PrepareFacts(
            train_ratings=sizes.train_ratings,
            test_ratings=sizes.test_ratings,
            most_ratings_of_a_user=sizes.most_ratings_of_a_user,
            users_with_nothing_held_out=sizes.users_with_nothing_held_out,
            filters=tuple(step.facts() for step in steps),
            filters_settled=settled(steps),
            profile=profile,
        ),
        written,
    )


def _check_times(settings: PrepareConfig, profile: DataProfile) -> None:
    missing = profile.without_time
    if goes_by_time(settings) and missing:
        raise InputDataError(
            f"prepare.split {settings.split!r} goes by time, but there are ratings without "
            f"one, {missing:,} of {profile.ratings:,}: give the column of the time "
            "(input.columns.timestamp), or split by 'random' or 'k_fold'"
        )


def _in_words(settings: PrepareConfig, steps: Sequence[FilterStep]) -> str:
    if not steps:
        return ""
    before, after = steps[0].before, steps[-1].after
    rounds = max(step.round for step in steps)
    passed = f" in {rounds} rounds" if rounds > 1 else ""
    unsettled = "" if settled(steps) or settings.filter_rounds == 1 else ", not settled"
    return (
        f"; filters kept {after.ratings:,} of {count_of(before.ratings, 'rating')}, "
        f"{after.users:,} of {count_of(before.users, 'user')}, "
        f"{after.items:,} of {count_of(before.items, 'item')}{passed}{unsettled}"
    )


STAGE = Stage(
    name="prepare",
    run=prepare,
    settings=lambda config: config.prepare,
    needs=lambda config: ("ingest",),
    validate=check_prepare,
)
