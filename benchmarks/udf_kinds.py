"""Training in `mapInArrow` against a scalar-iterator pandas UDF over the same user blocks.

Both call the same `learn_user` (linear MPRank) and return the same columns; what differs is how
arrays travel between Spark and Python. Run: ``python benchmarks/udf_kinds.py [users]``.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import Config, SynthesizeConfig
from spark_rank.config.schema import PrepareConfig
from spark_rank.data.blocks import user_blocks
from spark_rank.data.dictionaries import number_ids
from spark_rank.features.files import FeatureFiles, ItemFeatures, MappedFile
from spark_rank.session.session import spark_session
from spark_rank.stages.synthesize import generated_ratings
from spark_rank.users.batches import build_batch
from spark_rank.users.fitting import Limits
from spark_rank.users.learning import LearnJob, learn_user
from spark_rank.users.problems import problems
from spark_rank.users.specs import LearnerSpec

ITEMS, FEATURES, REPEATS = 1500, 300, 3
COLUMNS = "user_id string, intercept double, weights array<float>"
SCHEMA = pa.schema(
    [
        ("user_id", pa.string()),
        ("intercept", pa.float64()),
        ("weights", pa.list_(pa.float32())),
    ]
)
SPEC = LearnerSpec("mprank", "mprank", item_offset=True, params={"C": 0.1})
NO_FILES = FeatureFiles(*(MappedFile(name, "") for name in ("matrix", "offset", "prior", "ids")))
JOB = LearnJob(NO_FILES, (SPEC,), {}, 3, 1.0, Limits(None, 4000, 500, 5))


def item_features() -> ItemFeatures:
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(ITEMS, FEATURES)).astype(np.float32)
    return ItemFeatures(
        matrix,
        rng.normal(size=ITEMS),
        np.empty((0, FEATURES), np.float32),
        pa.array(map(str, range(ITEMS))),
    )


def in_arrow(batches: Iterator[pa.RecordBatch], features: ItemFeatures) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        made = problems(batch, features, {})
        rows = [learn_user(problem, SPEC, JOB, features.item_ids) for problem in made]
        yield build_batch(rows, SCHEMA)


def pandas_learner(features: ItemFeatures) -> Callable[..., F.Column]:
    @F.pandas_udf(COLUMNS)
    def learn(parts: Iterator[tuple[pd.Series, ...]]) -> Iterator[pd.DataFrame]:
        names = ("user", "user_id", "items", "ratings", "n_train")
        for series in parts:
            frame = pd.DataFrame(dict(zip(names, series, strict=True)))
            batch = pa.RecordBatch.from_pandas(frame, preserve_index=False)
            made = problems(batch, features, {})
            rows = [learn_user(problem, SPEC, JOB, features.item_ids) for problem in made]
            yield pd.DataFrame({name: [row.get(name) for row in rows] for name in SCHEMA.names})

    return learn


def blocks(spark: SparkSession, users: int, folder: str) -> DataFrame:
    config = Config(synthesize=SynthesizeConfig(users=users, items=ITEMS))
    ratings = generated_ratings(config, spark).withColumnsRenamed({"user": "u", "item": "i"})
    users, items = number_ids(ratings, "u", "user"), number_ids(ratings, "i", "item")
    numbered = ratings.join(users, "u").join(items, "i")
    numbered = numbered.withColumn("rating", F.col("rating").cast("float"))
    made = user_blocks(
        numbered.select("user", "item", "rating", "timestamp"),
        users.withColumnRenamed("u", "user_id"),
        items.withColumnRenamed("i", "item_id"),
        PrepareConfig(),
        0,
    )
    made.write.parquet(f"{folder}/blocks")
    return spark.read.parquet(f"{folder}/blocks")


def seconds(frame: DataFrame) -> float:
    started = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - started


def main(users: int) -> None:
    settings = {"spark.master": "local[2]"}
    with tempfile.TemporaryDirectory() as folder, spark_session("udf_kinds", settings) as spark:
        names = ("user", "user_id", "items", "ratings", "n_train")
        source = blocks(spark, users, str(Path(folder))).select(*names)
        features = item_features()
        arrow = source.mapInArrow(partial(in_arrow, features=features), COLUMNS)
        pandas = source.select(pandas_learner(features)(*names).alias("m")).select("m.*")
        times = {"mapInArrow": [seconds(arrow)], "pandas UDF": [seconds(pandas)]}  # warm up
        for _ in range(REPEATS):
            times["mapInArrow"].append(seconds(arrow))
            times["pandas UDF"].append(seconds(pandas))
    best = {kind: min(measured[1:]) for kind, measured in times.items()}
    print(f"{users:,} users, {FEATURES} features, best of {REPEATS}:")
    for kind, value in best.items():
        print(f"  {kind:<12}{value:7.2f} s  {value / best['mapInArrow']:.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
