"""ingest: raw files to canonical ratings, dictionaries and a quarantine of unusable rows."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import Config, InputConfig
from spark_rank.data.dictionaries import number_ids
from spark_rank.data.filesystem import FileInfo
from spark_rank.data.formats import read_ratings
from spark_rank.data.quality import DUPLICATE, mark_duplicates, with_reason
from spark_rank.data.tables import ITEMS, QUARANTINE, RATINGS, USERS
from spark_rank.engine.stage import Stage, StageResult
from spark_rank.engine.store import Run
from spark_rank.errors import ConfigError, InputDataError
from spark_rank.stages.synthesize import synthetic_path


def ingest(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Read, check, number and write; every input row ends in `ratings` or in `quarantine`."""
    settings = _effective_input(config)
    found = _input_files(config, run)
    _check_readable(found, settings, run)
    files = [info.path for info in found]
    scratch = run.path("scratch/parsed")
    checked = with_reason(read_ratings(spark, files, settings), settings)
    # parsed once: dictionaries, ratings and quarantine are three passes over the result
    checked.write.mode("overwrite").parquet(scratch)
    parsed = spark.read.parquet(scratch)
    rows = parsed.count()
    good = parsed.where(F.col("reason").isNull())
    users = run.write(USERS, number_ids(good, "user_id", "user"))
    items = run.write(ITEMS, number_ids(good, "item_id", "item"))
    numbered = mark_duplicates(_numbered(good, run))
    kept = run.write(RATINGS, _kept(numbered))
    quarantined = run.write(QUARANTINE, _quarantine(parsed, numbered, run))
    reasons = _reason_counts(spark, run)
    run.files.delete(run.path("scratch"))
    _check_counts(settings, run, rows, kept, quarantined, reasons)
    return StageResult(
        f"{rows:,} rows: {kept:,} ratings of {users:,} users and {items:,} items, "
        f"{quarantined:,} quarantined{_in_words(reasons)}",
        {"users": users, "items": items, "ratings": kept, "quarantine": quarantined},
        {"rows_in": rows, "quarantined_by_reason": reasons},
    )


def _effective_input(config: Config) -> InputConfig:
    if config.input.path is not None:
        return config.input
    return InputConfig(format=config.synthesize.format)


def _input_files(config: Config, run: Run) -> list[FileInfo]:
    if config.input.path is None:
        return run.files.glob(synthetic_path(config, run))
    found = run.files.glob(config.input.path)
    if not found:
        raise ConfigError(
            f"input.path: {config.input.path}: no such file, directory or glob: check the path "
            "(a relative one starts where the command runs)"
        )
    hidden = [info.path for info in found if info.path.rsplit("/", 1)[-1].startswith(("_", "."))]
    if hidden:
        raise ConfigError(
            f"input.path: {hidden[0]}: Spark passes over files whose names begin with '_' or '.': "
            "rename it"
        )
    return found


def _check_readable(files: list[FileInfo], settings: InputConfig, run: Run) -> None:
    """Refuse what a look at sizes and first bytes shows to be no input, before any job starts."""
    if sum(info.size for info in files) == 0:
        raise InputDataError(f"{settings.path}: is empty: there is no rating to learn from")
    for info in files if settings.format == "parquet" else []:
        if run.files.head(info.path, 4) != b"PAR1":
            raise InputDataError(
                f"{info.path}: is not a Parquet file: is input.format 'parquet' right?"
            )


def _input_fingerprint(config: Config, run: Run) -> list[list[object]]:
    if config.input.path is None:
        return []  # the fingerprint of `synthesize` stands for it
    return [[info.path, info.size, info.modified_ms] for info in _input_files(config, run)]


def _numbered(good: DataFrame, run: Run) -> DataFrame:
    users = run.spark.read.parquet(run.path(USERS.table)).select("user_id", "user")
    items = run.spark.read.parquet(run.path(ITEMS.table)).select("item_id", "item")
    return good.drop("reason", "source", "raw").join(users, "user_id").join(items, "item_id")


def _kept(numbered: DataFrame) -> DataFrame:
    return numbered.where(F.col("reason").isNull()).select(
        "user", "item", F.col("rating").cast("float").alias("rating"), "timestamp"
    )


def _quarantine(parsed: DataFrame, numbered: DataFrame, run: Run) -> DataFrame:
    unusable = parsed.where(F.col("reason").isNotNull()).select("source", "raw", "reason")
    parts = F.to_json(F.struct("user_id", "item_id", "rating", "timestamp"))
    duplicates = numbered.where(F.col("reason").isNotNull()).select(
        F.lit(None).cast("string").alias("source"), parts.alias("raw"), "reason"
    )
    return unusable.unionByName(duplicates)


def _reason_counts(spark: SparkSession, run: Run) -> dict[str, int]:
    counts = spark.read.parquet(run.path(QUARANTINE.table)).groupBy("reason").count().collect()
    return {row["reason"]: row["count"] for row in sorted(counts, key=lambda r: r["reason"])}


def _check_counts(
    settings: InputConfig,
    run: Run,
    rows: int,
    kept: int,
    quarantined: int,
    reasons: dict[str, int],
) -> None:
    where = run.path(QUARANTINE.table)
    if rows != kept + quarantined:
        raise InputDataError(
            f"{rows:,} rows went in but {kept:,} + {quarantined:,} came out: did the input "
            "change while it was read?"
        )
    if rows == 0:
        raise InputDataError("the input holds no rows: there is no rating to learn from")
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
    inputs=_input_fingerprint,
)
