"""What `spark_rank.ml` answers in a session: run as a program, with and without Spark Connect.

``python answers.py FILE [sc://…]`` writes the answers to FILE as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.ml.evaluation import RegressionEvaluator
from pyspark.ml.tuning import ParamGridBuilder, TrainValidationSplit
from pyspark.sql import DataFrame, SparkSession

from spark_rank.errors import SparkRankError
from spark_rank.ml import PerUserEvaluator, PerUserRanker, PerUserRankerModel

USERS, ITEMS, RATED = 40, 30, 14
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "3",
    "spark.default.parallelism": "3",
}


def ratings(seed: int, users: range) -> pa.Table:
    """Return RATED ratings of every user, of levels that users and items decide."""
    rng = np.random.default_rng(seed)
    likes, tastes = rng.normal(size=(2, ITEMS)), rng.normal(size=(2, max(users) + 1))
    rows: list[tuple[str, str, float]] = []
    for user in users:
        for item in rng.choice(ITEMS, RATED, replace=False):
            level = 3.0 + likes[:, item] @ tastes[:, user] + rng.normal(0.0, 0.3)
            rows.append((f"u{user}", f"i{item}", float(np.clip(np.rint(level), 1.0, 5.0))))
    columns = zip(*rows, strict=True)
    return pa.table(dict(zip(("user", "item", "rating"), map(list, columns), strict=True)))


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    return sorted(frame.toArrow().to_pylist(), key=repr)


def answers(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Return what every method answers, as plain values."""
    train = spark.createDataFrame(ratings(0, range(USERS)))
    held_out = spark.createDataFrame(ratings(1, range(USERS)))
    new = spark.createDataFrame(ratings(2, range(USERS, USERS + 3)))
    ranker = PerUserRanker(rank=4, rounds=3, numBuckets=3)
    model = ranker.fit(train)
    some = held_out.limit(5)
    tuned = TrainValidationSplit(
        estimator=ranker,
        estimatorParamMaps=ParamGridBuilder().addGrid(ranker.rank, [2, 4]).build(),
        evaluator=RegressionEvaluator(labelCol="rating", metricName="rmse"),
        seed=1,
    ).fit(train)
    found = {
        "transform": rows_of(model.transform(held_out)),
        "all_users": rows_of(model.recommendForAllUsers(3)),
        "some_users": rows_of(model.recommendForUserSubset(some, 3)),
        "some_items": rows_of(model.recommendForItemSubset(some, 3)),
        "similar": rows_of(model.similarItems(some, 3)),
        "folded": rows_of(model.foldIn(new).recommendForUserSubset(new, 3)),
        "explain": model.explain("u1", "i1"),
        "metrics": rows_of(model.evaluate(held_out)),
        "models": rows_of(model.userModels),
        "features": rows_of(model.itemFeatures),
        "grid": ranker.copy({ranker.learner: "svrank"}).fit(train).userModels.count(),
        "misranking": PerUserEvaluator(metricName="misranking").evaluate(model.transform(held_out)),
        "validation": tuned.validationMetrics,
    }
    return {**found, "stores": stores(model, folder)}


def stores(model: PerUserRankerModel, folder: Path) -> list[str]:
    """Return what saving, loading and opening say, or that they did it."""
    path = str(folder / "model")
    said = []
    for ask in (
        lambda: model.write().overwrite().save(path),
        lambda: PerUserRankerModel.load(path),
        lambda: PerUserRankerModel.fromRun(path, "model"),
    ):
        try:
            ask()
            said.append("done")
        except SparkRankError as error:
            said.append(str(error))
    return said


def main(file: str, remote: str | None = None) -> None:
    builder = SparkSession.builder
    builder = builder.master("local[2]") if remote is None else builder.remote(remote)
    if remote is None:
        for key, value in SETTINGS.items():
            builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        found = answers(spark, Path(file).parent)
    finally:
        spark.stop()
    Path(file).write_text(json.dumps(found, default=str))


if __name__ == "__main__":
    main(*sys.argv[1:])
