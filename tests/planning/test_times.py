"""How long stages take: more data is more work, and the range says how sure that is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_rank.config.schema import (
    Config,
    FeaturesConfig,
    InputConfig,
    LearnerConfig,
    PrepareConfig,
    TrainConfig,
)
from spark_rank.planning.memory import demand
from spark_rank.planning.sizes import spread
from spark_rank.planning.times import PLANNED, measured_range, stage_range, stage_work

STAGES = sorted(PLANNED)
SIZES = spread(1000, 200, 40_000, "by hand")
KERNEL = LearnerConfig(params={"kernel": "rbf"})


def config(*entries: LearnerConfig, **features: Any) -> Config:
    return Config(
        train=TrainConfig(learners=list(entries) or [LearnerConfig()]),
        features=FeaturesConfig(**features),
        input=InputConfig(path="x", format="netflix"),
    )


def seconds(stage: str, asked: Config) -> float:
    work = stage_work(stage, asked, SIZES)
    return work.executors + work.driver


@given(
    st.sampled_from(STAGES), st.integers(10, 10**6), st.integers(1, 10),
    st.sampled_from(["mprank", "ranksvm", "rankboost"]), st.booleans(),
)  # fmt: skip
def test_more_users_are_more_work_and_no_less_memory(
    stage: str, users: int, times: int, learner: str, kernel: bool
) -> None:
    kernelled = kernel and learner != "rankboost"
    asked = config(LearnerConfig(learner, params={"kernel": "rbf"} if kernelled else {}))
    few, many = (spread(n, 5000, n * 50, "x") for n in (users, users * times))
    less, more = (stage_work(stage, asked, sizes) for sizes in (few, many))
    assert 0.0 <= less.executors <= more.executors * (1 + 1e-9)
    assert 0.0 <= less.driver <= more.driver * (1 + 1e-9)
    small, large = (demand(stage, asked, sizes, 2, 8) for sizes in (few, many))
    assert small.worker <= large.worker
    assert small.driver <= large.driver
    assert small.heap <= large.heap


def test_a_stage_that_nobody_has_measured_has_no_work() -> None:
    assert seconds("report", config()) == seconds("something else", config()) == 0.0


def test_the_split_decides_what_there_is_to_learn_from() -> None:
    less, more = (
        replace(config(), prepare=PrepareConfig(train_share=share)) for share in (0.5, 0.9)
    )
    assert seconds("train", less) < seconds("train", more)


def test_only_targets_are_learned() -> None:
    everyone = config(KERNEL)
    light = replace(everyone, train=replace(everyone.train, targets_max=39))
    nobody = replace(everyone, train=replace(everyone.train, targets_min=10_000))
    assert seconds("train", nobody) < seconds("train", light) < seconds("train", everyone)


def test_only_learned_factors_are_the_drivers_work() -> None:
    for kind, kept, learned in (("factors", None, True), ("factors", "a", False),
                                ("panel", None, False)):  # fmt: skip
        asked = config(kind=kind, kept_from=kept)
        assert (stage_work("features", asked, SIZES).driver > 0.0) == learned


def test_als_is_the_executors_work() -> None:
    asked = config(kind="als")
    work = stage_work("features", asked, SIZES)
    assert work.driver == 0.0
    assert work.executors > stage_work("features", config(kind="offset"), SIZES).executors
    less = config(kind="als", user_share=0.1)
    assert work.executors > stage_work("features", less, SIZES).executors
    kept = config(kind="als", kept_from="a")
    assert work.executors > stage_work("features", kept, SIZES).executors


def test_tuning_makes_features_once_more_where_there_is_a_grid() -> None:
    grid = LearnerConfig("svrank", grid={"C": [1, 2]})
    again = stage_work("features", config(grid), SIZES).driver
    assert stage_work("tune", config(grid), SIZES).driver == again > 0.0
    assert stage_work("tune", config(), SIZES).driver == 0.0
    assert seconds("tune", config(grid)) > seconds("tune", config())


def test_a_range_is_wider_where_ratings_decide() -> None:
    sure, unsure = stage_range("train", config(), 10.0), stage_range("train", config(KERNEL), 10.0)
    assert (sure.low, sure.high) == (6.0, 24.0)
    assert (unsure.low, unsure.high) == (3.0, 48.0)
    assert stage_range("ingest", config(KERNEL), 10.0) == sure


def test_a_measured_time_grows_with_the_work_but_for_its_start() -> None:
    same, twice = measured_range(20.0, 1.0), measured_range(20.0, 2.0)
    assert same.low < 20.0 < same.high
    assert twice.low < 38.0 < twice.high
    assert twice.high == pytest.approx(57.0)
    assert measured_range(0.5, 100.0).high < 1.0


def test_kernel_matrices_are_limited() -> None:
    few, many = (replace(spread(1000, 10**6, 10**5, "x"), heaviest=n) for n in (8000, 8001))
    less, more = (demand("train", config(KERNEL), sizes, 2, 2).worker for sizes in (few, many))
    assert more - less == 32 * config().features.width


def test_a_heap_holds_its_tasks_data_and_no_more_than_a_task_takes() -> None:
    def heap(tasks: int, ratings: int, cores: int) -> float:
        return demand("ingest", config(), spread(1000, 10**8, ratings, "x"), tasks, cores).heap

    assert heap(1, 10**6, 10) < heap(2, 10**6, 10) < heap(2, 10**7, 10)
    assert heap(2, 10**9, 2) == heap(2, 10**10, 2)
