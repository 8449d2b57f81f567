"""synthesize: write a generated, Netflix-shaped data set."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import Config
from spark_rank.data.synthetic import Population, generate_batches
from spark_rank.errors import ConfigError
from spark_rank.records.data import SynthesizeFacts
from spark_rank.session.workers import by_workers
from spark_rank.stages.stage import Stage, StageResult
from spark_rank.store.run import Run
from spark_rank.tables.contracts import SYNTHETIC
from spark_rank.wording import count_of

_SCHEMA = "user string, item string, rating double, timestamp bigint"
# enough users to outweigh the start of a task
_USERS_PER_TASK = 500

_SEPARATORS = {"movielens-100k": "\t", "movielens-dat": "::"}
_HEADERS = {
    "csv": ("user", "item", "rating", "timestamp"),
    "movielens-csv": ("userId", "movieId", "rating", "timestamp"),
}


def synthesize(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Generate the ratings in parallel; those of a user depend on (seed, user) alone."""
    ratings = generated_ratings(config, spark)
    settings = config.synthesize
    if settings.path is None and settings.format == "parquet":
        rows = run.write(SYNTHETIC, ratings)
        words = f"{count_of(rows, 'rating')} of {count_of(settings.users, 'user')}"
        return StageResult(words, {"synthetic": rows})
    path = synthetic_path(config, run)
    if settings.path is not None and run.files.exists(path) and not _unfinished(run, path):
        raise ConfigError(
            f"synthesize.path: {path} exists already: remove it or name another directory"
        )
    inside = settings.path is None
    _write(ratings, settings.format, run.draft_path(SYNTHETIC.table) if inside else path)
    return StageResult(
        f"{count_of(settings.users, 'user')} in {path}", facts=SynthesizeFacts(path=path)
    )


def synthetic_path(config: Config, run: Run) -> str:
    """Return where the generated data set is or will be."""
    if config.synthesize.path is not None:
        return run.files.qualified(config.synthesize.path)
    return run.path(SYNTHETIC.table)


def generated_ratings(config: Config, spark: SparkSession) -> DataFrame:
    """Return the generated ratings as a distributed table."""
    settings = config.synthesize
    population = Population(
        config.seed,
        settings.items,
        settings.median_ratings,
        settings.activity_spread,
        settings.levels,
    )
    tasks = max(1, -(-settings.users // _USERS_PER_TASK))
    users = spark.range(0, settings.users, 1, min(tasks, 10_000))
    return by_workers(users, partial(generate_batches, population=population), _SCHEMA)


def _unfinished(run: Run, path: str) -> bool:
    """Tell whether Spark began to write at this path and was interrupted."""
    begun = run.files.exists(f"{path}/_temporary")
    return begun and not run.files.exists(f"{path}/_SUCCESS")


def _write(ratings: DataFrame, format_name: str, path: str) -> None:
    if format_name == "parquet":
        SYNTHETIC.apply(ratings).write.mode("overwrite").parquet(path)
    elif format_name in _HEADERS:
        names = dict(zip(ratings.columns, _HEADERS[format_name], strict=True))
        table = ratings.withColumn("rating", _short_number()).withColumnsRenamed(names)
        table.write.mode("overwrite").csv(path, header=True)
    else:
        native = netflix_text if format_name == "netflix" else _delimited_text(format_name)
        native(ratings).write.mode("overwrite").text(path)


def _delimited_text(format_name: str) -> Callable[[DataFrame], DataFrame]:
    columns = [F.col("user"), F.col("item"), _short_number(), F.col("timestamp").cast("string")]
    separator = _SEPARATORS[format_name]
    return lambda ratings: ratings.select(F.concat_ws(separator, *columns).alias("value"))


def netflix_text(ratings: DataFrame) -> DataFrame:
    """Return combined files: a row is a movie's heading with its ratings, in the order of users."""
    day = F.date_format(F.timestamp_seconds("timestamp"), "yyyy-MM-dd")
    line = F.concat_ws(",", "user", _short_number(), day)
    movies = ratings.groupBy("item").agg(F.array_sort(F.collect_list(line)).alias("lines"))
    return movies.select(
        F.concat(F.col("item"), F.lit(":\n"), F.array_join("lines", "\n")).alias("value")
    )


def _short_number() -> F.Column:
    # native files have 4, not 4.0
    return F.regexp_replace(F.col("rating").cast("string"), r"\.0$", "")


STAGE = Stage(
    name="synthesize",
    run=synthesize,
    settings=lambda config: config.synthesize,
)
