"""Distributions and comparisons in Spark against the same statistics on plain arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose
from pyspark.sql import SparkSession
from scipy import stats

from spark_rank.errors import ContractError
from spark_rank.frames.distributions import Statistics, distributions
from spark_rank.metrics import holm
from spark_rank.tables.contract import arrow_schema
from spark_rank.tables.contracts import METRICS

RNG = np.random.default_rng(0)
USERS = 120
VALUES = {name: RNG.gamma(2.0, 1.0, USERS) for name in ("a", "b", "c")}
SMALL = np.arange(USERS) % 3 == 0
SCHEMA = arrow_schema(METRICS.columns)
STATISTICS = Statistics(("cold", "3+"), 0.9, 5, {"stability": 2.0, "margin": 1.0})


def metric_row(user: int, learner: str) -> dict[str, Any]:
    value = float(VALUES[learner][user])
    row = {column.name: None for column in METRICS.columns}
    return row | {
        "user_id": f"u{user}",
        "learner": learner,
        "status": "learned",
        "user_group": "cold" if SMALL[user] else "3+",
        "msd": value,
        # undefined for two of three users
        "misranking": value / 100 if SMALL[user] else None,
        "auc": value,
        "n_test": 1 + user % 7,
        "rmse": None if user % 5 == 0 else value,
        "mae": value,
        "train_msd": 0.5,
        "stability_bound": 2.5 if user % 2 else 1.5,
    }


def run(spark: SparkSession, parts: int, rows: list[dict[str, Any]]) -> dict[str, pa.Table]:
    metrics = spark.createDataFrame(pa.Table.from_pylist(rows, SCHEMA)).repartition(parts)
    return distributions(metrics, STATISTICS, 4)


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> dict[str, pa.Table]:
    return run(spark, 3, [metric_row(u, n) for u in range(USERS) for n in VALUES])


def one(table: pa.Table, **keys: str) -> dict[str, Any]:
    (row,) = [r for r in table.to_pylist() if all(r[k] == v for k, v in keys.items())]
    return dict(row)


def test_summary_against_numpy_and_scipy(tables: dict[str, pa.Table]) -> None:
    for group, part in (("all", slice(None)), ("cold", SMALL), ("3+", ~SMALL)):
        own = VALUES["a"][part]
        row = one(tables["summary"], learner="a", metric="msd", user_group=group)
        assert row["users"] == len(own)
        assert_allclose(row["mean"], own.mean(), rtol=1e-12)
        assert_allclose(row["sd"], own.std(ddof=1), rtol=1e-10)
        interval = stats.ttest_1samp(own, 0.0).confidence_interval(0.9)
        assert_allclose((row["ci_low"], row["ci_high"]), interval, rtol=1e-10)
        found = [row[name] for name in ("p05", "p25", "p50", "p75", "p95")]
        assert_allclose(found, np.quantile(own, [0.05, 0.25, 0.5, 0.75, 0.95]), rtol=1e-12)
        assert row["bootstrap_low"] < row["mean"] < row["bootstrap_high"]


def test_undefined_values_do_not_count(tables: dict[str, pa.Table]) -> None:
    row = one(tables["summary"], learner="b", metric="misranking", user_group="all")
    assert row["users"] == SMALL.sum()
    assert_allclose(row["mean"], VALUES["b"][SMALL].mean() / 100, rtol=1e-12)
    empty = one(tables["summary"], learner="b", metric="misranking", user_group="3+")
    assert (empty["users"], empty["mean"], empty["p50"], empty["ci_low"]) == (0, None, None, None)


def test_errors_over_all_ratings_count_every_rating_once(tables: dict[str, pa.Table]) -> None:
    sizes = 1 + np.arange(USERS) % 7
    for group, part in (("all", np.ones(USERS, bool)), ("cold", SMALL)):
        chosen = part & (np.arange(USERS) % 5 != 0)
        # an error per rating: all of a user are as large as the user's own RMSE or MAE
        errors = np.repeat(VALUES["a"][chosen], sizes[chosen])
        rmse = one(tables["summary"], learner="a", metric="rmse", user_group=group)
        assert_allclose(rmse["pooled"], np.sqrt(np.mean(errors**2)), rtol=1e-12)
        assert (rmse["ratings"], rmse["users"]) == (len(errors), chosen.sum())
        mae = one(tables["summary"], learner="a", metric="mae", user_group=group)
        errors = np.repeat(VALUES["a"][part], sizes[part])
        assert_allclose(mae["pooled"], np.mean(errors), rtol=1e-12)
    msd = one(tables["summary"], learner="a", metric="msd", user_group="all")
    assert (msd["pooled"], msd["ratings"]) == (None, None)


def test_comparison_against_scipy(tables: dict[str, pa.Table]) -> None:
    found = {}
    for learner, rival in (("a", "b"), ("a", "c"), ("b", "c")):
        row = one(tables["comparison"], learner=learner, rival=rival, metric="msd",
                  user_group="all")  # fmt: skip
        difference = VALUES[learner] - VALUES[rival]
        assert_allclose(row["difference"], difference.mean(), rtol=1e-10)
        assert (row["wins"], row["ties"], row["losses"]) == (
            (difference < 0).sum(), 0, (difference > 0).sum(),
        )  # fmt: skip
        test = stats.wilcoxon(difference, correction=False, method="approx")
        assert_allclose(row["wilcoxon_p"], test.pvalue, rtol=1e-9)
        sign = stats.binomtest(int(row["wins"]), USERS).pvalue
        assert_allclose(row["sign_p"], sign, rtol=1e-9)
        found[learner, rival] = row
    corrected = holm([row["wilcoxon_p"] for row in found.values()])
    assert_allclose([row["wilcoxon_p_holm"] for row in found.values()], corrected)
    # of the AUC more is better
    better = one(tables["comparison"], learner="a", rival="b", metric="auc", user_group="all")
    assert better["wins"] == found["a", "b"]["losses"]


def test_bounds_count_users_with_all_three(tables: dict[str, pa.Table]) -> None:
    row = one(tables["bounds"], learner="a", bound="stability", user_group="all")
    limits = np.where(np.arange(USERS) % 2, 2.5, 1.5)
    assert (row["users"], row["train_cost"], row["bound_value"]) == (USERS, 0.5, 2.0)
    assert_allclose(row["test_cost"], VALUES["a"].mean(), rtol=1e-12)
    assert_allclose(row["holds"], (VALUES["a"] <= limits).mean())
    assert row["informative"] == 0.5
    assert not [r for r in tables["bounds"].to_pylist() if r["bound"] == "margin"]


@pytest.mark.parametrize("parts", [1, 8])
def test_the_partitioning_changes_no_bit(
    spark: SparkSession, tables: dict[str, pa.Table], parts: int
) -> None:
    again = run(spark, parts, [metric_row(u, n) for u in range(USERS) for n in VALUES])
    assert {name: table.to_pylist() for name, table in again.items()} == {
        name: table.to_pylist() for name, table in tables.items()
    }


def test_learners_over_different_users_are_refused(spark: SparkSession) -> None:
    rows = [metric_row(u, n) for u in range(10) for n in ("a", "b")][:-1]
    with pytest.raises(Exception, match="different numbers of users") as caught:
        run(spark, 1, rows)
    assert ContractError.__name__ in str(caught.value)
