"""ingest: raw files to canonical ratings, dictionaries and a quarantine of unusable rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import Config, InputConfig
from spark_rank.data.contracts import Contract
from spark_rank.data.dictionaries import number_ids
from spark_rank.data.formats import FORMATS, Reading, read_ratings
from spark_rank.data.formats.lines import with_line
from spark_rank.data.quality import DUPLICATE, IMPLICIT, mark_duplicates, with_reason
from spark_rank.data.rating_scale import find_scale, scale_table
from spark_rank.data.tables import ITEMS, QUARANTINE, RATING_SCALE, RATINGS, USERS
from spark_rank.engine.session import runtime_setting
from spark_rank.engine.stage import Stage, StageResult
from spark_rank.engine.store import Run
from spark_rank.errors import InputDataError
from spark_rank.stages.ingest_extras import write_given_features, write_titles
from spark_rank.stages.ingest_inputs import (
    check_readable,
    input_files,
    input_fingerprint,
    known_numbers,
)

# a dictionary of so many ids is sent to every task; longer ones are joined by sorting
_BROADCAST_IDS = 2_000_000
_PLACE = ("source", "block", "row", "raw")


def ingest(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Read, check, number and write.

    Every input row ends in `ratings` or in `quarantine`, or is counted as implicit.
    """
    settings = _effective_input(config)
    found = input_files(config, run)
    check_readable(found, settings, run)
    with _scan_settings(spark):
        reading = read_ratings(spark, [info.path for info in found], settings)
        parsed = _parse_once(reading, settings, run)
        counts = _counts_by_reason(parsed)
        good = parsed.where(F.col("reason").isNull())
        tables, numbered = _write_ratings(good, config, settings, run)
        duplicates = counts.pop(None, 0) - tables[RATINGS.table]
        dropped = {IMPLICIT: counts.pop(IMPLICIT)} if IMPLICIT in counts else {}
        reasons = {**counts, **({DUPLICATE: duplicates} if duplicates else {})}
        reasons = dict(sorted(reasons.items()))
        unusable = _quarantine(parsed, numbered, reading, reasons, run)
        tables[QUARANTINE.table] = run.write(QUARANTINE, unusable)
    # means of duplicates lie between the levels: the scale is that of the ratings as given
    given = good if settings.duplicates == "mean" else _written(run, RATINGS)
    ratings = given.select(F.col("rating").cast("float"))
    levels, scale = find_scale(ratings, settings.cuts)
    tables[RATING_SCALE.table] = run.write(RATING_SCALE, scale_table(spark, levels))
    if FORMATS[settings.format].has_features:
        tables |= write_given_features(good, run)
    tables |= write_titles(settings, run)
    run.files.delete(run.path("scratch"))
    _check_counts(settings, run, tables, reasons)
    kept, quarantined = tables[RATINGS.table], tables[QUARANTINE.table]
    rows = kept + quarantined + sum(dropped.values())
    return StageResult(
        f"{rows:,} rows: {kept:,} ratings of {tables[USERS.table]:,} users and "
        f"{tables[ITEMS.table]:,} items, {quarantined:,} quarantined{_in_words(reasons)}"
        + (f", {dropped[IMPLICIT]:,} implicit dropped" if dropped else ""),
        tables,
        {
            "rows_in": rows,
            "quarantined_by_reason": reasons,
            "dropped_by_reason": dropped,
            "rating_scale": scale,
        },
    )


def _effective_input(config: Config) -> InputConfig:
    if config.input.path is not None:
        return config.input
    made = config.synthesize
    return replace(
        InputConfig(format=made.format, levels=[float(i + 1) for i in range(made.levels)]),
        duplicates=config.input.duplicates,
        cuts=config.input.cuts,
        dictionaries_from=config.input.dictionaries_from,
    )


@contextmanager
def _scan_settings(spark: SparkSession) -> Iterator[None]:
    """Fix how files are cut and packed: two passes over one text must agree on its splits.

    Unset, Spark would follow the number of cores of the moment. And small files are cheap enough
    to open many per task, and listed by few tasks.
    """
    cores = str(spark.sparkContext.defaultParallelism)
    wanted = {
        "spark.sql.files.minPartitionNum": cores,
        "spark.sql.files.openCostInBytes": "524288",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "32",
    }
    with ExitStack() as stack:
        for name, value in wanted.items():
            if name != "spark.sql.files.minPartitionNum" or spark.conf.get(name, None) is None:
                stack.enter_context(runtime_setting(spark, name, value))
        yield


def _parse_once(reading: Reading, settings: InputConfig, run: Run) -> DataFrame:
    """Parse into a scratch table: dictionaries, ratings and quarantine are passes over it."""
    checked = with_reason(reading.rows, settings)
    features = ["features"] if FORMATS[settings.format].has_features else []
    scratch = run.path("scratch/parsed")
    # only what is quarantined tells its place and shows its text
    unusable = F.col("reason").isNotNull() & (F.col("reason") != IMPLICIT)
    places = [F.when(unusable, F.col(name)).alias(name) for name in _PLACE]
    checked.select(
        *places,
        "user_id",
        "item_id",
        "rating",
        "timestamp",
        "reason",
        *features,
    ).write.mode("overwrite").option("compression", "snappy").parquet(scratch)
    return run.spark.read.parquet(scratch)


def _counts_by_reason(parsed: DataFrame) -> dict[Any, int]:
    counts = {row["reason"]: row["count"] for row in parsed.groupBy("reason").count().collect()}
    if not counts:
        raise InputDataError("the input holds no rows: there is no rating to learn from")
    return counts


def _write_ratings(
    good: DataFrame, config: Config, settings: InputConfig, run: Run
) -> tuple[dict[str, int], DataFrame]:
    """Write dictionaries and ratings; return their rows, and the numbered, marked ratings."""
    tables = {}
    numbered = good.select("user_id", "item_id", "rating", "timestamp")
    for contract, id_column, number in ((USERS, "user_id", "user"), (ITEMS, "item_id", "item")):
        known = known_numbers(config, contract, run)
        rows = run.write(contract, number_ids(good, id_column, number, known))
        tables[contract.table] = rows
        dictionary = _written(run, contract).select(id_column, number)
        side = F.broadcast(dictionary) if rows <= _BROADCAST_IDS else dictionary
        numbered = numbered.join(side, id_column).drop(id_column)
    marked = mark_duplicates(numbered, settings.duplicates)
    kept = marked.where(F.col("reason").isNull()).select(
        "user", "item", F.col("kept_rating").cast("float").alias("rating"), "timestamp"
    )
    tables[RATINGS.table] = run.write(RATINGS, kept)
    return tables, marked


def _quarantine(
    parsed: DataFrame, marked: DataFrame, reading: Reading, reasons: dict[str, int], run: Run
) -> DataFrame:
    """Return the unusable rows; the text is read again, to count lines, only if there are any."""
    unusable = parsed.where(F.col("reason").isNotNull() & (F.col("reason") != IMPLICIT))
    if not reasons.keys() - {DUPLICATE}:
        unusable = unusable.withColumn("line", F.lit(None).cast("bigint"))
    elif reading.starts is None:
        unusable = unusable.withColumn("line", F.col("row") + 1)
    else:
        unusable = with_line(unusable, reading.starts)
    unusable = unusable.select("source", "line", "raw", "reason")
    if DUPLICATE not in reasons:
        return unusable
    named = (
        marked.where(F.col("reason").isNotNull())
        .join(_written(run, USERS).select("user_id", "user"), "user")
        .join(_written(run, ITEMS).select("item_id", "item"), "item")
    )
    duplicates = named.select(
        F.lit(None).cast("string").alias("source"),
        F.lit(None).cast("bigint").alias("line"),
        F.to_json(F.struct("user_id", "item_id", "rating", "timestamp")).alias("raw"),
        "reason",
    )
    return unusable.unionByName(duplicates)


def _written(run: Run, contract: Contract) -> DataFrame:
    """Return a table of this stage, which no record lists yet."""
    return run.spark.read.schema(contract.schema()).parquet(run.path(contract.table))


def _check_counts(
    settings: InputConfig, run: Run, tables: dict[str, int], reasons: dict[str, int]
) -> None:
    where = run.path(QUARANTINE.table)
    kept, quarantined = tables[RATINGS.table], tables[QUARANTINE.table]
    rows = kept + quarantined
    if quarantined != sum(reasons.values()):
        raise InputDataError(
            f"{sum(reasons.values()):,} rows are unusable but {quarantined:,} were set aside: did "
            "the input change while it was read?"
        )
    if kept == 0:
        raise InputDataError(
            f"none of the {rows:,} rows is a rating{_in_words(reasons)}: is input.format "
            f"{settings.format!r} right? The rows are in {where}"
        )
    # a rating given twice is not a broken feed
    unusable = quarantined - reasons.get(DUPLICATE, 0)
    if unusable > settings.max_bad_share * rows:
        raise InputDataError(
            f"{unusable:,} of {rows:,} rows are unusable{_in_words(reasons)}, more than "
            f"input.max_bad_share {settings.max_bad_share:g} allows: mend the input or raise the "
            f"share; the rows are in {where}"
        )


def _in_words(reasons: dict[str, int]) -> str:
    words = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items())
    return f" ({words})" if words else ""


STAGE = Stage(
    name="ingest",
    run=ingest,
    settings=_effective_input,
    needs=lambda config: () if config.input.path is not None else ("synthesize",),
    inputs=input_fingerprint,
)
