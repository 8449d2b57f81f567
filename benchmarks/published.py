"""RMSE and MAE on MovieLens as it is published, with the published figures and times beside ours.

``python benchmarks/published.py DATA`` looks for ``DATA/ml-100k/u.data`` and
``DATA/ml-1m/ratings_notime.dat.gz`` (or ``ratings.dat``). On 100K it uses the five canonical folds,
on 1M ``--splits`` random splits of 90/10. It runs ``conf/default.yaml``, ``conf/kernel.yaml`` and
``conf/accurate.yaml``, and then the other packages that can be imported; it says which cannot.

Growth, gamma and rbf_weight of ``conf/accurate.yaml`` are not chosen on what is shown: each set
gets the values that the other one has chosen (the file has those of 100K). ``--choose`` prints
them: it holds out 10 % of a set once (of 1M with 30 % of its users), and varies one parameter at a
time around the values of ``conf/kernel.yaml``. The rank of 64 was tried on both sets before, and
the values of the two other configurations were chosen on half splits of both sets.
"""

from __future__ import annotations

import argparse
import importlib
import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from machine import Watch
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_rank.config import load_config
from spark_rank.metrics import mean_absolute_error, root_mean_squared_error
from spark_rank.session.session import spark_session
from spark_rank.stages import pipeline
from spark_rank.stages.runner import run_stage
from spark_rank.store.run import Run
from spark_rank.tables.contracts import BLOCKS

ROOT = Path(__file__).parents[1]
STAGES = ("ingest", "prepare", "features", "train", "evaluate")
SCALE = (1.0, 5.0)
FOLDS, FOLD_LINES = 5, 20_000
# the learners that are shown of each configuration; the time is that of the whole configuration
LABELS = {
    "default": ("mprank_linear",),
    "kernel": ("mprank_linear", "mprank"),
    "accurate": ("mprank",),
}
PARAMS = {"C": 0.91, "ridge": "fixed", "growth": 0.0067, "kernel": "linear+rbf", "gamma": 11.0,
          "rbf_weight": 0.2}  # fmt: skip
GRID = {
    "growth": (0.0, 0.0017, 0.0033, 0.0134),
    "gamma": (5.5, 22.0),
    "rbf_weight": (0.1, 0.4, 0.8),
}
# the share of the users that --choose learns: 1M has as many as needed in less than all
CHOOSING_USERS = {"ml-100k": 1.0, "ml-1m": 0.3}
# what --choose has printed: for each set the values that the other set has chosen
CHOSEN_ELSEWHERE: dict[str, dict[str, float]] = {
    "ml-100k": {"growth": 0.0033, "gamma": 5.5, "rbf_weight": 0.8},
    "ml-1m": {"growth": 0.0033, "gamma": 11.0, "rbf_weight": 0.4},
}
# name, RMSE, and what their authors say of the time; as published
PUBLISHED = {
    "ml-100k": [
        ("GC-MC with features, u1", ".905", ""),
        ("GLocal-K, u1", ".8889", ""),
        ("myFM, without dates", ".8894", ""),
        ("myFM, Bayesian SVD++ flipped, probit, dates, user and item info", ".8808", ""),
    ],
    "ml-1m": [
        ("BiasedMF", ".845", ""),
        ("LLORMA", ".833", ""),
        ("GC-MC", ".832", ""),
        ("I-AutoRec", ".831", ""),
        ("CF-NADE", ".829 to .835", ""),
        ("SparseFC", ".823", ""),
        ("GLocal-K, at its best epoch on the test part", ".8227", ""),
        ("myFM, probit flipped, without dates", ".8191", "508 s"),
        ("myFM, the same with dates", ".8140", "20 min"),
    ],
}


@dataclass(frozen=True)
class Split:
    """One split of a data set: its name, and the settings that make it."""

    name: str
    sets: tuple[str, ...]


@dataclass(frozen=True)
class Result:
    """The errors over all held-out ratings; seconds in all and of learning alone, CPU seconds."""

    rmse: float
    mae: float
    seconds: float
    learning: float
    cpu: float


def canonical_folds(data: Path, folder: Path) -> list[Split]:
    """Write the folds u1 to u5 of MovieLens-100K: u_k.test is the k-th fifth of the lines."""
    lines = (data / "ml-100k/u.data").read_text().splitlines(keepends=True)
    splits = []
    for number in range(FOLDS):
        first = FOLD_LINES * number
        parts = {"test": lines[first : first + FOLD_LINES],
                 "base": lines[:first] + lines[first + FOLD_LINES :]}  # fmt: skip
        for name, own in parts.items():
            (folder / f"u{number + 1}.{name}").write_text("".join(own))
        splits.append(
            Split(
                f"u{number + 1}",
                (
                    f"input.path={folder / f'u{number + 1}.base'}",
                    f"input.test_path={folder / f'u{number + 1}.test'}",
                    "input.format=movielens-100k",
                    "prepare.split=given",
                ),
            )
        )
    return splits


def random_splits(data: Path, count: int) -> list[Split]:
    """Return random splits of MovieLens-1M, 90 % of all ratings to learn from."""
    path = next(data.glob("ml-1m/ratings*.dat*"))
    return [
        Split(f"split {seed}", (
            f"input.path={path}", "input.format=movielens-dat", "prepare.split=global",
            "prepare.train_share=0.9", f"seed={seed}",
        ))
        for seed in range(1, count + 1)
    ]  # fmt: skip


def run_id(name: str, split: Split) -> str:
    return f"{name}-{split.name.replace(' ', '-')}"


def run_config(
    spark: SparkSession, store: str, name: str, split: Split, *more: str
) -> tuple[dict[str, float], dict[str, Any]]:
    """Run a configuration up to `evaluate`; return seconds by stage, and the errors."""
    sets = [f"store={store}", f"run_id={run_id(name, split)}", *split.sets, *more]
    config = load_config(str(ROOT / f"conf/{name}.yaml"), sets)
    run = Run(spark, config.store, config.run_id)
    seconds = {
        stage.name: run_stage(stage, config, spark, run)["seconds"]
        for stage in pipeline(config)
        if stage.name in STAGES
    }
    record = run.record("evaluate")
    assert record is not None
    return seconds, record["facts"]["pooled"]


def ours(spark: SparkSession, store: str, name: str, split: Split, *more: str) -> dict[str, Result]:
    """Return the result of every learner that is shown of a configuration."""
    with Watch() as watch:
        seconds, pooled = run_config(spark, store, name, split, *more)
    learning = seconds["features"] + seconds["train"]
    return {
        f"conf/{name}.yaml, {label}": Result(
            pooled[label]["rmse"],
            pooled[label]["mae"],
            watch.seconds,
            learning,
            watch.cpu_seconds,
        )
        for label in LABELS[name]
    }


def learner(**changed: float) -> str:
    """Return the setting of the kernel learner with some other values."""
    values = {**PARAMS, **changed}
    entry = {"name": "mprank", "learner": "mprank", "params": values}
    return f"train.learners={json.dumps([entry])}"


def choose(spark: SparkSession, store: str, data_set: str, data: Path) -> None:
    """Print the RMSE of every value of the grid on a tenth of a data set, and the best values."""
    files = {"ml-100k": data / "ml-100k/u.data", "ml-1m": next(data.glob("ml-1m/ratings*.dat*"))}
    split = Split(f"choose-{data_set}", (
        f"input.path={files[data_set]}", "prepare.split=global", "prepare.train_share=0.9",
        f"prepare.user_share={CHOOSING_USERS[data_set]}", "seed=1000",
    ))  # fmt: skip
    points = [{}, *({name: value} for name, values in GRID.items() for value in values)]
    entries = [
        {"name": f"p{place}", "learner": "mprank", "params": {**PARAMS, **point}}
        for place, point in enumerate(points)
    ]
    _, pooled = run_config(spark, store, "accurate", split, f"train.learners={json.dumps(entries)}")
    errors = [pooled[entry["name"]]["rmse"] for entry in entries]
    best = {}
    for name, values in GRID.items():
        tried = {PARAMS[name]: errors[0]}
        tried |= {value: errors[points.index({name: value})] for value in values}
        best[name] = min(tried, key=tried.__getitem__)
        shown = ", ".join(f"{value:g}: {tried[value]:.4f}" for value in sorted(tried))
        print(f"  {data_set}, {name}: {shown}", flush=True)
    print(f"  {data_set} chooses {best}", flush=True)


Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]
Peer = Callable[[Arrays, Arrays], np.ndarray]


def rated(run: Run, *, held_out: bool) -> Arrays:
    """Return users, items and ratings of one part of the blocks."""
    first, size = F.lit(1), F.col("n_train")
    if held_out:
        first, size = F.col("n_train") + 1, F.size("items") - F.col("n_train")
    lists = [F.slice(name, first, size).alias(name) for name in ("items", "ratings")]
    entries = run.read(BLOCKS).select("user", F.inline(F.arrays_zip(*lists)))
    table = entries.toArrow()
    return tuple(table.column(name).to_numpy() for name in ("user", "items", "ratings"))


def surprise_peer(name: str, options: dict[str, Any]) -> Peer:
    """Return an algorithm of scikit-surprise with its own default parameters but for `options`."""
    surprise = importlib.import_module("surprise")

    def predict(train: Arrays, test: Arrays) -> np.ndarray:
        import pandas as pd

        frame = pd.DataFrame(dict(zip(("user", "item", "rating"), train, strict=True)))
        reader = surprise.Reader(rating_scale=SCALE)
        fitted = getattr(surprise, name)(**options)
        fitted.fit(surprise.Dataset.load_from_df(frame, reader).build_full_trainset())
        return np.array([fitted.predict(u, i).est for u, i in zip(*test[:2], strict=True)])

    return predict


def myfm_peer() -> Peer:
    """Return myFM's Gibbs sampler: users, items, what the user rated, and who rated the item."""
    myfm = importlib.import_module("myfm")
    from scipy import sparse

    def design(train: Arrays, rows: Arrays) -> Any:
        shape = tuple(int(max(train[k].max(), rows[k].max())) + 1 for k in (0, 1))
        rated_by = sparse.csr_matrix((np.ones(len(train[0])), (train[0], train[1])), shape)
        of_user, of_item = rated_by, rated_by.T.tocsr()
        parts = []
        for index, seen in ((rows[0], of_user), (rows[1], of_item)):
            size = np.maximum(np.asarray(seen.sum(axis=1)).ravel(), 1.0)
            scaled = sparse.diags(1.0 / np.sqrt(size)) @ seen
            parts += [sparse.identity(seen.shape[0], format="csr")[index], scaled[index]]
        return sparse.hstack(parts, format="csr")

    def predict(train: Arrays, test: Arrays) -> np.ndarray:
        model = myfm.MyFMRegressor(rank=10, random_seed=0)
        model.fit(design(train, train), train[2], n_iter=512, n_kept_samples=512)
        return np.asarray(model.predict(design(train, test)))

    return predict


PEERS: dict[str, Callable[[], Peer]] = {
    "scikit-surprise, SVD++": lambda: surprise_peer("SVDpp", {"random_state": 0}),
    "scikit-surprise, kNN (items, Pearson baseline)": lambda: surprise_peer(
        "KNNBaseline",
        {"sim_options": {"name": "pearson_baseline", "user_based": False}, "verbose": False},
    ),
    "myFM, 512 Gibbs samples, rank 10": myfm_peer,
}


def peers() -> Iterator[tuple[str, Peer]]:
    """Yield the other packages that are installed; say which are not."""
    for name, load in PEERS.items():
        try:
            yield name, load()
        except ImportError as error:
            print(f"  {name}: skipped, {error}", flush=True)


def measured(peer: Peer, run: Run) -> Result:
    train, test = rated(run, held_out=False), rated(run, held_out=True)
    with Watch() as watch:
        scores = peer(train, test)
    errors = (measure(scores, test[2], SCALE)
              for measure in (root_mean_squared_error, mean_absolute_error))  # fmt: skip
    rmse, mae = (float(error) for error in errors if error is not None)
    return Result(rmse, mae, watch.seconds, watch.seconds, watch.cpu_seconds)


def show(data_set: str, splits: list[Split], results: dict[str, list[Result]]) -> None:
    """Print the table in Markdown: means over the splits, and the median time of a split."""
    names = ", ".join(split.name for split in splits)
    print(f"\n## {data_set}: {names}\n")
    print("| | RMSE | sd over splits | MAE | s, median | s of learning | CPU s | RMSE of each |")
    print("|---|---|---|---|---|---|---|---|")
    for name, own in results.items():
        rmse, mae = ([getattr(each, key) for each in own] for key in ("rmse", "mae"))
        times = [
            np.median([getattr(each, key) for each in own])
            for key in ("seconds", "learning", "cpu")
        ]
        spread = f"{np.std(rmse, ddof=1):.4f}" if len(rmse) > 1 else ""
        each = ", ".join(f"{value:.4f}" for value in rmse)
        print(f"| {name} | {np.mean(rmse):.4f} | {spread} | {np.mean(mae):.4f} | {times[0]:.0f} | "
              f"{times[1]:.0f} | {times[2]:.0f} | {each} |")  # fmt: skip
    for name, rmse, seconds in PUBLISHED[data_set]:
        print(f"| published: {name} | {rmse} | | | {seconds} | | | |")


def tell(data_set: str, split: Split, name: str, result: Result) -> None:
    print(
        f"  {data_set} {split.name}, {name}: RMSE {result.rmse:.4f}, MAE {result.mae:.4f}, "
        f"{result.seconds:.1f} s, {result.learning:.1f} s of learning, {result.cpu:.0f} CPU s",
        flush=True,
    )


def compare(
    spark: SparkSession,
    store: str,
    data_set: str,
    splits: list[Split],
    configs: list[str],
    others: dict[str, Peer],
) -> None:
    results: dict[str, list[Result]] = {}
    for split in splits:
        for config in configs:
            more = [learner(**CHOSEN_ELSEWHERE[data_set])] if config == "accurate" else []
            for name, result in ours(spark, store, config, split, *more).items():
                results.setdefault(name, []).append(result)
                tell(data_set, split, name, result)
        run = Run(spark, store, run_id(configs[0], split))
        for name, peer in others.items():
            result = measured(peer, run)
            results.setdefault(name, []).append(result)
            tell(data_set, split, name, result)
    show(data_set, splits, results)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--only", choices=PUBLISHED, help="one data set alone")
    parser.add_argument("--splits", type=int, default=10, help="of MovieLens-1M")
    parser.add_argument("--configs", choices=LABELS, nargs="+", default=list(LABELS))
    parser.add_argument("--choose", action="store_true", help="print the best parameters instead")
    parser.add_argument("--no-peers", action="store_true", help="leave the other packages out")
    options = parser.parse_args()
    chosen = [options.only] if options.only else list(PUBLISHED)
    settings = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "4",
                "spark.driver.memory": "3g"}  # fmt: skip
    with (
        tempfile.TemporaryDirectory(prefix="spark-rank-") as folder,
        spark_session("published", settings) as spark,
    ):
        for data_set in chosen:
            if options.choose:
                choose(spark, folder, data_set, options.data)
                continue
            splits = (canonical_folds(options.data, Path(folder)) if data_set == "ml-100k"
                      else random_splits(options.data, options.splits))  # fmt: skip
            others = {} if options.no_peers else dict(peers())
            compare(spark, folder, data_set, splits, options.configs, others)


if __name__ == "__main__":
    main()
