"""The sample that factors are learned from, and the features of a whole run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from spark_rank.config import Config
from spark_rank.errors import InputDataError
from spark_rank.features.factor_model import SampledRatings, most_users
from spark_rank.features.factors import sample_users
from spark_rank.session.session import runtime_setting
from spark_rank.stages import STAGES, pipeline
from spark_rank.stages.runner import run_stages
from spark_rank.store.run import Run
from tests.generated import generated_run

MakeConfig = Callable[..., Config]
SMALL = "features={kind: factors, rank: 4, rounds: 6}"
SCHEMA = "user_id string, items array<int>, ratings array<float>, n_train int"


def blocks(spark: SparkSession, *, held_out: float = 1.0, users: int = 200) -> object:
    rng = np.random.default_rng(0)
    rows = []
    for user in range(users):
        size = int(rng.integers(1, 9))
        items = rng.choice(30, size, replace=False).tolist()
        ratings = rng.integers(1, 6, size).astype(float)
        n_train = (size + 1) // 2
        ratings[n_train:] = held_out
        rows.append((f"u{user}", [int(i) for i in items], ratings.tolist(), n_train))
    return spark.createDataFrame(rows, SCHEMA)


def draw(
    frame: Any, share: float = 1.0, max_ratings: int = 10**6, max_users: int = 10**6
) -> SampledRatings:
    return sample_users(
        frame, n_items=30, share=share, max_ratings=max_ratings, max_users=max_users, seed=4
    )


def sample(frame: object, share: float = 1.0, max_ratings: int = 10**6) -> tuple[bytes, ...]:
    made = sample_users(
        frame, n_items=30, share=share, max_ratings=max_ratings, max_users=10**6, seed=4
    )  # type: ignore[arg-type]
    return made.items.tobytes(), made.ratings.tobytes(), made.ends.tobytes()


def test_held_out_ratings_and_the_partitioning_change_nothing(spark: SparkSession) -> None:
    frame = blocks(spark)
    assert sample(frame) == sample(blocks(spark, held_out=5.0))
    assert sample(frame) == sample(frame.repartition(7))  # type: ignore[attr-defined]


def test_all_training_ratings_are_there_and_no_other(spark: SparkSession) -> None:
    frame = blocks(spark)
    made = draw(frame)
    rows = frame.collect()  # type: ignore[attr-defined]
    assert len(made.ratings) == sum(row["n_train"] for row in rows) == made.ends[-1]
    expected = sorted(
        (tuple(row["items"][: row["n_train"]]), tuple(row["ratings"][: row["n_train"]]))
        for row in rows
    )
    found = sorted(
        (tuple(made.items[a:b].tolist()), tuple(made.ratings[a:b].tolist()))
        for a, b in zip(made.ends[:-1], made.ends[1:], strict=True)
    )
    assert found == expected


def test_a_share_takes_about_so_many_users_and_a_budget_lowers_it(spark: SparkSession) -> None:
    frame = blocks(spark, users=1000)
    whole = draw(frame)
    half = draw(frame, share=0.5)
    assert 420 < half.n_users < 580
    budget = len(whole.ratings) // 4
    quarter = sample_users(
        frame, n_items=30, share=1.0, max_ratings=budget, max_users=10**6, seed=4
    )  # type: ignore[arg-type]
    assert 190 < quarter.n_users < 310
    few = draw(frame, max_users=100)
    assert 60 < few.n_users < 140
    # two moments of 33 · 34 / 2 floats a user
    assert most_users(32) * 8 * 561 <= 2 << 30 < (most_users(32) + 1) * 8 * 561


def test_an_empty_sample_is_named(make_config: MakeConfig, spark: SparkSession) -> None:
    config = make_config(SMALL, "features.user_share=1.0e-9")
    run = generated_run(spark, config)
    with pytest.raises(InputDataError, match=r"raise features\.user_share"):
        run_stages(pipeline(config)[:4], config, spark, run)


@pytest.fixture(scope="module")
def with_factors(make_config: MakeConfig, run_pipeline: Callable[..., Run]) -> Run:
    learner = "train.learners=[{name: mine, params: {ridge: fixed, C: 1.0}}]"
    more = "synthesize={users: 300, items: 80, median_ratings: 25}"
    return run_pipeline(make_config(SMALL, learner, more), without=("rank", "aggregate", "report"))


def test_factors_beat_the_item_offset(with_factors: Run) -> None:
    means = (with_factors.record("evaluate") or {})["facts"]["means"]
    assert means["mine"]["msd"] < means["item_offset"]["msd"] < means["constant"]["msd"]
    assert means["mine"]["misranking"] < means["item_offset"]["misranking"]


@pytest.mark.parametrize("partitions", [pytest.param(1, marks=pytest.mark.slow), 8])
def test_the_partitioning_changes_no_feature_byte(
    spark: SparkSession, make_config: MakeConfig, with_factors: Run, partitions: int
) -> None:
    more = "synthesize={users: 300, items: 80, median_ratings: 25}"
    config = make_config(SMALL, more, f"prepare.buckets={partitions}")
    with runtime_setting(spark, "spark.sql.shuffle.partitions", str(partitions)):
        run = generated_run(spark, config)
        run_stages([STAGES["features"]], config, spark, run)
    names = [
        (r.record("features") or {})["facts"]["files"] for r in (run, with_factors)
    ]  # their checksums
    assert names[0] == names[1]
