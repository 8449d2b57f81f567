"""The default pipeline against MLlib ALS on the same split, user by user.

``python benchmarks/accuracy.py ratings.dat movielens-dat`` runs ``conf/default.yaml`` on the file,
then fits ALS on the same training ratings for a grid of ranks and regularisations. ALS is shown at
the best of the grid *on the held-out ratings*, which favours it. Times are those of one run.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.ml.recommendation import ALS
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_rank.config import load_config
from spark_rank.data.blocks import training_part
from spark_rank.data.tables import BLOCKS, METRICS
from spark_rank.engine.batches import ragged
from spark_rank.engine.runner import run_stage
from spark_rank.engine.session import spark_session
from spark_rank.engine.store import Run
from spark_rank.metrics import batch_metrics, compare_paired
from spark_rank.stages import pipeline

ROOT = Path(__file__).parents[1]
GRID = [(rank, strength) for rank in (20, 40, 50) for strength in (0.06, 0.08, 0.1, 0.12)]
MAIN = ("msd", "m1d", "misranking")
Values = dict[str, np.ndarray]


def held_out(run: Run) -> pa.Table:
    """Return every user's training mean and held-out items and ratings, in the order of the id."""
    rest = [F.expr(f"slice({name}, n_train + 1, size({name}))").alias(name)
            for name in ("items", "ratings")]  # fmt: skip
    total = F.aggregate(
        F.slice("ratings", 1, F.col("n_train")), F.lit(0.0), lambda s, r: s + r.cast("double")
    )
    mean = (total / F.col("n_train")).alias("mean")
    blocks = run.read(BLOCKS)
    return blocks.select("user", "user_id", mean, *rest).orderBy("user_id").toArrow()


def als_metrics(run: Run, test: pa.Table, rank: int, strength: float) -> tuple[Values, float]:
    train = training_part(run.read(BLOCKS), "user").cache()
    train.count()
    started = time.perf_counter()
    model = ALS(
        rank=rank, maxIter=10, regParam=strength, userCol="user", itemCol="item",
        ratingCol="rating", seed=0,
    ).fit(train)  # fmt: skip
    seconds = time.perf_counter() - started
    users, items = factors(model.userFactors, rank), factors(model.itemFactors, rank)
    chosen, ends = ragged(test.column("items").combine_chunks())
    ratings, _ = ragged(test.column("ratings").combine_chunks())
    owner = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    rows = test.column("user").to_numpy()[owner]
    scores = np.full(len(chosen), np.nan)
    known = (rows < len(users)) & (chosen < len(items))
    scores[known] = np.einsum("ij,ij->i", users[rows[known]], items[chosen[known]])
    # an item without training ratings has no factors: the user's mean stands for it
    unknown = np.isnan(scores)
    scores[unknown] = test.column("mean").to_numpy()[owner[unknown]]
    found = batch_metrics(
        scores, ratings, ends, on_rating_scale=np.ones(len(ends) - 1, bool), top=10,
        relevant_from=4.0, epsilon=0.25, levels=None,
    )  # fmt: skip
    train.unpersist()
    return {name: found[name] for name in MAIN}, seconds


def factors(frame: object, rank: int) -> np.ndarray:
    table = frame.orderBy("id").toArrow()  # type: ignore[attr-defined]
    ids = table.column("id").to_numpy()
    values, _ = ragged(table.column("features").combine_chunks())
    dense = np.full((ids.max() + 1, rank), np.nan)
    dense[ids] = values.reshape(-1, rank)
    return dense


def our_metrics(run: Run) -> dict[str, Values]:
    table = run.read(METRICS).orderBy("learner", "user_id").toArrow().to_pandas()
    return {
        learner: {name: own[name].to_numpy(dtype=float) for name in MAIN}
        for learner, own in table.groupby("learner")
    }


def compare(spark: SparkSession, path: str, kind: str, store: str) -> None:
    sets = [f"store={store}", "run_id=accuracy", f"input.path={path}", f"input.format={kind}"]
    config = load_config(str(ROOT / "conf/default.yaml"), sets)
    run = Run(spark, config.store, config.run_id)
    seconds = {}
    for stage in pipeline(config):
        if stage.name in ("ingest", "prepare", "features", "train", "evaluate"):
            seconds[stage.name] = run_stage(stage, config, spark, run)["seconds"]
    ours, test = our_metrics(run), held_out(run)
    rivals = {}
    for rank, strength in GRID:
        values, fit = als_metrics(run, test, rank, strength)
        rivals[f"ALS {rank} {strength:g}"] = values
        print(f"  ALS rank {rank}, {strength:g}: MSD {np.nanmean(values['msd']):.4f}, {fit:.1f} s")
    best = min(rivals, key=lambda name: float(np.nanmean(rivals[name]["msd"])))
    print(f"  features {seconds['features']:.1f} s, train {seconds['train']:.1f} s")
    for name, values in {**ours, best: rivals[best]}.items():
        print(f"  {name:<16}" + "".join(f"{np.nanmean(values[m]):9.4f}" for m in MAIN))
    for learner in ("mprank", "mprank_linear"):
        for metric in MAIN:
            found = compare_paired(ours[learner][metric], rivals[best][metric])
            base = float(np.nanmean(rivals[best][metric]))
            low, high = found.t_interval or (np.nan, np.nan)
            print(
                f"  {learner} − {best}, {metric}: {100 * (found.mean_difference or 0) / base:+.2f} "
                f"% [{100 * low / base:+.2f}, {100 * high / base:+.2f}], better for "
                f"{found.wins:,} of {found.users:,} users"
            )


def main() -> None:
    path, kind = sys.argv[1:3]
    settings = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "4",
                "spark.driver.memory": "3g"}  # fmt: skip
    with (
        tempfile.TemporaryDirectory(prefix="spark-rank-") as store,
        spark_session("accuracy", settings) as spark,
    ):
        print(f"{Path(path).name}: MSD, M1D, misranking on held-out ratings")
        compare(spark, path, kind, store)


if __name__ == "__main__":
    main()
