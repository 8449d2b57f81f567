"""Features by ALS beside the driver's factor model, and MLlib's ALS itself, on the same split.

``python benchmarks/als_features.py ratings.dat movielens-dat [share]`` runs the default
configuration on the file, or on a share of its users, once with each kind of factors, fits MLlib's
ALS on the same training ratings for a few strengths, and prints the means over users in Markdown.
ALS is shown at the best of its strengths *on the held-out ratings*, which favours it. With the word
``nested`` at the end the held-out ratings are thrown away first, and the training half is split
once more: that is how the strength of ``features.kind als``, and the growth of the ridge that goes
with it, were chosen.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import accuracy
import numpy as np
from pyspark.sql import SparkSession

from spark_rank.config import load_config
from spark_rank.data.blocks import training_part
from spark_rank.session.session import spark_session
from spark_rank.stages import pipeline
from spark_rank.stages.runner import run_stage
from spark_rank.store.run import Run
from spark_rank.tables.contracts import BLOCKS

STRENGTHS, GROWTHS = (0.1, 0.15, 0.2), (0.0067, 0.02, 0.05)
STAGES = ("ingest", "prepare", "features", "train", "evaluate")


def run_of(spark: SparkSession, sets: list[str], stages: tuple[str, ...] = STAGES) -> Run:
    config = load_config(None, sets)
    run = Run(spark, config.store, config.run_id)
    for stage in pipeline(config):
        if stage.name in stages:
            seconds = run_stage(stage, config, spark, run)["seconds"]
            print(f"  {config.run_id}: {stage.name} {seconds:.1f} s", flush=True)
    return run


def compare(spark: SparkSession, sets: list[str]) -> None:
    """Print both kinds of factors, and ALS itself."""
    runs = {kind: run_of(spark, [*sets, f"run_id={kind}", f"features.kind={kind}"])
            for kind in ("factors", "als")}  # fmt: skip
    split, numbers = accuracy.read_split(runs["als"])
    name, values = accuracy.best(split, accuracy.als(runs["als"], split, numbers))
    rows = {f"MLlib's {name}": values}
    for kind, run in runs.items():
        found = accuracy.our_metrics(run)
        rows["item offset"] = found["item_offset"]
        rows[f"features.kind {kind}"] = found["mprank_linear"]
    print_rows(rows)


def choose(spark: SparkSession, sets: list[str], folder: Path) -> None:
    """Print what strengths and growths give on a split of the training half."""
    outer = run_of(spark, [*sets, "run_id=outer"], ("ingest", "prepare"))
    training_part(outer.read(BLOCKS), "user").write.parquet(f"file://{folder / 'half'}")
    entries = ", ".join(
        f"{{name: growth {g}, params: {{C: 1.0, ridge: fixed, growth: {g}}}}}" for g in GROWTHS
    )
    inner = [sets[0], f"input.path={folder / 'half'}", "prepare.train_share=0.8",
             f"train.learners=[{entries}]"]  # fmt: skip
    rows = {}
    kinds = ["kind: factors", *(f"kind: als, als_regularization: {s}" for s in STRENGTHS)]
    for number, kind in enumerate(kinds):
        run = run_of(spark, [*inner, f"run_id=inner{number}", f"features={{{kind}}}"])
        rows |= {f"{kind}, {name}": own for name, own in accuracy.our_metrics(run).items()}
    print_rows(rows)


def print_rows(rows: dict[str, accuracy.Values]) -> None:
    print("| | MSD | M1D | misranking |\n|---|---|---|---|")
    for name, values in rows.items():
        means = (f"{np.nanmean(values[metric]):.4f}" for metric in accuracy.MAIN)
        print(f"| {name} | {' | '.join(means)} |", flush=True)


def main() -> None:
    path, kind, *rest = sys.argv[1:]
    nested = rest[-1:] == ["nested"]
    share = (rest[: len(rest) - nested] or ["1.0"])[0]
    settings = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "4",
                "spark.driver.memory": "3g"}  # fmt: skip
    # a grid of ALS's own: ranks of the default features and a smaller one
    accuracy.ALS_RANKS, accuracy.ALS_STRENGTHS = (20, 32), (0.1, 0.15, 0.2)
    with (
        tempfile.TemporaryDirectory(prefix="spark-rank-") as folder,
        spark_session("als features", settings) as spark,
    ):
        sets = [f"store={folder}/store", f"input.path={path}", f"input.format={kind}",
                f"prepare.user_share={share}", "evaluate.activity=[]"]  # fmt: skip
        if nested:
            choose(spark, sets, Path(folder))
        else:
            compare(spark, sets)


if __name__ == "__main__":
    main()
