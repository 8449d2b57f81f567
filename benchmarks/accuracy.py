"""The default pipeline against other recommenders on the same split, user by user.

``python benchmarks/accuracy.py ratings.dat movielens-dat`` runs ``conf/kernel.yaml``, which is the
default configuration and one learner more, on the file, then fits MLlib's ALS, item-kNN, SVD++ and
a linear item model on the same training ratings, each for a grid of settings. Each is shown at the
best of its grid *on the held-out ratings*, which favours it. Last come two tables, in Markdown:
means over users, and how far ``mprank_linear``, the default, and ``mprank`` are from each row, in
percent of the row, with 95 % intervals of the paired differences. Times are those of one run.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from pyspark.ml.recommendation import ALS
from pyspark.sql import SparkSession

from spark_rank.config import load_config
from spark_rank.data.blocks import training_part
from spark_rank.experiments.peers import ItemNeighbours, LinearItems, Split, svdpp_scores
from spark_rank.metrics import batch_metrics, compare_paired
from spark_rank.session.session import spark_session
from spark_rank.stages import pipeline
from spark_rank.stages.runner import run_stage
from spark_rank.store.run import Run
from spark_rank.tables.contracts import BLOCKS, METRICS
from spark_rank.users.batches import ragged

ROOT = Path(__file__).parents[1]
STAGES = ("ingest", "prepare", "features", "train", "evaluate")
MAIN = ("msd", "m1d", "misranking")
ALS_RANKS, ALS_STRENGTHS = (20, 50), (0.08, 0.1, 0.12, 0.15, 0.2, 0.25)
SHRINKAGES, NEIGHBOURS = (100.0, 400.0, 1600.0, 6400.0, 25600.0), (20, 40, 60)
RIDGES = (400.0, 1600.0, 6400.0, 25600.0, 102400.0, 409600.0)
SVDPP_FACTORS, SVDPP_RIDGES, SVDPP_EPOCHS = (20, 50), (0.02, 0.05, 0.1, 0.15), (20, 40, 80, 120)
SVDPP_RATE = 0.007
Values = dict[str, np.ndarray]
Candidate = tuple[str, str, np.ndarray]


def read_split(run: Run) -> tuple[Split, np.ndarray]:
    """Return the ratings of all users in the order of their ids, and their numbers."""
    columns = ("user", "items", "ratings", "n_train")
    blocks = run.read(BLOCKS).orderBy("user_id").select(*columns).toArrow()
    items, ends = ragged(blocks.column("items").combine_chunks())
    ratings = ragged(blocks.column("ratings").combine_chunks())[0].astype(float)
    n_train = blocks.column("n_train").to_numpy().astype(np.int64)
    starts = np.repeat(ends[:-1] + n_train, np.diff(ends))
    training = np.arange(len(items)) < starts
    split = Split(
        items[training], ratings[training], np.concatenate([[0], np.cumsum(n_train)]),
        items[~training], ratings[~training],
        np.concatenate([[0], np.cumsum(np.diff(ends) - n_train)]), int(items.max()) + 1,
    )  # fmt: skip
    return split, blocks.column("user").to_numpy()


def measure(split: Split, scores: np.ndarray) -> Values:
    found = batch_metrics(
        scores, split.test_ratings, split.test_ends,
        on_rating_scale=np.ones(len(split.test_ends) - 1, bool), top=10, relevant_from=4.0,
        epsilon=0.25, levels=None,
    )  # fmt: skip
    return {name: found[name] for name in MAIN}


def als(run: Run, split: Split, numbers: np.ndarray) -> Iterator[Candidate]:
    train = training_part(run.read(BLOCKS), "user").cache()
    train.count()
    owner, chosen = split.held_out_users(), split.test_items
    rows = numbers[owner]
    means = np.bincount(split.users(), weights=split.ratings) / np.diff(split.ends)
    for rank in ALS_RANKS:
        for strength in ALS_STRENGTHS:
            model = ALS(
                rank=rank, maxIter=10, regParam=strength, userCol="user", itemCol="item",
                ratingCol="rating", seed=0,
            ).fit(train)  # fmt: skip
            users, items = factors(model.userFactors, rank), factors(model.itemFactors, rank)
            scores = np.full(len(chosen), np.nan)
            known = (rows < len(users)) & (chosen < len(items))
            scores[known] = np.einsum("ij,ij->i", users[rows[known]], items[chosen[known]])
            # an item without training ratings has no factors: the user's mean stands for it
            scores = np.where(np.isnan(scores), means[owner], scores)
            yield "ALS", f"rank {rank}, {strength:g}", scores
    train.unpersist()


def factors(frame: object, rank: int) -> np.ndarray:
    table = frame.orderBy("id").toArrow()  # type: ignore[attr-defined]
    ids = table.column("id").to_numpy()
    values, _ = ragged(table.column("features").combine_chunks())
    dense = np.full((ids.max() + 1, rank), np.nan)
    dense[ids] = values.reshape(-1, rank)
    return dense


def neighbours(split: Split) -> Iterator[Candidate]:
    model = ItemNeighbours(split)
    for shrinkage in SHRINKAGES:
        for k, scores in model.scores(shrinkage, NEIGHBOURS).items():
            yield "item-kNN", f"k {k}, shrinkage {shrinkage:g}", scores


def linear_items(split: Split) -> Iterator[Candidate]:
    model = LinearItems(split)
    for ridge in RIDGES:
        yield "linear item model", f"ridge {ridge:g}", model.scores(ridge)


def svdpp(split: Split) -> Iterator[Candidate]:
    for width in SVDPP_FACTORS:
        for ridge in SVDPP_RIDGES:
            trained = svdpp_scores(
                split, factors=width, rate=SVDPP_RATE, ridge=ridge, epochs=SVDPP_EPOCHS, seed=0
            )
            for epoch, scores in trained:
                yield "SVD++", f"rank {width}, {ridge:g}, {epoch} epochs", scores


def best(split: Split, candidates: Iterator[Candidate]) -> tuple[str, Values]:
    """Return the candidate with the least MSD on the held-out ratings."""
    chosen, least, shown = "", np.inf, {}
    started = time.perf_counter()
    for family, setting, scores in candidates:
        values = measure(split, scores)
        msd = float(np.nanmean(values["msd"]))
        print(f"  {family}, {setting}: MSD {msd:.4f}, {time.perf_counter() - started:.1f} s")
        if msd < least:
            chosen, least, shown = f"{family}, {setting}", msd, values
        started = time.perf_counter()
    return chosen, shown


def our_metrics(run: Run) -> dict[str, Values]:
    table = run.read(METRICS).orderBy("learner", "user_id").toArrow().to_pandas()
    return {
        learner: {name: own[name].to_numpy(dtype=float) for name in MAIN}
        for learner, own in table.groupby("learner")
    }


def difference(ours: np.ndarray, theirs: np.ndarray) -> str:
    """Return ours − theirs in percent of theirs, with its interval."""
    found = compare_paired(ours, theirs)
    if found.mean_difference is None or found.t_interval is None:
        return ""
    unit = 100.0 / float(np.nanmean(theirs))
    low, high = found.t_interval
    return f"{unit * found.mean_difference:+.2f} [{unit * low:+.2f}, {unit * high:+.2f}]"


def print_table(rows: dict[str, Values], ours: str) -> None:
    print("| | MSD | M1D | misranking | `mprank`, MSD % | M1D % | misranking % | users won |")
    print("|---|---|---|---|---|---|---|---|")
    for name, values in rows.items():
        cells = [f"{np.nanmean(values[m]):.4f}" for m in MAIN]
        if name == ours:
            cells += [""] * (len(MAIN) + 1)
        else:
            cells += [difference(rows[ours][m], values[m]) for m in MAIN]
            found = compare_paired(rows[ours]["msd"], values["msd"])
            cells.append(f"{found.wins:,} of {found.users:,}")
        print(f"| {name} | " + " | ".join(cells) + " |")


def compare(spark: SparkSession, path: str, kind: str, store: str) -> None:
    sets = [f"store={store}", "run_id=accuracy", f"input.path={path}", f"input.format={kind}"]
    config = load_config(str(ROOT / "conf/kernel.yaml"), sets)
    run = Run(spark, config.store, config.run_id)
    for stage in pipeline(config):
        if stage.name in STAGES:
            seconds = run_stage(stage, config, spark, run)["seconds"]
            print(f"  {stage.name} {seconds:.1f} s")
    split, numbers = read_split(run)
    families = (neighbours(split), linear_items(split), svdpp(split), als(run, split, numbers))
    rivals = dict(best(split, family) for family in families)
    rows = {**rivals, **our_metrics(run)}
    worst_first = sorted(rows, key=lambda name: -float(np.nanmean(rows[name]["msd"])))
    for ours in ("mprank_linear", "mprank"):
        print_table({name: rows[name] for name in worst_first}, ours)


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
