"""`PerUserRanker` against MLlib's ALS in one session: time, and error on held-out ratings.

``python benchmarks/api.py [ratings] [cores]`` generates about so many ratings (10 million unless
said otherwise), holds a fifth of them out by hash, and fits both: ALS with rank 20 and 10
iterations. Beside the times of `fit`, it measures `transform` of a million pairs and
`recommendForAllUsers(10)`. The error is the mean squared difference of pairs, user by user
(`PerUserEvaluator`, msd); ALS leaves out the rows of users and items that it does not know.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from pyspark.ml.recommendation import ALS
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import Config, SynthesizeConfig
from spark_rank.ml import PerUserEvaluator, PerUserRanker
from spark_rank.session.session import spark_session
from spark_rank.stages.synthesize import generated_ratings

PAIRS = 1_000_000
ITEMS = 17_770
MEAN_RATINGS = 95.0  # of a generated user, about


def ratings_of(spark: SparkSession, count: int, folder: str) -> DataFrame:
    """Write generated ratings with whole numbers as ids, which ALS needs; return them."""
    users = max(round(count / MEAN_RATINGS), 100)
    items = min(ITEMS, max(count // 200, 200))
    made = generated_ratings(Config(synthesize=SynthesizeConfig(users=users, items=items)), spark)
    numbered = made.selectExpr("int(user) as user", "int(item) as item", "float(rating) as rating")
    numbered.write.parquet(folder)
    return spark.read.parquet(folder)


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    found = work()
    return time.perf_counter() - started, found


def written(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def main(count: int, cores: int) -> None:
    settings = {"spark.master": f"local[{cores}]", "spark.driver.memory": "6g"}
    with tempfile.TemporaryDirectory() as folder, spark_session("api", settings) as spark:
        ratings = ratings_of(spark, count, f"{folder}/ratings")
        held_out = F.pmod(F.xxhash64("user", "item"), F.lit(5)) == 0
        train, test = ratings.where(~held_out), ratings.where(held_out)
        size = ratings.count()
        pairs = ratings.sample(min(1.0, PAIRS / size), seed=1).drop("rating")
        buckets = max(8, size // 500_000)
        estimators = {
            "ALS": ALS(rank=20, maxIter=10, seed=1, coldStartStrategy="drop"),
            "PerUserRanker": PerUserRanker(seed=1, numBuckets=buckets),
        }
        print(f"{size:,} ratings of {ratings.select('user').distinct().count():,} users")
        print("| | fit s | msd held out | transform s | lists s |\n|---|---|---|---|---|")
        for name, estimator in estimators.items():
            fit, model = seconds(lambda made=estimator: made.fit(train))
            error = PerUserEvaluator(metricName="msd").evaluate(model.transform(test))
            scored, _ = seconds(lambda made=model: written(made.transform(pairs)))
            listed, _ = seconds(lambda made=model: written(made.recommendForAllUsers(10)))
            print(f"| {name} | {fit:.1f} | {error:.4f} | {scored:.1f} | {listed:.1f} |")


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000,
        int(sys.argv[2]) if len(sys.argv) > 2 else 2,
    )
