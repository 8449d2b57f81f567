"""Runs of several folds together: the same statistics as SciPy's, and only of one configuration."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from pyspark.sql import SparkSession
from scipy import stats

from spark_rank.config import Config
from spark_rank.errors import ConfigError
from spark_rank.runs.folds import over_folds, paired_t_test
from spark_rank.store.run import Run
from spark_rank.tables.contracts import METRICS

RNG = np.random.default_rng(4)
RMSE = {name: 0.9 + 0.02 * RNG.random(5) for name in ("a", "b")}


def stage(settings: dict[str, Any], facts: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"seed": 0, "settings": settings, "versions": {}, "tables": {}, "facts": facts or {}}


def fold(number: int, **prepare: Any) -> dict[str, Any]:
    of_learners = {name: {"rmse": values[number]} for name, values in RMSE.items()}
    means = {name: {"misranking": 0.3, "auc": 0.5 + values[number] / 9}
             for name, values in RMSE.items()}  # fmt: skip
    counts = {name: dict.fromkeys(means[name], 100) for name in means}
    facts = {"means": means, "users": counts, "pooled": of_learners, "relevant_from": 4.0,
             "status": {name: {"learned": 100} for name in means}}  # fmt: skip
    settings = {"split": "k_fold", "fold": number + 1, "folds": 5, **prepare}
    return {"ingest": stage({"path": "r.csv"}), "prepare": stage(settings),
            "train": stage({"learners": ["a", "b"]}), "evaluate": stage({}, facts)}  # fmt: skip


FOLDS = {f"fold{number}": fold(number) for number in range(5)}


def one(rows: list[dict[str, Any]], **keys: str) -> dict[str, Any]:
    (row,) = [row for row in rows if all(row[key] == value for key, value in keys.items())]
    return row


def test_means_and_pairs_are_those_of_scipy() -> None:
    found = over_folds(FOLDS, 0.9)
    row = one(found["means"], metric="rmse over all ratings", learner="b")
    assert row["folds"] == RMSE["b"].tolist()
    assert_allclose((row["mean"], row["sd"]), (RMSE["b"].mean(), RMSE["b"].std(ddof=1)))
    interval = stats.ttest_1samp(RMSE["b"], 0.0).confidence_interval(0.9)
    assert_allclose(row["ci"], interval, rtol=1e-10)
    pair = one(found["pairs"], metric="rmse over all ratings", learner="a", rival="b")
    test = stats.ttest_rel(RMSE["a"], RMSE["b"])
    assert_allclose(pair["t_p"], test.pvalue, rtol=1e-10)
    assert_allclose(pair["ci"], test.confidence_interval(0.9), rtol=1e-9)
    assert_allclose(pair["difference"], (RMSE["a"] - RMSE["b"]).mean())
    assert_allclose(pair["wilcoxon_p"], stats.wilcoxon(RMSE["a"], RMSE["b"]).pvalue)
    assert pair["wins"] == (RMSE["a"] < RMSE["b"]).sum()
    # of the AUC more is better
    assert one(found["pairs"], metric="auc")["losses"] == pair["wins"]


def test_equal_differences_have_no_t_test() -> None:
    assert paired_t_test(np.full(4, 0.25)) is None


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ({"one": fold(0)}, "name two runs or more"),
        ({"one": fold(0), "two": {**fold(1), "evaluate": None}}, "'two' has not finished"),
        ({"one": fold(0), "two": fold(0)}, "'one' and 'two' hold out the same ratings"),
        ({"one": fold(0), "two": fold(1, user_share=0.5)}, "differ in prepare: user_share"),
    ],
)
def test_what_are_no_folds_is_refused(records: dict[str, Any], words: str) -> None:
    given = {name: {key: own for key, own in stages.items() if own is not None}
             for name, stages in records.items()}  # fmt: skip
    with pytest.raises(ConfigError, match=words):
        over_folds(given)


@pytest.mark.slow
def test_global_folds_are_compared_as_typed(
    spark: SparkSession,
    make_config: Callable[..., Config],
    run_pipeline: Callable[..., Run],
    asking: Callable[[str], Callable[..., tuple[int, str, str]]],
) -> None:
    config = make_config()
    sizes = []
    for number in (1, 2):
        sets = [f"store={config.store}", f"run_id=fold{number}", "prepare.split=global_k_fold",
                "prepare.folds=2", f"prepare.fold={number}"]  # fmt: skip
        run = run_pipeline(make_config(*sets), without=("refit", "recommend"))
        sizes.append(run.record("prepare")["facts"])  # type: ignore[index]
        written = run.read(METRICS).toArrow().to_pylist()
        squares = [row["n_test"] * row["rmse"] ** 2 for row in written
                   if row["learner"] == "constant" and row["rmse"] is not None]  # fmt: skip
        rated = [row["n_test"] for row in written
                 if row["learner"] == "constant" and row["rmse"] is not None]  # fmt: skip
        pooled = run.record("evaluate")["facts"]["pooled"]  # type: ignore[index]
        assert_allclose(pooled["constant"]["rmse"], np.sqrt(sum(squares) / sum(rated)))
    # what one fold holds out the other learns from
    assert sizes[0]["test_ratings"] == sizes[1]["train_ratings"]
    code, out, _ = asking("folds")("fold1", "fold2", "--set", f"store={config.store}")
    assert code == 0
    assert out.startswith("rmse over all ratings  mean of 2 folds")
    code, out, _ = asking("folds")(
        "fold1", "fold2", "--format", "json", "--set", f"store={config.store}"
    )
    row = one(json.loads(out)["means"], metric="rmse over all ratings", learner="constant")
    assert len(row["folds"]) == 2
