"""What genres and years of films are worth: for new films, and for known ones.

``python benchmarks/cold_start.py ratings.dat :: movies.dat`` (or ``u.data tab u.item``) fits
`PerUserRanker` with and without the table of films (`itemTable`), twice:

* new films: a tenth of the films, by hash, is held out altogether, and their ratings are predicted.
  Without the table a new film has the user's level alone, which is also what the item offset has
  for it: offset 0. All of a user's scores are then equal, and there is no order;
* known films: half of the ratings, by hash, are held out.

Prints means over users with at least two held-out ratings, and RMSE over all held-out ratings,
predictions clipped to the scale.
"""

from __future__ import annotations

import itertools
import sys
import time

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.metrics import batch_metrics
from spark_rank.ml import PerUserRanker
from spark_rank.session.session import spark_session

SEED = 0
DELIMITERS = {"tab": "\t"}
SETTINGS = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "4",
            "spark.driver.memory": "3g"}  # fmt: skip


def read(spark: SparkSession, path: str, delimiter: str) -> DataFrame:
    rows = spark.read.csv(path, sep=DELIMITERS.get(delimiter, delimiter))
    names = ("user", "item", "rating")
    columns = [F.col(f"_c{place}").alias(name) for place, name in enumerate(names)]
    return rows.select(*columns).withColumn("rating", F.col("rating").cast("double"))


def share_of(*columns: str) -> object:
    """Return a number in [0, 1) by hash."""
    return F.pmod(F.xxhash64(F.lit(SEED), *columns), F.lit(1_000_000)) / 1_000_000


def measured(test: DataFrame) -> dict[str, float]:
    table = test.orderBy("user", "item").select("user", "rating", "prediction").toArrow()
    users = table.column("user").to_numpy()
    ratings, scores = (table.column(name).to_numpy() for name in ("rating", "prediction"))
    ends = np.concatenate([[0], np.flatnonzero(users[1:] != users[:-1]) + 1, [len(users)]])
    found = batch_metrics(
        scores, ratings, ends, on_rating_scale=np.ones(len(ends) - 1, bool), top=10,
        relevant_from=4.0, epsilon=0.25, levels=None,
    )  # fmt: skip
    several = np.diff(ends) >= 2
    values = {name: float(np.nanmean(found[name][several])) for name in ("msd", "m1d")}
    # equal scores have no order: misranking counts a tie as wrong
    all_tie = [np.ptp(scores[a:b]) == 0.0 for a, b in itertools.pairwise(ends)]
    order = found["misranking"][several]
    values["misranking"] = np.nan if np.mean(all_tie) > 0.5 else float(np.nanmean(order))
    error = np.clip(scores, ratings.min(), ratings.max()) - ratings
    return {**values, "rmse": float(np.sqrt(np.mean(error**2)))}


def compare(what: str, train: DataFrame, test: DataFrame, films: str) -> None:
    print(f"{what}: {train.count():,} training ratings, {test.count():,} held out")
    print("| | MSD | M1D | misranking | RMSE | s |")
    print("|---|---|---|---|---|---|")
    for name, settings in (("without the table", {}), ("with the table", {"itemTable": films})):
        started = time.perf_counter()
        model = PerUserRanker(**settings).fit(train)
        values = measured(model.transform(test))
        cells = ["" if np.isnan(value) else f"{value:.4f}" for value in values.values()]
        print(f"| {name} | {' | '.join(cells)} | {time.perf_counter() - started:.0f} |", flush=True)


def main() -> None:
    path, delimiter, films = sys.argv[1:4]
    with spark_session("cold start", SETTINGS) as spark:
        ratings = read(spark, path, delimiter).cache()
        is_new, is_held_out = share_of("item") < 0.1, share_of("user", "item") < 0.5
        compare("new films", ratings.where(~is_new), ratings.where(is_new), films)
        compare("known films", ratings.where(~is_held_out), ratings.where(is_held_out), films)


if __name__ == "__main__":
    main()
