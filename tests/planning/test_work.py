"""What stages have to do, against sums by hand; more data, features or points are more work."""

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
from spark_rank.learners import BASELINES, PER_USER
from spark_rank.planning.memory import heap, stage_memory
from spark_rank.planning.rates import LEARNERS, RATES, LearnerCost, rate
from spark_rank.planning.sizes import Sizes, spread
from spark_rank.planning.work import PLANNED, learner_seconds, stage_work

STAGES = sorted(PLANNED)
# users who are all the same: sums over them are products
EQUAL = Sizes(1000, 200, 40_000, 40, ((1000.0, 40.0),), "by hand")


def config(*entries: LearnerConfig, **features: Any) -> Config:
    return Config(
        train=TrainConfig(learners=list(entries) or [LearnerConfig()]),
        features=FeaturesConfig(**features),
        input=InputConfig(path="x", format="netflix"),
    )


def test_every_learner_has_its_cost() -> None:
    for name, learner in PER_USER.items():
        assert (name, True) in LEARNERS
        assert ((name, False) in LEARNERS) == ("kernel" in learner.parameters)


def test_every_rate_says_of_what_and_by_which_script() -> None:
    for name, known in RATES.items():
        assert known.value > 0, name
        assert known.of, name
        assert known.measured_by.startswith("benchmarks/"), name


def test_a_learners_cost_is_its_polynomial() -> None:
    cost = LearnerCost(1.0, 2.0, 3.0, 4.0, 5.0)
    # m = 10 ratings, d = 4 features: 1 + 2·40 + 3·40·4 + 4·100 + 5·400
    assert cost.seconds(10, 4) == 1 + 80 + 480 + 400 + 2000


def test_rates_per_rating_are_multiplied() -> None:
    assert stage_work("ingest", config(), EQUAL).executors == pytest.approx(
        40_000 * rate("ingest netflix")
    )
    assert stage_work("prepare", config(), EQUAL).executors == pytest.approx(
        40_000 * rate("prepare")
    )
    assert stage_work("report", config(), EQUAL).executors == 0.0


def test_training_is_the_sum_over_users_and_learners() -> None:
    both = config(LearnerConfig("mprank", "a"), LearnerConfig("svrank", "b"), rank=8)
    # half of forty ratings are to learn from; rows of two learners and two baselines
    each = 4 * rate("model row") + sum(
        LEARNERS[name, True].seconds(20, 8) for name in ("baselines", "mprank", "svrank")
    )
    assert stage_work("train", both, EQUAL).executors == pytest.approx(1000 * each)


def test_only_targets_are_learned() -> None:
    found = config()
    found = replace(found, train=replace(found.train, targets_max=39))
    assert stage_work("train", found, EQUAL).executors == 0.0
    sizes = replace(EQUAL, groups=((500.0, 40.0), (500.0, 30.0)))
    part = stage_work("train", found, sizes).executors
    assert part == pytest.approx(500 / 1000 * stage_work("train", config(), replace(
        EQUAL, groups=((1000.0, 30.0),))).executors)  # fmt: skip


def test_folds_learn_every_point_on_a_part() -> None:
    entry = LearnerConfig("svrank", grid={"C": [1, 2, 3]}, selection="k_fold")
    settings = config(entry, rank=8)
    once = LEARNERS["svrank", True].seconds(50, 8)
    fold = LEARNERS["svrank", True].seconds(40, 8)
    assert learner_seconds(entry, settings, 50) == pytest.approx(once + 3 * 5 * fold)


def test_leave_pair_out_shares_a_factorisation_among_values_of_c() -> None:
    entry = LearnerConfig(
        "mprank", params={"kernel": "rbf"}, grid={"gamma": [1, 2], "C": [1, 2, 3]},
        selection="leave_pair_out",
    )  # fmt: skip
    settings = config(entry, rank=8)
    each = rate("choice kernel") + 3 * rate("choice kernel C")
    chosen = 2 * (rate("choice") + each * 50**3)
    once = LEARNERS["mprank", False].seconds(50, 8)
    assert learner_seconds(entry, settings, 50) == pytest.approx(once + chosen)


def test_tuning_learns_the_factors_once_more() -> None:
    grid = LearnerConfig("svrank", grid={"C": [1, 2]}, selection="k_fold")
    for sample, kind in ((grid, "factors"), (grid, "panel")):
        settings = config(sample, kind=kind)
        again = stage_work("features", settings, EQUAL).driver
        assert stage_work("tune", settings, EQUAL).driver == again
        assert (again > 0.0) == (kind == "factors")
    own = stage_work("tune", config(grid), EQUAL).executors
    for_all = stage_work("tune", config(LearnerConfig("svrank", grid={"C": [1, 2]})), EQUAL)
    assert own > for_all.executors


def test_a_choice_for_all_costs_tune_and_not_train() -> None:
    plain, grid = LearnerConfig("svrank"), LearnerConfig("svrank", grid={"C": [1, 2]})
    assert learner_seconds(grid, config(grid), 50) == learner_seconds(plain, config(plain), 50)
    assert stage_work("tune", config(grid), EQUAL).executors > 0
    assert stage_work("tune", config(plain), EQUAL).executors == 0


def test_kernels_of_heavy_users_are_cheaper_on_landmarks_than_exact() -> None:
    entry = LearnerConfig("mprank", params={"kernel": "rbf"})
    settings = config(entry)
    exact = LEARNERS["mprank", False].seconds(16_000, 32)
    assert learner_seconds(entry, settings, 16_000) < exact


def test_rounds_and_epochs_are_paid_for() -> None:
    once, ten = (LearnerConfig("rankboost", params={"n_rounds": n}) for n in (100, 1000))
    assert learner_seconds(ten, config(ten), 50) == pytest.approx(
        10 * learner_seconds(once, config(once), 50)
    )


@given(
    st.sampled_from(STAGES), st.integers(10, 10**6), st.integers(1, 10),
    st.sampled_from(sorted(PER_USER)), st.booleans(),
)  # fmt: skip
def test_more_users_are_more_work_and_no_less_memory(
    stage: str, users: int, times: int, learner: str, kernel: bool
) -> None:
    kernelled = kernel and "kernel" in PER_USER[learner].parameters
    entry = LearnerConfig(learner, params={"kernel": "rbf"} if kernelled else {})
    few, many = (spread(n, 5000, n * 50, "x") for n in (users, users * times))
    less, more = (stage_work(stage, config(entry), sizes) for sizes in (few, many))
    assert more.executors >= less.executors * (1 - 1e-9)
    assert more.driver >= less.driver * (1 - 1e-9)
    small, large = (stage_memory(stage, config(entry), sizes) for sizes in (few, many))
    assert large.worker >= small.worker
    assert large.driver >= small.driver


@given(st.sampled_from(STAGES), st.integers(1, 200), st.integers(1, 200))
def test_more_features_are_more_work_and_no_less_memory(stage: str, low: int, more: int) -> None:
    sizes = spread(10_000, 5000, 500_000, "x")
    narrow, wide = config(rank=low), config(rank=low + more)
    assert stage_work(stage, wide, sizes).executors >= stage_work(stage, narrow, sizes).executors
    assert stage_work(stage, wide, sizes).driver >= stage_work(stage, narrow, sizes).driver
    assert stage_memory(stage, wide, sizes).worker >= stage_memory(stage, narrow, sizes).worker
    assert stage_memory(stage, wide, sizes).driver >= stage_memory(stage, narrow, sizes).driver


def test_memory_by_hand() -> None:
    linear = stage_memory("train", config(rank=8), EQUAL).worker
    files, gathered, batch = 200 * 8 * 4, 40 * 8 * rate("gathered"), 1000 * 8 * 8 * 3
    assert linear == rate("worker") + files + gathered + batch
    rbf = stage_memory("train", config(LearnerConfig(params={"kernel": "rbf"}), rank=8), EQUAL)
    assert rbf.worker == linear + rate("kernel mprank") * 20**2
    pairs = LearnerConfig("svrank", params={"kernel": "rbf"})
    worst = config(LearnerConfig(params={"kernel": "rbf"}), pairs, rank=8)
    more = 1000 * 8 * 8  # weights of one learner more
    assert stage_memory("train", worst, EQUAL).worker == linear + more + rate("kernel") * 20**2
    rows = stage_memory("evaluate", config(), EQUAL).worker
    assert rows == rate("worker") + 1000 * (1 + len(BASELINES)) * rate("statistics")
    assert stage_memory("train", config(), EQUAL).driver == rate("worker")


def test_kernel_matrices_are_limited() -> None:
    entry = LearnerConfig(params={"kernel": "rbf"})
    few, many = (replace(EQUAL, items=10**6, heaviest=n) for n in (8000, 8001))
    less, more = (stage_memory("train", config(entry), sizes).worker for sizes in (few, many))
    assert more - less == 32 * rate("gathered")


def test_a_heap_holds_its_tasks_data_and_no_more_than_a_task_takes() -> None:
    own = rate("heap") + 2 * rate("heap idle")
    assert heap(2, 1000, 2) == own + 2 * 500 * rate("heap rating")
    assert heap(2, 1e12, 2) == own + 2 * rate("heap task")
    assert heap(1, 1e6, 10) < heap(2, 1e6, 10)


def test_the_split_decides_what_there_is_to_learn_from() -> None:
    more = replace(config(), prepare=PrepareConfig(train_share=0.9))
    assert (
        stage_work("train", more, EQUAL).executors > stage_work("train", config(), EQUAL).executors
    )
    assert (
        stage_work("evaluate", more, EQUAL).executors
        < stage_work("evaluate", config(), EQUAL).executors
    )
