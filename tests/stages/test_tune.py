"""Tuning chooses what is best for ratings that no feature has seen, not what looks best."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from pyspark.sql import SparkSession

from spark_rank.config import Config, load_config
from spark_rank.features.files import open_distributed
from spark_rank.stages import STAGES, tune
from spark_rank.stages.feature_tables import distribute_files
from spark_rank.stages.runner import run_stages
from spark_rank.stages.unseen_features import unseen_features
from spark_rank.store.run import Run
from spark_rank.tables.contracts import BLOCKS, ITEMS, METRICS
from spark_rank.users.batches import ragged

GRID = (0.1, 1, 10, 100)
SELECTIONS = ("sample", "leave_pair_out", "k_fold")
BEFORE = ("ingest", "prepare", "features")
STEPS = (*BEFORE, "tune", "train", "evaluate")


def settings(path: Path, kind: str, rank: int, params: dict[str, Any], learner: str) -> str:
    """Return a configuration with every point of a grid, and the grid by every selection."""
    points = [{"name": f"C {C}", "learner": learner, "params": {**params, "C": C}} for C in GRID]
    selections = [name for name in SELECTIONS if learner == "mprank" or name != "leave_pair_out"]
    grids = [{"name": name, "learner": learner, "params": params, "grid": {"C": list(GRID)},
              "selection": name} for name in selections]  # fmt: skip
    narrow = {"name": "narrow", "learner": learner, "params": params, "grid": {"C": [10, 100]}}
    return json.dumps({
        "input": {"path": str(path), "format": kind},
        "prepare": {"buckets": 4},
        "features": {"kind": "factors", "rank": rank},
        "train": {"learners": [*points, *grids, narrow], "baselines": False},
    })  # fmt: skip


def make_run(spark: SparkSession, folder: Path, text: str, stages: tuple[str, ...], *sets: str
) -> tuple[Config, Run]:  # fmt: skip
    path = folder / "settings.yaml"
    path.write_text(text)
    config = load_config(path, [f"store={folder / 'store'}", *sets])
    run = Run(spark, config.store, config.run_id)
    run_stages([STAGES[name] for name in stages], config, spark, run)
    return config, run


def means(run: Run) -> dict[str, float]:
    found = (run.record("evaluate") or {})["facts"]["means"]
    return {learner: values["msd"] for learner, values in found.items()}


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return ratings that 16 factors of 60 items fit far better than they predict."""
    rng = np.random.default_rng(0)
    users, items = rng.normal(size=(80, 4)), rng.normal(size=(60, 4)) / 2.0
    lines = []
    for user in range(len(users)):
        for item in rng.choice(60, 40, replace=False):
            score = 3.0 + items[item] @ users[user] + rng.normal()
            lines.append(f"u{user},i{item},{np.round(2.0 * score) / 2.0}")
    path = tmp_path_factory.mktemp("crowded") / "ratings.csv"
    path.write_text("\n".join(["user,item,rating", *lines]) + "\n")
    return path


PARAMS = {"ridge": "fixed"}


@pytest.fixture(scope="module")
def tuned(spark: SparkSession, crowded: Path) -> tuple[Config, Run]:
    return make_run(spark, crowded.parent, settings(crowded, "csv", 16, PARAMS, "mprank"), STEPS)


def test_no_selection_is_fooled_by_features_that_have_seen_the_ratings(
    tuned: tuple[Config, Run],
) -> None:
    found = means(tuned[1])
    points = [found[f"C {C}"] for C in GRID]
    # a wrong choice costs far more than is allowed
    assert sorted(points)[1] > 1.01 * min(points)
    for selection in SELECTIONS:
        assert found[selection] <= 1.002 * min(points), selection


def test_the_errors_of_a_tuning_are_those_of_held_out_ratings(tuned: tuple[Config, Run]) -> None:
    _, run = tuned
    facts = (run.record("evaluate") or {})["facts"]["tuned"]
    assert facts.keys() == {*SELECTIONS, "narrow"}
    chosen = (run.record("tune") or {})["facts"]["chosen"]["sample"]["C"]
    found = run.read(METRICS).where(f"learner = 'C {chosen}'").toArrow()
    msd, n_test = (found[name].to_numpy() for name in ("msd", "n_test"))
    held_out = np.mean(msd * n_test / (n_test - 1))
    assert facts["sample"]["held_out"] == pytest.approx(held_out, rel=1e-12)
    # a few per cent between them, not the half that features which have seen the ratings gain
    assert facts["sample"]["tuning"] == pytest.approx(held_out, rel=0.1)
    assert facts["sample"]["measure"] == "msd"


def test_the_edge_of_a_grid_is_told(tuned: tuple[Config, Run]) -> None:
    facts = (tuned[1].record("tune") or {})["facts"]
    assert facts["edges"] == [
        "narrow: the chosen C 10 is the smallest of its grid, a better value may lie beyond it: "
        "add smaller values to the learner's grid.C"
    ]


def test_partitions_and_the_order_of_the_ratings_decide_nothing(
    spark: SparkSession, crowded: Path, tmp_path: Path, tuned: tuple[Config, Run],
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    head, *lines = crowded.read_text().splitlines()
    shuffled = tmp_path / "ratings.csv"
    shuffled.write_text("\n".join([head, *sorted(lines, key=hash)]) + "\n")
    text = settings(shuffled, "csv", 16, PARAMS, "mprank").replace('"buckets": 4', '"buckets": 3')
    _, other = make_run(spark, tmp_path, text, (*BEFORE, "tune"))
    records = [run.record("tune") or {} for run in (other, tuned[1])]
    assert records[0]["facts"] == records[1]["facts"]
    tables = [f"'{run.path('tuning').removeprefix('file:')}/*.parquet'" for run in
              (other, tuned[1])]  # fmt: skip
    rows = [duckdb.sql(f"select * from {table} order by all").fetchall() for table in tables]
    assert rows[0] == rows[1]
    assert "[tune: warning] narrow: the chosen C 10 is the smallest" in capsys.readouterr().err


@pytest.mark.slow
def test_kept_factors_keep_the_choice_that_was_made_with_them(
    spark: SparkSession, crowded: Path, tuned: tuple[Config, Run]
) -> None:
    text = settings(crowded, "csv", 16, PARAMS, "mprank")
    sets = ("run_id=kept", f"features.kept_from={tuned[0].run_id}")
    config, run = make_run(spark, crowded.parent, text, (*BEFORE, "tune"), *sets)
    records = [one.record("tune") or {} for one in (run, tuned[1])]
    assert records[0]["facts"] == records[1]["facts"]
    assert records[0]["message"].startswith(f"kept from {tuned[0].run_id}: ")
    assert tune.decided_specs(config, run) == tune.decided_specs(*tuned)
    # another grid is another choice, with factors learned for it
    other = text.replace('"grid": {"C": [10, 100]}', '"grid": {"C": [5, 50]}')
    _, anew = make_run(spark, crowded.parent, other, (*BEFORE, "tune"), "run_id=anew", *sets[1:])
    assert not (anew.record("tune") or {})["message"].startswith("kept")


@pytest.mark.parametrize("kind", ["offset", pytest.param("panel", marks=pytest.mark.slow)])
def test_item_offsets_do_not_see_what_is_held_back(
    spark: SparkSession, crowded: Path, tmp_path: Path, kind: str
) -> None:
    grid = "train.learners=[{learner: prank, grid: {epochs: [1, 2]}}]"
    kinds = {"input": {"path": str(crowded), "format": "csv"}, "prepare": {"buckets": 4}}
    config, run = make_run(
        spark, tmp_path, json.dumps(kinds), BEFORE, f"features={{kind: {kind}}}", grid
    )
    files = distribute_files(spark, run)
    blocks = run.read(BLOCKS)
    # without the first user's ratings, as if they were held back
    others = blocks.where("user != 0")
    made = open_distributed(
        unseen_features(config.features, others, run.read(ITEMS), files, config.seed, None)
    )
    table = others.select("items", "ratings", "n_train").toArrow()
    total, count = np.zeros(60), np.zeros(60)
    (items, ends), (ratings, _) = (ragged(table[name].combine_chunks())
                                   for name in ("items", "ratings"))  # fmt: skip
    for (first, _), n in zip(itertools.pairwise(ends), table["n_train"].to_pylist(), strict=True):
        own = slice(first, first + n)
        np.add.at(total, items[own], ratings[own] - ratings[own].astype(float).mean())
        np.add.at(count, items[own], 1)
    np.testing.assert_allclose(made.offset, total / (count + 10.0), atol=1e-6)
    assert np.array_equal(made.matrix, open_distributed(files).matrix)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("learner", "params"),
    [("mprank", {"ridge": "fixed", "growth": 0.0067}), ("svrank", {"epsilon": 0.5})],
)
def test_on_real_ratings_no_selection_is_worse_than_the_best_point(
    spark: SparkSession, data_file: Callable[[str], Path], tmp_path: Path, learner: str,
    params: dict[str, Any],
) -> None:  # fmt: skip
    text = settings(data_file("ml-100k/u.data"), "movielens-100k", 32, params, learner)
    _, run = make_run(spark, tmp_path, text, STEPS)
    found = means(run)
    least = min(found[f"C {C}"] for C in GRID)
    for selection in SELECTIONS:
        assert found.get(selection, 0.0) <= 1.002 * least, (selection, found)
