"""Ratings to lists with a model per user: ``python examples/with_per_user_ranker.py [u.data]``.

`with_als.py` is the same with MLlib's ALS. Without a file of MovieLens 100K, the ratings are
generated.
"""

from __future__ import annotations

import sys
import tempfile

from pyspark.ml.evaluation import RegressionEvaluator
from pyspark.sql import DataFrame, SparkSession

from spark_rank.ml import PerUserRanker, PerUserRankerModel


def ratings_of(spark: SparkSession, path: str | None) -> DataFrame:
    """Return user, item and rating of a file, or generated ones."""
    if path is not None:
        columns = "user int, item int, rating double, time bigint"
        return spark.read.csv(path, sep="\t", schema=columns).drop("time")
    return spark.sql(
        "select int(u.id) as user, int(i.id) as item, "
        "double(1 + pmod(u.id * 7 + i.id * i.id, 5)) as rating "
        "from range(80) u cross join range(60) i where pmod(hash(u.id, i.id), 4) = 0"
    )


def run(ratings: DataFrame, path: str) -> tuple[float, DataFrame]:
    """Learn, measure, list, save and load; return the error, and the lists of what was loaded."""
    train, test = ratings.randomSplit([0.8, 0.2], seed=1)
    ranker = PerUserRanker(userCol="user", itemCol="item", ratingCol="rating", rank=20, seed=1)
    model = ranker.fit(train)
    predictions = model.transform(test)
    rmse = RegressionEvaluator(labelCol="rating").evaluate(predictions)
    lists = model.recommendForAllUsers(10)
    few = model.recommendForUserSubset(test.limit(5), 10)
    fans = model.recommendForItemSubset(test.limit(5), 10)
    model.write().overwrite().save(path)
    again = PerUserRankerModel.load(path)
    for frame in (lists, few, fans):
        frame.show(3)
    return rmse, again.recommendForAllUsers(10)


if __name__ == "__main__":
    session = SparkSession.builder.getOrCreate()
    given = ratings_of(session, sys.argv[1] if len(sys.argv) > 1 else None)
    with tempfile.TemporaryDirectory() as folder:
        error, best = run(given, f"{folder}/model")
        best.show(3, truncate=False)
    print(f"root mean squared error {error:.3f}")
