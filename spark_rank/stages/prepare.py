"""prepare: ratings to user blocks with the split inside, and a profile of the data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import Config, PrepareConfig
from spark_rank.config.schema import PARTS
from spark_rank.config.sections import check_prepare
from spark_rank.data.blocks import user_blocks
from spark_rank.data.filters import BROADCAST_ROWS, FilterStep, filter_ratings, settled, short
from spark_rank.data.profile import (
    RatingTimes,
    count_bins,
    histogram,
    log_binned,
    rating_times,
)
from spark_rank.data.splits import GIVEN, goes_by_time, may_leave_users_without_training
from spark_rank.errors import InputDataError
from spark_rank.frames.block_counts import BlockCounts, block_counts, counted, item_counts
from spark_rank.records.data import DataProfile, IngestFacts, PrepareFacts, RatingScale
from spark_rank.session.session import runtime_setting
from spark_rank.stages.stage import Stage, StageResult
from spark_rank.store.run import Run
from spark_rank.tables.contracts import BLOCKS, ITEM_COUNTS, ITEMS, RATINGS, USERS
from spark_rank.wording import count_of

# workers get tens of thousands of ratings at a time, packed users by their bytes
_BATCHES = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.execution.arrow.maxBytesPerBatch": "16777216",
}
# small enough to keep all cores busy to the end
_SMALL_TASKS = {"spark.sql.files.maxPartitionBytes": "33554432"}
# one task per file: both limits are larger than any file
_TASK_PER_FILE = {
    "spark.sql.files.maxPartitionBytes": str(2**40),
    "spark.sql.files.openCostInBytes": str(2**40),
}


def prepare(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Filter the ratings, write one block per user with the split inside, and profile them."""
    settings = config.prepare
    everything = _ratings(settings, run)
    ratings, steps = filter_ratings(everything, run.read(USERS), settings, config.seed, run.keep)
    times = rating_times(ratings)
    _check_times(settings, times)
    written = _write_blocks(ratings, config, run)
    of_items, facts = count_written_blocks(run, times, steps)
    return StageResult(
        f"{count_of(written, 'user')}: {count_of(facts.train_ratings, 'rating')} to learn from, "
        f"{facts.test_ratings:,} held out{_in_words(settings, steps)}{_expected(settings, facts)}",
        {BLOCKS.table: written, ITEM_COUNTS.table: of_items},
        facts,
        written,
    )


def _ratings(settings: PrepareConfig, run: Run) -> DataFrame:
    """Return the ratings; of a given split those of the parts in use, with ``held_out``."""
    ratings = run.read(RATINGS).select("user", "item", "rating", "timestamp", "part")
    if settings.split != GIVEN:
        return ratings.drop("part")
    counts = run.facts(IngestFacts).parts
    for name in (settings.held_out_part, *settings.train_parts):
        if not counts.get(name):
            raise InputDataError(
                f"prepare.split 'given': the input has no rating of the part {name!r}, only of "
                f"{', '.join(counts) or 'no part'}: name its parts with input.test_path or "
                "input.columns.part, or others with prepare.train_parts and held_out_part"
            )
    held_out = PARTS.index(settings.held_out_part)
    used = [held_out, *map(PARTS.index, settings.train_parts)]
    is_held_out = (F.col("part") == held_out).cast("tinyint").alias("held_out")
    return ratings.where(F.col("part").isin(used)).select(
        "user", "item", "rating", "timestamp", is_held_out
    )


def count_written_blocks(
    run: Run, times: RatingTimes, steps: Sequence[FilterStep] = ()
) -> tuple[int, PrepareFacts]:
    """Write `item_counts` of the written blocks; return its number of rows and the facts."""
    scale = run.facts(IngestFacts).rating_scale
    counted_blocks = run.keep(counted(run.written(BLOCKS), scale), "counted")
    of_items = run.write(ITEM_COUNTS, item_counts(counted_blocks, run.read(ITEMS)))
    counts = block_counts(counted_blocks)
    profile = _profile(times, counts, scale, run)
    return of_items, PrepareFacts(
        train_ratings=counts.train,
        test_ratings=profile.ratings - counts.train,
        most_ratings_of_a_user=counts.most,
        users_with_nothing_held_out=counts.whole,
        users_without_training=counts.untrained,
        items_without_training=run.written(ITEM_COUNTS).where("n_train = 0").count(),
        filters=tuple(step.facts() for step in steps),
        filters_settled=settled(steps),
        profile=profile,
    )


def _write_blocks(ratings: DataFrame, config: Config, run: Run) -> int:
    """Write the blocks, without a shuffle of the ratings if `ingest` has left them by bucket."""
    if _ratings_are_by_bucket(config.prepare, run):
        written = _written_blocks(ratings, config, run, by_bucket=True)
        if _blocks_are_by_bucket(run):
            return written
    return _written_blocks(ratings, config, run, by_bucket=False)


def _ratings_are_by_bucket(settings: PrepareConfig, run: Run) -> bool:
    """Tell whether files of `ratings` have whole buckets, and all joins are broadcasts."""
    filtered = bool(settings.filters) or settings.user_share < 1.0
    joined = max(run.rows(USERS), run.rows(ITEMS) if filtered else 0)
    same = run.facts(IngestFacts).buckets == settings.buckets
    return same and joined <= BROADCAST_ROWS


def _written_blocks(ratings: DataFrame, config: Config, run: Run, *, by_bucket: bool) -> int:
    users = short(run.read(USERS), run.rows(USERS))
    with ExitStack() as stack:
        for name, value in {**_BATCHES, **(_TASK_PER_FILE if by_bucket else _SMALL_TASKS)}.items():
            stack.enter_context(runtime_setting(run.spark, name, value))
        blocks = user_blocks(
            ratings, users, run.read(ITEMS), config.prepare, config.seed, by_bucket=by_bucket
        )
        return run.write(BLOCKS, blocks, ("bucket",))


def _blocks_are_by_bucket(run: Run) -> bool:
    """Tell whether every bucket came from one task, so that no user has two blocks."""
    files = run.files.below(run.draft_path(BLOCKS.table))
    folders = [file.path.rpartition("/")[0] for file in files if file.path.endswith(".parquet")]
    return len(folders) == len(set(folders))


def _profile(times: RatingTimes, counts: BlockCounts, scale: RatingScale, run: Run) -> DataProfile:
    """Return the profile of the data: distributions of ratings, users and items, and times.

    Density is the share of (user, item) pairs that are rated; None without pairs.
    """
    of_items = run.written(ITEM_COUNTS).select("n").toArrow().column("n").to_numpy()
    ratings, users = sum(counts.ratings.values()), sum(counts.users.values())
    pairs = users * len(of_items)
    return DataProfile(
        **times._asdict(),
        users=users,
        items=len(of_items),
        density=ratings / pairs if pairs else None,
        histogram=histogram(counts.ratings, scale),
        user_activity=log_binned(counts.users),
        item_popularity=log_binned(Counter(count_bins(of_items).tolist())),
    )


def _check_times(settings: PrepareConfig, times: RatingTimes) -> None:
    missing = times.without_time
    if goes_by_time(settings) and missing:
        raise InputDataError(
            f"prepare.split {settings.split!r} needs the time of every rating, and {missing:,} of "
            f"{times.ratings:,} have none: give the column of the time "
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


def _expected(settings: PrepareConfig, facts: PrepareFacts) -> str:
    """Return, in words, how many users and items only the held-out part has."""
    unknown = facts.users_without_training, facts.items_without_training
    if not may_leave_users_without_training(settings) or not any(unknown):
        return ""
    users, items = count_of(unknown[0], "user"), count_of(unknown[1], "item")
    return f"; {users} and {items} without training ratings are scored by what is expected"


STAGE = Stage(
    name="prepare",
    run=prepare,
    settings=lambda config: config.prepare,
    needs=lambda config: ("ingest",),
    validate=check_prepare,
)
