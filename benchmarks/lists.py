"""Lists of all items against other recommenders: recall, NDCG, coverage and Gini of lists of ten.

``python benchmarks/lists.py ratings.dat movielens-dat`` holds out half of every user's ratings. An
item is relevant if it is held out and rated 4 or more; all items outside the training part compete.
The settings of every method, and beta of the default's lists, are chosen by NDCG@10 within the
training part: a fifth of it is held back, and all methods learn from the rest. The table has means
over users on the held-out half and the paired difference from the default's lists, with 95 %
intervals. ``beta`` lines, which the picture of ``benchmarks/pictures.py`` shows, hold the default's
lists for other values of beta, on the held-out half, where nothing is chosen.
"""

from __future__ import annotations

import csv
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.ml.recommendation import ALS
from pyspark.sql import SparkSession
from threadpoolctl import threadpool_limits

from spark_rank.config import load_config
from spark_rank.features.files import open_distributed
from spark_rank.metrics import compare_paired, coverage, gini, hit_metrics
from spark_rank.session.session import spark_session
from spark_rank.stages import pipeline
from spark_rank.stages.feature_tables import distribute_files
from spark_rank.stages.runner import run_stage
from spark_rank.store.run import Run
from spark_rank.tables.contracts import BLOCKS, ITEMS, LIST_METRICS, METRICS, MODELS
from spark_rank.users.batches import ragged

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs/benchmarks/pictures"
STAGES = ("ingest", "prepare", "features", "train", "evaluate")
TOP, RELEVANT = 10, 4.0
DEFAULT = "mprank_linear"
BETAS = (0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 32.0)
RIDGES = (50.0, 100.0, 200.0, 400.0, 800.0, 1600.0)
NEIGHBOURS, SHRINKAGES = (50, 100, 200, 400), (0.0, 10.0, 50.0)
IMPLICIT = ((32, 10.0), (32, 20.0), (64, 20.0))
IMPLICIT_REGS = (0.5, 1.0, 2.0, 4.0)
EXPLICIT = ((20, 0.1), (20, 0.2), (50, 0.1), (50, 0.2))
Matrix = np.ndarray
Measured = dict[str, Any]
Candidate = tuple[str, Callable[[], Matrix]]


class Part:
    """One split of all users: what is learned from, what is held out, and the models of a run."""

    def __init__(self, run: Run) -> None:
        self.run = run
        columns = ("user_id", "items", "ratings", "n_train")
        blocks = run.read(BLOCKS).orderBy("user_id").select(*columns).toArrow()
        self.user_ids = blocks.column("user_id").combine_chunks()
        self.items, ends = ragged(blocks.column("items").combine_chunks())
        self.ratings = ragged(blocks.column("ratings").combine_chunks())[0].astype(float)
        n_train = blocks.column("n_train").to_numpy()
        self.users = np.repeat(np.arange(len(blocks)), np.diff(ends))
        self.training = np.arange(len(self.items)) < np.repeat(ends[:-1] + n_train, np.diff(ends))
        self.item_ids = run.read(ITEMS).orderBy("item").toArrow().column("item_id").to_pylist()
        self.shape = len(blocks), len(self.item_ids)
        self.seen = self.marked(self.training)
        self.relevant = self.marked(~self.training & (self.ratings >= RELEVANT))
        # as in the tables, equal scores are in the order of the ids
        self.by_id = np.argsort(np.array(self.item_ids), kind="stable")

    def marked(self, which: Matrix) -> Matrix:
        """Return users × items, true for some of the ratings."""
        marks = np.zeros(self.shape, dtype=bool)
        marks[self.users[which], self.items[which]] = True
        return marks

    def measured(self, scores: Matrix) -> Measured:
        """Return recall and NDCG of every user, coverage and Gini of the lists."""
        ordered = np.where(self.seen, -np.inf, scores)[:, self.by_id]
        best = np.sort(np.argpartition(-ordered, TOP, axis=1)[:, :TOP], axis=1)
        order = np.argsort(-np.take_along_axis(ordered, best, axis=1), axis=1, kind="stable")
        listed = self.by_id[np.take_along_axis(best, order, axis=1)]
        hits = np.take_along_axis(self.relevant, listed, axis=1)
        found = hit_metrics(hits, self.relevant.sum(axis=1))
        shown = np.bincount(listed.ravel(), minlength=self.shape[1])
        return {"ndcg": found["ndcg"], "recall": found["recall"], "coverage": coverage(shown),
                "gini": gini(shown)}  # fmt: skip

    def chosen(self) -> Matrix:
        """Return users × items, 1 for training ratings."""
        return self.seen.astype(np.float32)

    def write_training(self, path: Path) -> None:
        """Write the training ratings as a file to be split again."""
        ids = self.user_ids.to_pylist()
        with path.open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(("user", "item", "rating"))
            for user, item, rating in zip(
                self.users[self.training], self.items[self.training],
                self.ratings[self.training], strict=True,
            ):  # fmt: skip
                rows.writerow((ids[user], self.item_ids[item], rating))


def made(spark: SparkSession, name: str, *sets: str) -> Part:
    config = load_config(ROOT / "conf/default.yaml", [
        *sets, f"run_id={name}", "refit.in_pipeline=false", "evaluate.candidates=all",
        f"evaluate.top_n={TOP}", f"evaluate.relevant_from={RELEVANT}",
    ])  # fmt: skip
    run = Run(spark, config.store, config.run_id)
    for stage in pipeline(config):
        if stage.name in STAGES:
            run_stage(stage, config, spark, run)
    return Part(run)


def own_parts(part: Part, spark: SparkSession) -> tuple[Matrix, Matrix]:
    """Return the default's scores of all items, and what its users' choices add at beta 1."""
    features = open_distributed(distribute_files(spark, part.run))
    models = part.run.read(MODELS).where(f"learner = '{DEFAULT}'").toArrow()
    models = models.take(pc.index_in(part.user_ids, models.column("user_id").combine_chunks()))
    values, ends = ragged(models.column("weights").combine_chunks())
    weights = np.zeros((len(models), features.matrix.shape[1]))
    weights[np.diff(ends) > 0] = values.reshape(-1, weights.shape[1])
    scores = weights @ features.matrix.T.astype(np.float64)
    offset_weight = models.column("offset_weight").to_numpy()
    scores += offset_weight[:, None] * np.asarray(features.offset)
    scores += models.column("intercept").to_numpy()[:, None]
    sizes = np.bincount(part.users[part.training], minlength=part.shape[0])
    assert features.choice is not None
    codes = features.choice.codes(
        part.items[part.training], np.concatenate([[0], np.cumsum(sizes)])
    )
    return scores, codes @ features.choice.decoder.T.astype(np.float64)


def popularity(part: Part) -> Iterator[Candidate]:
    yield "", lambda: np.tile(part.chosen().sum(axis=0), (part.shape[0], 1))


def ease(part: Part) -> Iterator[Candidate]:
    """Steck, WWW 2019: a linear model of every item on all others, none on itself."""
    chosen = part.chosen()
    gram = (chosen.T @ chosen).astype(np.float64)

    def scores(ridge: float) -> Matrix:
        inverse = np.linalg.inv(gram + ridge * np.eye(len(gram)))
        weights = -inverse / np.diag(inverse)
        np.fill_diagonal(weights, 0.0)
        return np.asarray(chosen @ weights.astype(np.float32))

    for ridge in RIDGES:
        yield f"ridge {ridge:g}", lambda ridge=ridge: scores(ridge)  # type: ignore[misc]


def item_knn(part: Part) -> Iterator[Candidate]:
    """Sums of the shrunken cosines of an item's k nearest items with those that were chosen."""
    chosen = part.chosen()
    together = chosen.T @ chosen
    sizes = np.diag(together).copy()
    np.fill_diagonal(together, 0.0)

    def scores(k: int, shrinkage: float) -> Matrix:
        cosines = together / (np.sqrt(np.outer(sizes, sizes)) + shrinkage + 1e-9)
        if k < len(cosines):
            least = -np.partition(-cosines, k, axis=0)[k]
            cosines = np.where(cosines < least, 0.0, cosines)
        return np.asarray(chosen @ cosines)

    for k in NEIGHBOURS:
        for shrinkage in SHRINKAGES:
            yield f"{k} neighbours, shrinkage {shrinkage:g}", lambda k=k, s=shrinkage: scores(k, s)  # type: ignore[misc]


def als(part: Part, spark: SparkSession, implicit: bool) -> Iterator[Candidate]:
    """MLlib's: of the ratings, or of what was chosen."""
    rows = np.column_stack([part.users, part.items, part.ratings])[part.training]
    if implicit:
        rows[:, 2] = 1.0

    table = pa.table({"user": rows[:, 0].astype(np.int32), "item": rows[:, 1].astype(np.int32),
                      "rating": rows[:, 2].astype(np.float32)})  # fmt: skip
    frame = spark.createDataFrame(table).cache()

    def scores(rank: int, reg: float, alpha: float) -> Matrix:
        model = ALS(
            rank=rank, regParam=reg, alpha=alpha, implicitPrefs=implicit, maxIter=10, seed=0
        ).fit(frame)
        sides = []
        for factors, size in (
            (model.userFactors, part.shape[0]),
            (model.itemFactors, part.shape[1]),
        ):
            found = factors.toArrow()
            side = np.zeros((size, rank))
            side[found.column("id").to_numpy()] = np.vstack(
                found.column("features").to_numpy(zero_copy_only=False)
            )
            sides.append(side)
        return np.asarray(sides[0] @ sides[1].T)

    if implicit:
        for rank, alpha in IMPLICIT:
            for reg in IMPLICIT_REGS:
                yield (f"rank {rank}, alpha {alpha:g}, {reg:g}",
                       lambda r=rank, a=alpha, g=reg: scores(r, g, a))  # type: ignore[misc]  # fmt: skip
    else:
        for rank, reg in EXPLICIT:
            yield f"rank {rank}, {reg:g}", lambda r=rank, g=reg: scores(r, g, 1.0)  # type: ignore[misc]


def chosen_within(inner: Iterator[Candidate], part: Part) -> tuple[str, float]:
    """Return the settings with the best NDCG on what is held back of the training part."""
    found = {name: float(np.nanmean(part.measured(scores())["ndcg"])) for name, scores in inner}
    best = max(found, key=lambda name: found[name])
    return best, found[best]


def with_settings(candidates: Iterator[Candidate], wanted: str) -> Matrix:
    return next(scores() for name, scores in candidates if name == wanted)


def compare(spark: SparkSession, path: str, kind: str, folder: Path) -> None:
    outer = made(spark, "outer", f"store={folder}", f"input.path={path}", f"input.format={kind}")
    inner_file = folder / "training.csv"
    outer.write_training(inner_file)
    inner = made(spark, "inner", f"store={folder}", f"input.path={inner_file}",
                 "input.format=csv", "prepare.train_share=0.8")  # fmt: skip
    scores, choices = own_parts(inner, spark)
    of_beta = {beta: float(np.nanmean(inner.measured(scores + beta * choices)["ndcg"]))
               for beta in BETAS}  # fmt: skip
    beta = max(of_beta, key=lambda value: of_beta[value])
    print(
        "within the training part: " + ", ".join(f"beta {b:g}: {v:.4f}" for b, v in of_beta.items())
    )
    default = load_config(ROOT / "conf/default.yaml", []).recommend.beta
    scores, choices = own_parts(outer, spark)
    rows: dict[str, Measured] = {
        f"default, beta {default:g}": outer.measured(scores + default * choices),
        f"beta {beta:g}, chosen within": outer.measured(scores + beta * choices),
        "expected rating alone": outer.measured(scores),
        "choices alone": outer.measured(choices),
    }
    check_table(outer, rows[f"default, beta {default:g}"])
    families: dict[str, Callable[[Part], Iterator[Candidate]]] = {
        "most popular": popularity, "item-kNN": item_knn, "EASE": ease,
        "ALS implicit": lambda part: als(part, spark, True),
        "ALS explicit": lambda part: als(part, spark, False),
    }  # fmt: skip
    for name, family in families.items():
        settings, value = chosen_within(family(inner), inner)
        print(f"within the training part: {name}: {settings or '-'}: {value:.4f}", flush=True)
        rows[f"{name} {settings}".strip()] = outer.measured(with_settings(family(outer), settings))
    print_table(rows)
    print_misranking(outer)
    for value in BETAS:
        found = outer.measured(scores + value * choices)
        print(f"beta,{value:g},{np.nanmean(found['ndcg']):.4f},{np.nanmean(found['recall']):.4f},"
              f"{found['coverage']:.4f},{found['gini']:.4f}")  # fmt: skip


def check_table(part: Part, found: Measured) -> None:
    """Fail unless the stage `evaluate` measures the same lists alike."""
    rows = part.run.read(LIST_METRICS).where(f"user_group = 'all' and learner = '{DEFAULT}'")
    table = {row["metric"]: row["mean"] for row in rows.collect()}
    for name in ("ndcg", "recall", "coverage", "gini"):
        assert abs(table[name] - float(np.nanmean(found[name]))) < 1e-6, (name, table, found)
    print("the table list_metrics has the same NDCG, recall, coverage and Gini")


def print_table(rows: dict[str, Measured]) -> None:
    ours = next(iter(rows.values()))
    print("| lists | NDCG@10 | recall@10 | coverage | Gini | default's NDCG@10 − this one's |")
    print("|---|---|---|---|---|---|")
    for name, found in rows.items():
        paired = compare_paired(ours["ndcg"], found["ndcg"])
        gain = "–"
        if paired.t_interval is not None and found is not ours:
            low, high = paired.t_interval
            gain = f"{paired.mean_difference:+.4f} ({low:+.4f} to {high:+.4f})"
        print(f"| {name} | {np.nanmean(found['ndcg']):.4f} | {np.nanmean(found['recall']):.4f} | "
              f"{found['coverage']:.3f} | {found['gini']:.3f} | {gain} |")  # fmt: skip


def print_misranking(part: Part) -> None:
    rows = part.run.read(METRICS).where(f"learner = '{DEFAULT}'").agg({"misranking": "avg"}).head()
    print(f"misranking of {DEFAULT} on the held-out half: {rows[0] if rows else float('nan'):.4f}")


def main() -> None:
    path, kind = sys.argv[1:3]
    settings = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "4",
                "spark.driver.memory": "2g"}  # fmt: skip
    with (
        tempfile.TemporaryDirectory(prefix="spark-rank-") as folder,
        spark_session("lists", settings) as spark,
        threadpool_limits(2),
    ):
        print(f"{Path(path).name}: lists of {TOP} among all items")
        compare(spark, path, kind, Path(folder))


if __name__ == "__main__":
    main()
