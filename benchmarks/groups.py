"""One small model per group: this engine against the two ways that people use now.

A group is a user with some twenty ratings; its model is a ridge regression with a free intercept
on given features of the items. All ways learn the same weights, which the script checks:

* ``applyInPandas``: ``ratings.groupBy("user").applyInPandas(fit)``, `fit` in plain NumPy;
* Fugue: ``transform(ratings, fit, partition={"by": "user"})`` on Spark, the same `fit`; left out,
  and said so, where Fugue is not installed;
* ``frames``: ids numbered, user blocks, and `spark_rank.frames.train`.

Run: ``python benchmarks/groups.py [groups]`` (480,000). Time and memory of each, one after the
other in one session, after a warm-up of each on a hundredth of the groups.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from machine import Watch
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import PrepareConfig
from spark_rank.data.blocks import user_blocks
from spark_rank.features.files import FeatureFiles, distribute_local, write_files
from spark_rank.frames.blocks import item_numbers, number_ratings, rating_rows, user_numbers
from spark_rank.frames.train import train
from spark_rank.session.session import spark_session
from spark_rank.users.fitting import Limits
from spark_rank.users.learning import LearnJob
from spark_rank.users.specs import LearnerSpec

ITEMS, FEATURES, RATINGS = 1_000, 20, 20
RIDGE = 1.0
SCHEMA = "user string, intercept double, weights array<double>"
# the ratings of so many users are in one bucket
USERS_A_BUCKET = 10_000
# the same weights, which `models` has in single precision
ALIKE = 1e-4

Fit = Callable[[pd.DataFrame], pd.DataFrame]
Way = Callable[[DataFrame], DataFrame]


def item_vectors() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(ITEMS, FEATURES)).astype(np.float32)


def ratings_of(spark: SparkSession, groups: int, path: str) -> DataFrame:
    """Write ratings of every user, of items and levels that a hash decides; return them."""
    draws = spark.range(groups * RATINGS).select(
        F.concat(F.lit("u"), (F.col("id") / RATINGS).cast("long")).alias("user"),
        F.concat(F.lit("i"), F.pmod(F.xxhash64("id"), F.lit(ITEMS))).alias("item"),
        (F.pmod(F.xxhash64("id", F.lit(1)), F.lit(5)) + 1).cast("double").alias("rating"),
    )
    draws.dropDuplicates(["user", "item"]).write.parquet(path)
    return spark.read.parquet(path)


def numpy_fit(vectors: np.ndarray) -> Fit:
    """Return what people write for one group: features looked up, centred, solved."""

    def fit(rows: pd.DataFrame) -> pd.DataFrame:
        places = rows["item"].str[1:].astype(int).to_numpy()
        X, y = vectors[places].astype(float), rows["rating"].to_numpy()
        means, mean = X.mean(axis=0), y.mean()
        centred = X - means
        w = np.zeros(X.shape[1])
        if y.min() < y.max():
            system = centred.T @ centred + RIDGE * np.eye(X.shape[1])
            w = np.linalg.solve(system, centred.T @ (y - mean))
        found = {"user": rows["user"].iloc[0], "intercept": mean - means @ w, "weights": list(w)}
        return pd.DataFrame([found])

    return fit


def by_pandas(fit: Fit) -> Way:
    return lambda ratings: ratings.groupBy("user").applyInPandas(fit, SCHEMA)


def by_fugue(fit: Fit) -> Way:
    from fugue import transform

    schema = "user:str,intercept:double,weights:[double]"

    def way(ratings: DataFrame) -> DataFrame:
        return transform(
            ratings, fit, schema=schema, partition={"by": "user"}, engine=ratings.sparkSession
        )

    return way


def by_frames(files: FeatureFiles, buckets: int) -> Way:
    params = {"C": 1.0 / RIDGE, "ridge": "fixed"}
    spec = LearnerSpec("mprank", "mprank", item_offset=False, params=params)
    job = LearnJob(files, (spec,), {}, 1, 1.0, Limits(None, 4000, 500, 5))

    def way(ratings: DataFrame) -> DataFrame:
        rows = rating_rows(ratings, "user", "item", "rating")
        count = ratings.count()
        users, items = user_numbers(rows, count), item_numbers(rows, count)
        numbered = number_ratings(rows, users, as_given(items), count, "latest")
        settings = PrepareConfig(train_share=1.0, buckets=buckets)
        blocks = user_blocks(numbered, users, as_given(items), settings, 0)
        return train(blocks, job).select(F.col("user_id").alias("user"), "intercept", "weights")

    return way


def as_given(items: DataFrame) -> DataFrame:
    """Return the items under the numbers of their vectors."""
    return items.select("item_id", F.expr("int(substring(item_id, 2))").alias("item"))


def feature_files(spark: SparkSession, vectors: np.ndarray, folder: Path) -> FeatureFiles:
    folder.mkdir()
    nothing = np.empty((0, FEATURES), np.float32)
    ids = [f"i{number}" for number in range(ITEMS)]
    files = write_files(folder, vectors, np.zeros(ITEMS), nothing, ids)
    distribute_local(spark, folder, files.all())
    return files


def measure(spark: SparkSession, groups: int, folder: Path) -> None:
    vectors = item_vectors()
    fit, buckets = numpy_fit(vectors), max(2, groups // USERS_A_BUCKET)
    ways = {
        "applyInPandas": by_pandas(fit),
        "frames": by_frames(feature_files(spark, vectors, folder / "features"), buckets),
    }
    if importlib.util.find_spec("fugue") is None:
        print("Fugue is not installed: left out")
    else:
        ways["Fugue"] = by_fugue(fit)
    few = ratings_of(spark, max(groups // 100, 100), f"{folder}/few")
    ratings = ratings_of(spark, groups, f"{folder}/ratings")
    print(f"{groups:,} groups, {ratings.count():,} ratings, {FEATURES} features")
    print("| | s | CPU s | JVM GB | worker GB | of applyInPandas |\n|---|---|---|---|---|---|")
    first = 0.0
    for name, way in ways.items():
        way(few).write.parquet(f"{folder}/few-{name}")
        with Watch() as watch:
            way(ratings).write.parquet(f"{folder}/{name}")
        first = first or watch.seconds
        print(
            f"| {name} | {watch.seconds:.1f} | {watch.cpu_seconds:.0f} | "
            f"{watch.jvm_gigabytes:.1f} | {watch.worker_gigabytes:.2f} | "
            f"{watch.seconds / first:.2f} |",
            flush=True,
        )
    check_alike(spark, [f"{folder}/{name}" for name in ways], groups)


def check_alike(spark: SparkSession, paths: list[str], groups: int) -> None:
    """Raise unless all ways have learned a model of every group, the same."""
    first, *others = [spark.read.parquet(path) for path in paths]
    for other in others:
        pairs = first.join(other.select("user", F.col("weights").alias("w"), F.col(
            "intercept").alias("b")), "user")  # fmt: skip
        apart = F.array_max(F.transform(F.arrays_zip("weights", "w"), _difference))
        apart = F.greatest(F.coalesce(apart, F.lit(0.0)), F.abs(F.col("intercept") - F.col("b")))
        found, most = pairs.agg(F.count("*"), F.max(apart)).head()
        if found != groups or most > ALIKE:
            raise AssertionError(f"{found:,} models of {groups:,}, up to {most:g} apart")
        print(f"the same {found:,} models: at most {most:.1e} apart")


def _difference(pair: F.Column) -> F.Column:
    return F.abs(pair["weights"] - pair["w"].cast("double"))


def main(groups: int) -> None:
    settings = {"spark.master": f"local[{os.cpu_count()}]", "spark.driver.memory": "4g"}
    with tempfile.TemporaryDirectory() as folder, spark_session("groups", settings) as spark:
        measure(spark, groups, Path(folder))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 480_000)
