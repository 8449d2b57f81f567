"""What the default learner of each kind of features was chosen on: training ratings alone.

``python benchmarks/default_learners.py DATA CASE…`` splits the ratings of each case as a run does,
throws the held-out half away, and splits the training half once more: features are learned from
``SHARE`` of it, and a grid of ridges of the linear MPRank is measured on the rest of it. DATA is a
folder with ``ml-100k``, ``ml-1m`` and ``cystic-fibrosis``. Cases are named <data>-<kind>:

* ``100k`` and ``1m`` are MovieLens; given features are the genres,
* ``100k-letor`` makes queries of half of the users; a document's vector is its genres, its year,
  and how many of the other users rated it, and how;
* ``cf-letor`` are judged documents: three judges' scores are the vector, the fourth's is the label.
"""

from __future__ import annotations

import csv
import gzip
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from pyspark.sql import SparkSession

from spark_rank.config import load_config
from spark_rank.data.blocks import training_part
from spark_rank.session.session import spark_session
from spark_rank.stages import pipeline
from spark_rank.stages.runner import run_stage
from spark_rank.store.run import Run
from spark_rank.tables.contracts import BLOCKS, ITEMS, METRICS

SHARE = 0.8
MAIN = ("msd", "m1d", "misranking")
CASES = (
    "100k-given", "1m-given", "100k-panel", "1m-panel", "100k-reference", "1m-reference",
    "100k-letor", "cf-letor",
)  # fmt: skip
STAGES = ("ingest", "prepare", "features", "train", "evaluate")
STRENGTHS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
MIXED = ((0.03, 0.3), (0.03, 1.0), (0.1, 1.0), (0.1, 3.0), (1.0, 0.0067))
Vectors = dict[str, list[float]]


def movie_ratings(data: Path, name: str) -> pd.DataFrame:
    """Return user, item, rating of a MovieLens set, ids as text."""
    if name == "100k":
        rows = [line.split("\t")[:3] for line in (data / "ml-100k/u.data").open()]
    else:
        with gzip.open(data / "ml-1m/ratings_notime.dat.gz", "rt") as stream:
            rows = [line.strip().split("::")[:3] for line in stream]
    table = pd.DataFrame(rows, columns=["user", "item", "rating"])
    return table.astype({"rating": float})


def genres(data: Path, name: str) -> Vectors:
    """Return the flags of every film."""
    if name == "100k":
        lines = (data / "ml-100k/u.item").read_text(encoding="latin-1").splitlines()
        return {line.split("|")[0]: [float(flag) for flag in line.split("|")[-19:]]
                for line in lines}  # fmt: skip
    lines = (data / "ml-1m/movies.dat").read_text(encoding="latin-1").splitlines()
    named = {line.split("::")[0]: set(line.split("::")[2].split("|")) for line in lines}
    known = sorted(set().union(*named.values()))
    return {item: [float(genre in own) for genre in known] for item, own in named.items()}


def movie_queries(data: Path) -> tuple[pd.DataFrame, Vectors]:
    """Return every second user as a query, and vectors to which the others have contributed."""
    table = movie_ratings(data, "100k")
    asked = table["user"].astype(int) % 2 == 0
    found = table[~asked].groupby("item")["rating"].agg(["count", "sum"])
    lines = (data / "ml-100k/u.item").read_text(encoding="latin-1").splitlines()
    years = {line.split("|")[0]: float((line.split("|")[2] or "1-Jan-1995")[-4:]) for line in lines}
    vectors = {}
    for item, flags in genres(data, "100k").items():
        count, total = found.loc[item] if item in found.index else (0.0, 0.0)
        mean = (total + 5 * 3.5) / (count + 5)
        vectors[item] = [*flags, years[item], float(np.log1p(count)), mean]
    return _as_documents(table[asked], vectors)


def judged_queries(data: Path) -> tuple[pd.DataFrame, Vectors]:
    """Return the fourth judge's scores, and the others' as vectors."""
    with (data / "cystic-fibrosis/judgments.tsv").open() as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    triples = [(row["query"], f"{row['query']}/{row['doc_rn']}", float(row["jbw"])) for row in rows]
    judges = ("rew", "faculty", "postdoc")
    vectors = {f"{row['query']}/{row['doc_rn']}": [float(row[j]) for j in judges] for row in rows}
    return pd.DataFrame(triples, columns=["user", "item", "rating"]), vectors


def _as_documents(table: pd.DataFrame, vectors: Vectors) -> tuple[pd.DataFrame, Vectors]:
    named = table.assign(item=table["user"] + "/" + table["item"])
    return named, {item: vectors[item.split("/")[1]] for item in named["item"]}


def learners() -> str:
    """Return the grid as a value of train.learners."""
    entries = [(f"per-example {C:g}", {"C": C}) for C in STRENGTHS]
    entries += [(f"fixed {C:g}", {"C": C, "ridge": "fixed"}) for C in STRENGTHS]
    entries += [
        (f"fixed {C:g} growth {growth:g}", {"C": C, "ridge": "fixed", "growth": growth})
        for C, growth in MIXED
    ]
    made = [f"{{name: {name}, params: {_flow(params)}}}" for name, params in entries]
    return f"[{', '.join(made)}]"


def _flow(params: dict[str, object]) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value in params.items()) + "}"


def run_of(spark: SparkSession, sets: list[str], stages: tuple[str, ...]) -> Run:
    config = load_config(None, sets)
    run = Run(spark, config.store, config.run_id)
    for stage in pipeline(config):
        if stage.name in stages:
            run_stage(stage, config, spark, run)
    return run


def training_half(spark: SparkSession, table: pd.DataFrame, folder: Path) -> pd.DataFrame:
    """Return the ratings that a run would learn from."""
    table.to_parquet(folder / "all.parquet")
    sets = [f"store={folder / 'store'}", "run_id=outer", f"input.path={folder / 'all.parquet'}"]
    run = run_of(spark, sets, ("ingest", "prepare"))
    found = training_part(run.read(BLOCKS), "user_id").toPandas()
    names = run.read(ITEMS).select("item", "item_id").toPandas()
    merged = found.merge(names, on="item")
    return pd.DataFrame(
        {"user": merged["user_id"], "item": merged["item_id"], "rating": merged["rating"]}
    )


def write_letor(table: pd.DataFrame, vectors: Vectors, path: Path) -> None:
    with path.open("w") as stream:
        for row in table.itertuples():
            pairs = " ".join(f"{n}:{value}" for n, value in enumerate(vectors[row.item], 1))
            document = row.item.split("/")[1]
            stream.write(f"{row.rating:g} qid:{row.user} {pairs} #docid = {document}\n")


def input_of(spark: SparkSession, case: str, data: Path, folder: Path) -> list[str]:
    """Write the inner input of a case; return the settings that name it."""
    name, kind = case.split("-")
    if kind == "letor":
        table, vectors = judged_queries(data) if name == "cf" else movie_queries(data)
        write_letor(training_half(spark, table, folder), vectors, folder / "train.txt")
        return [f"input.path={folder / 'train.txt'}", "input.format=letor", "features.kind=given"]
    half = training_half(spark, movie_ratings(data, name), folder)
    half.to_parquet(folder / "half.parquet")
    sets = [f"input.path={folder / 'half.parquet'}", f"features.kind={kind}"]
    if kind == "given":
        rows = [{"item_id": item, "features": own} for item, own in genres(data, name).items()]
        pd.DataFrame(rows).to_parquet(folder / "genres.parquet")
        sets.append(f"features.given={folder / 'genres.parquet'}")
    return sets


def measured(run: Run) -> Iterator[tuple[str, list[float]]]:
    table = run.read(METRICS).select("learner", *MAIN).toPandas()
    for learner, own in table.groupby("learner"):
        yield str(learner), [float(np.nanmean(own[name].astype(float))) for name in MAIN]


def measure(spark: SparkSession, case: str, data: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="spark-rank-") as temporary:
        folder = Path(temporary)
        sets = input_of(spark, case, data, folder)
        sets += [f"store={folder / 'store'}", "run_id=inner", f"prepare.train_share={SHARE}",
                 "evaluate.activity=[]", f"train.learners={learners()}"]  # fmt: skip
        rows = sorted(measured(run_of(spark, sets, STAGES)), key=lambda row: row[1][0])
    print(f"\n{case}\n| learner | MSD | M1D | misranking |\n|---|---|---|---|")
    for learner, values in rows:
        print(f"| {learner} | " + " | ".join(f"{value:.4f}" for value in values) + " |", flush=True)


def main() -> None:
    data, cases = Path(sys.argv[1]), sys.argv[2:] or CASES
    settings = {"spark.master": "local[2]", "spark.driver.memory": "3g"}
    with spark_session("default learners", settings) as spark:
        for case in cases:
            measure(spark, case, data)


if __name__ == "__main__":
    main()
