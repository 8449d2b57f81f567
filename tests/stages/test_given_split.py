"""Given splits: what the input holds out is held out, and the unknown is scored by expectation."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose
from pyspark.sql import SparkSession

from spark_rank.config import Config, load_config
from spark_rank.errors import ConfigError, InputDataError
from spark_rank.stages import STAGES
from spark_rank.stages.runner import run_stages
from spark_rank.store.run import Run
from spark_rank.tables.contracts import (
    BLOCKS,
    ITEM_FEATURES,
    ITEMS,
    METRICS,
    PREDICTIONS,
    QUARANTINE,
    SUMMARY,
)

MakeConfig = Callable[..., Config]
Row = tuple[str, str, float]

RNG = np.random.default_rng(8)
PAIRS = [(f"u{user}", f"i{item}") for user in range(24) for item in range(30)
         if RNG.random() < 0.4]  # fmt: skip
RATED: list[Row] = [(user, item, float(RNG.integers(1, 6))) for user, item in PAIRS]
PARTS: dict[str, list[Row]] = {"train": RATED[::2], "validation": RATED[1::4], "test": RATED[3::4]}
# users and an item that only the test part has
PARTS["test"] = [*PARTS["test"], ("new1", "i1", 5.0), ("new1", "fresh", 1.0), ("new2", "i2", 4.0),
                 ("u3", "fresh", 2.0)]  # fmt: skip
# one pair in two parts: the later part counts
TWICE: Row = (*PARTS["test"][0][:2], 6.0 - PARTS["test"][0][2])
FEATURES = ("features.kind=factors", "features.rank=3", "features.rounds=2")


def write(path: Path, rows: list[Row], part: str | None = None) -> Path:
    more = "" if part is None else f",{part}"
    head = "user,item,rating" + ("" if part is None else ",which")
    path.write_text("\n".join([head, *(f"{u},{i},{r:g}{more}" for u, i, r in rows)]) + "\n")
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("given")
    rows = {**PARTS, "train": [*PARTS["train"], TWICE]}
    named = {name: write(folder / f"{name}.csv", rows[name]) for name in PARTS}
    return [f"input.path={named['train']}", f"input.test_path={named['test']}",
            f"input.validation_path={named['validation']}", "prepare.split=given"]  # fmt: skip


@pytest.fixture(scope="module")
def made(spark: SparkSession, make_config: MakeConfig) -> Callable[..., Run]:
    def make(*sets: str, last: str = "prepare") -> Run:
        config = make_config(*sets)
        run = Run(spark, config.store, config.run_id)
        names = ("ingest", "prepare", "features", "train", "evaluate", "predictions")
        stages = [STAGES[name] for name in names[: names.index(last) + 1]]
        run_stages(stages, config, spark, run)
        return run

    return make


def parts_of(run: Run) -> tuple[set[Row], set[Row]]:
    names = {row["item"]: row["item_id"] for row in run.read(ITEMS).collect()}
    train, held_out = set(), set()
    for row in run.read(BLOCKS).collect():
        rated = [(row["user_id"], names[item], rating)
                 for item, rating in zip(row["items"], row["ratings"], strict=True)]  # fmt: skip
        train.update(rated[: row["n_train"]])
        held_out.update(rated[row["n_train"] :])
    return train, held_out


def facts(run: Run, stage: str) -> dict[str, Any]:
    record = run.record(stage)
    assert record is not None
    found: dict[str, Any] = record["facts"]
    return found


@pytest.fixture(scope="module")
def evaluated(made: Callable[..., Run], files: list[str]) -> Run:
    return made(*files, *FEATURES, "prepare.test=random", last="predictions")


def test_what_is_given_is_held_out(evaluated: Run) -> None:
    assert parts_of(evaluated) == (set(PARTS["train"]), set(PARTS["test"]))
    record = evaluated.record("prepare")
    assert record is not None
    assert facts(evaluated, "prepare")["users_without_training"] == 2
    assert facts(evaluated, "prepare")["items_without_training"] == 1
    assert "2 users and 1 item without training ratings are scored by what" in record["message"]
    counts = {name: len(rows) for name, rows in PARTS.items()}
    assert facts(evaluated, "ingest")["parts"] == counts


def test_a_pair_in_two_parts_counts_in_the_later_one(evaluated: Run) -> None:
    (row,) = evaluated.read(QUARANTINE).collect()
    assert row["source"].endswith("train.csv")
    assert (row["line"], row["reason"]) == (len(PARTS["train"]) + 2, "duplicate")


def test_the_unknown_is_scored_by_what_is_expected(evaluated: Run) -> None:
    items = {row["item_id"]: row for row in evaluated.read(ITEM_FEATURES).collect()}
    train = PARTS["train"]
    mean = np.mean([rating for *_, rating in train])
    over_offset = np.mean([rating - items[item]["offset"] for _, item, rating in train])
    scores = {(row["learner"], row["user_id"], row["item_id"]): row["score"]
              for row in evaluated.read(PREDICTIONS).collect()}  # fmt: skip
    assert_allclose(scores["constant", "new1", "i1"], mean, rtol=1e-6)
    assert items["fresh"]["offset"] == 0.0
    assert_allclose(scores["item_offset", "new1", "fresh"], over_offset, rtol=1e-6)
    expected = over_offset + items["i2"]["offset"]
    assert_allclose(scores["item_offset", "new2", "i2"], expected, rtol=1e-6)
    for row in evaluated.read(METRICS).where("n_train = 0").collect():
        assert (row["status"], row["reason"]) == ("fallback", "no_ratings")
        assert np.isfinite(row["rmse"])


def test_errors_are_those_of_the_predictions(evaluated: Run) -> None:
    pairs: dict[str, list[tuple[float, float]]] = {}
    for row in evaluated.read(PREDICTIONS).collect():
        pairs.setdefault(row["learner"], []).append((row["predicted_rating"], row["rating"]))
    summary = evaluated.read(SUMMARY).where("user_group = 'all'").collect()
    assert {row["test"] for row in summary} == {"random"}
    found = {(row["learner"], row["metric"]): row for row in summary}
    for learner, own in pairs.items():
        predicted, rating = np.array(own).T
        # the scale is that of the ratings, 1 to 5
        errors = np.clip(predicted, 1.0, 5.0) - rating
        rmse, mae = found[learner, "rmse"], found[learner, "mae"]
        assert rmse["ratings"] == len(PARTS["test"])
        assert_allclose(rmse["pooled"], np.sqrt(np.mean(errors**2)), rtol=1e-9)
        assert_allclose(mae["pooled"], np.mean(np.abs(errors)), rtol=1e-9)
        assert facts(evaluated, "evaluate")["pooled"][learner]["rmse"] == rmse["pooled"]


def test_a_column_may_say_which_part(
    made: Callable[..., Run], tmp_path: Path, evaluated: Run
) -> None:
    words = {"train": "Training", "validation": "val", "test": "test"}
    for name, rows in PARTS.items():
        write(tmp_path / f"{name}.csv", rows, words[name])
    (tmp_path / "odd.csv").write_text("user,item,rating,which\nu1,i1,3,elsewhere\n")
    run = made(f"input.path={tmp_path}", "input.columns={part: which}", "prepare.split=given")
    assert parts_of(run) == (set(PARTS["train"]), set(PARTS["test"]))
    assert [row["reason"] for row in run.read(QUARANTINE).collect()] == ["unknown_part"]
    # the same ratings in the same order as from files
    columns = ["user_id", "items", "ratings", "n_train"]
    ours, theirs = (r.read(BLOCKS).orderBy("user_id").select(*columns).collect()
                    for r in (run, evaluated))  # fmt: skip
    assert ours == theirs


def test_parts_are_chosen_by_name(made: Callable[..., Run], files: list[str]) -> None:
    run = made(*files, "prepare.held_out_part=validation")
    assert parts_of(run) == (set(PARTS["train"]), set(PARTS["validation"]))
    both = made(*files, "prepare.train_parts=[train, validation]")
    assert parts_of(both) == ({*PARTS["train"], *PARTS["validation"]}, set(PARTS["test"]))


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        (["prepare.split=given"], "needs the parts"),
        (["input.test_path=t.csv"], "needs input.path"),
        (["input.path=a.csv", "input.test_path=t.csv"], "set prepare.split=given"),
        (["prepare.train_parts=[test]"], "cannot be learned from"),
        (["input.path=a.csv", "input.test_path=t.csv", "prepare.split=given",
          "input.columns={part: p}"], "leave one of the two out"),
    ],
)  # fmt: skip
def test_settings_that_do_not_fit_are_one_line(sets: list[str], words: str) -> None:
    def check() -> None:
        config = load_config(None, sets)
        for name in ("ingest", "prepare"):
            STAGES[name].validate(config)

    with pytest.raises(ConfigError, match=words):
        check()


def test_a_part_without_ratings_is_named(made: Callable[..., Run], files: list[str]) -> None:
    without = [key for key in files if not key.startswith("input.validation_path")]
    with pytest.raises(InputDataError, match="no rating of the part 'validation'"):
        made(*without, "prepare.held_out_part=validation")
    same = files[0].partition("=")[2]
    with pytest.raises(ConfigError, match="is in the part 'train' too"):
        made(files[0], f"input.test_path={same}", "prepare.split=given", last="ingest")


@pytest.mark.slow
def test_a_given_split_as_typed(files: list[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "spark_rank", "pipeline", "--set", *files, *FEATURES,
               f"store={tmp_path / 'store'}", "run_id=given", "evaluate.candidates=all",
               "--spark",
               "spark.master=local[2]"]  # fmt: skip
    made = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert made.returncode == 0, made.stderr
    assert "2 users and 1 item without training ratings" in made.stderr + made.stdout
    run = tmp_path / "store/runs/run_id=given"
    rows = pq.read_table(run / "metrics", columns=["user_id", "reason", "rmse"]).to_pylist()
    assert all(row["reason"] == "no_ratings" for row in rows if row["user_id"] == "new1")
    assert "RMSE, all ratings" in (run / "report/report.html").read_text()
