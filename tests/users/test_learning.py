"""The worker functions of training, on batches without Spark."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose

from spark_rank.features.files import FeatureFiles, ItemFeatures, MappedFile
from spark_rank.learners import MPRank
from spark_rank.learners.kernels import Kernel
from spark_rank.metrics import mean_squared_difference
from spark_rank.users import learning
from spark_rank.users.fitting import Limits
from spark_rank.users.learning import LearnJob, learn_batches
from spark_rank.users.newcomers import Levels, levels_of
from spark_rank.users.rank_scale import RankScale
from spark_rank.users.specs import BASELINE_SPECS, LearnerSpec

N_ITEMS, D = 30, 4
RNG = np.random.default_rng(3)
FEATURES = ItemFeatures(
    RNG.normal(size=(N_ITEMS, D)).astype(np.float32),
    RNG.normal(size=N_ITEMS),
    np.empty((0, D), dtype=np.float32),
    pa.array([f"item {i}" for i in range(N_ITEMS)]),
)
FILES = FeatureFiles(*(MappedFile(name, "") for name in ("matrix", "offset", "prior", "item_ids")))
SCALE = RankScale((1.0, 2.0, 3.0, 4.0, 5.0))
LIMITS = Limits(SCALE, max_kernel_ratings=1000, landmarks=10, folds=3)
LINEAR = LearnerSpec("linear", "mprank", item_offset=True, params={"C": 2.0})
DUAL = LearnerSpec("dual", "mprank", item_offset=True, params={"kernel": "rbf", "gamma": 0.3})
RBF = LearnerSpec("rbf", "mprank", item_offset=False, params={"kernel": "rbf", "gamma": 0.3})

User = tuple[int, list[int], list[float], int]
USERS: list[User] = [
    (0, [1, 5, 7, 9, 2, 4], [1, 5, 3, 4, 2, 2], 4),
    (1, [3], [4], 1),
    (2, [0, 1, 2, 3, 4], [3, 3, 3, 1, 5], 3),
    (3, list(range(30)), [float(i % 5 + 1) for i in range(30)], 15),
]


def batch(users: list[User]) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "user": pa.array([u[0] for u in users], pa.int32()),
            "user_id": pa.array([f"user {u[0]}" for u in users], pa.string()),
            "items": pa.array([u[1] for u in users], pa.list_(pa.int32())),
            "ratings": pa.array([u[2] for u in users], pa.list_(pa.float32())),
            "n_train": pa.array([u[3] for u in users], pa.int32()),
            "bucket": pa.array([u[0] % 4 for u in users], pa.int32()),
        }
    )


def learn(
    *batches: pa.RecordBatch,
    panel: dict[int, int] | None = None,
    isolated: bool = False,
) -> list[dict[str, Any]]:
    job = LearnJob(
        FILES, (*BASELINE_SPECS, LINEAR, RBF), panel or {}, min_ratings=2, margin=1.0,
        limits=LIMITS, isolated=isolated,
    )  # fmt: skip
    made: Iterator[pa.RecordBatch] = learn_batches(iter(batches), job, lambda files: FEATURES)
    return [row for out in made for row in out.to_pylist()]


def row_of(rows: list[dict[str, Any]], user: int, learner: str) -> dict[str, Any]:
    (found,) = [r for r in rows if r["user_id"] == f"user {user}" and r["learner"] == learner]
    return found


def test_the_learner_in_the_worker_is_the_learner_on_arrays() -> None:
    row = row_of(learn(batch(USERS)), 3, "linear")
    X, offset = FEATURES.matrix.astype(float), FEATURES.offset
    y = np.array(USERS[3][2])
    model = MPRank(2.0).fit(X[:15], y[:15], offset=offset[:15])
    assert_allclose(row["weights"], model.coef_.astype(np.float32))
    expected = model.decision_function(X[15:], offset=offset[15:])
    by_row = row["intercept"] + offset[15:] + X[15:] @ np.array(row["weights"])
    assert_allclose(by_row, expected, rtol=1e-5)
    train = model.decision_function(X[:15], offset=offset[:15])
    assert_allclose(row["train_msd"], mean_squared_difference(train, y[:15]))
    assert (row["status"], row["reason"], row["n_train"], row["n_test"]) == (
        "learned",
        None,
        15,
        15,
    )
    assert row["offset_weight"] == 1.0
    assert row["dual"] is None
    assert row["bucket"] == 3


def test_a_user_without_training_ratings_gets_what_is_expected() -> None:
    users: list[User] = [(7, [1, 5, 7], [1, 5, 3], 0), USERS[3]]
    prior = np.zeros((N_ITEMS + 2, D), np.float32)
    prior[-2] = [0.5, -1.0, 0.25, 2.0]
    features = replace(FEATURES, prior=prior)
    rank = LearnerSpec("rank", "prank", item_offset=True)
    job = LearnJob(FILES, (*BASELINE_SPECS, LINEAR, RBF, rank), {}, min_ratings=2, margin=1.0,
                   limits=LIMITS, levels=Levels(3.5, 3.25, 3.0))  # fmt: skip
    (made,) = learn_batches(iter([batch(users)]), job, lambda files: features)
    rows = made.to_pylist()
    new = {row["learner"]: row for row in rows if row["user_id"] == "user 7"}
    assert {(row["status"], row["reason"], row["n_test"]) for row in new.values()} == {
        ("fallback", "no_ratings", 3)
    }
    found = {name: (row["intercept"], row["offset_weight"], row["weights"])
             for name, row in new.items()}  # fmt: skip
    expected = prior[-2].tolist()
    assert found == {
        "constant": (3.5, 0.0, None), "item_offset": (3.25, 1.0, None),
        "linear": (3.0, 1.0, expected), "rbf": (3.0, 1.0, expected),
        "rank": (3.0, 1.0, expected),
    }  # fmt: skip
    assert new["rank"]["thresholds"] == SCALE.thresholds().tolist()
    # others learn as they do without such a user
    (alone,) = learn_batches(
        iter([batch(users[1:])]), replace(job, levels=None), lambda files: features
    )
    assert [row for row in rows if row["user_id"] == "user 3"] == alone.to_pylist()


def test_levels_are_means_over_the_training_ratings() -> None:
    rng = np.random.default_rng(1)
    items, ratings = rng.integers(0, N_ITEMS, 200), rng.integers(1, 6, 200).astype(float)
    prior = rng.normal(size=(N_ITEMS + 2, D)).astype(np.float32)
    features = replace(FEATURES, prior=prior)
    numbers, counts = np.unique(items, return_counts=True)
    found = levels_of(float(ratings.mean()), features, numbers, counts)
    offset = FEATURES.offset[items]
    assert_allclose(found.constant, ratings.mean())
    assert_allclose(found.offset, (ratings - offset).mean())
    scores = offset + FEATURES.matrix[items] @ prior[-2].astype(float)
    assert_allclose(found.prior, (ratings - scores).mean(), rtol=1e-6)


def test_a_stored_kernel_model_scores_without_the_package() -> None:
    row = row_of(learn(batch(USERS)), 3, "rbf")
    index = {name: i for i, name in enumerate(FEATURES.item_ids.to_pylist())}
    support = FEATURES.matrix[[index[name] for name in row["support_items"]]]
    X, y = FEATURES.matrix.astype(float), np.array(USERS[3][2])
    learner = RBF.make(SCALE).fit(X[:15], y[:15])
    for item, score in zip(range(15, 30), learner.decision_function(X[15:]), strict=True):
        squared = ((support - FEATURES.matrix[item]) ** 2).sum(axis=1)
        by_hand = row["intercept"] + np.dot(row["dual"], np.exp(-row["gamma"] * squared))
        assert abs(by_hand - score) < 1e-5


def test_users_that_cannot_be_learned_fall_back_and_say_so() -> None:
    rows = learn(batch(USERS))
    few, equal = row_of(rows, 1, "linear"), row_of(rows, 2, "linear")
    assert (few["status"], few["reason"]) == ("fallback", "too_few_ratings")
    assert (equal["status"], equal["reason"]) == ("fallback", "equal_ratings")
    baseline = row_of(rows, 2, "item_offset")
    assert baseline["status"] == "learned"
    scored = ("intercept", "offset_weight", "weights")
    assert [equal[name] for name in scored] == [baseline[name] for name in scored]
    assert few["n_test"] == 0


def test_batches_of_any_size_give_the_same_rows() -> None:
    whole = learn(batch(USERS))
    assert learn(*[batch([user]) for user in USERS]) == whole
    assert learn(batch(USERS).slice(0, 1), batch(USERS).slice(1)) == whole
    assert learn(batch([])) == []


def test_a_reviewer_does_not_predict_herself() -> None:
    row = row_of(learn(batch(USERS), panel={3: 2}), 3, "linear")
    assert row["excluded_feature"] == 2
    assert row["weights"][2] == 0.0
    others = row_of(learn(batch(USERS)), 3, "linear")
    assert others["excluded_feature"] is None
    assert others["weights"][2] != 0.0


def test_one_bad_user_stays_in_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    healthy = learn(batch(USERS))
    original = MPRank.fit

    def fragile(self: MPRank, X: Any, y: Any, offset: Any = None) -> MPRank:
        if len(y) == 15:
            raise ZeroDivisionError("poison")
        return original(self, X, y, offset)

    monkeypatch.setattr(MPRank, "fit", fragile)
    rows = learn(batch(USERS))
    bad = row_of(rows, 3, "rbf")
    assert (bad["status"], bad["reason"]) == ("failed", "unexpected_error")
    assert bad["detail"] == "ZeroDivisionError: poison"
    assert bad["intercept"] is bad["dual"] is None
    assert bad["n_test"] == 15
    untouched = [r for r in rows if r != bad]
    assert untouched == [r for r in healthy if (r["user_id"], r["learner"]) != ("user 3", "rbf")]


def test_isolated_users_have_the_same_rows() -> None:
    panel = {3: 2}
    whole = learn(batch(USERS), panel=panel)
    assert learn(batch(USERS), panel=panel, isolated=True) == whole


@pytest.mark.parametrize(
    ("isolated", "poison", "reason"),
    [
        (False, "memory", "out_of_memory"),
        (True, "memory", "out_of_memory"),
        (True, "exit", "crashed"),
    ],
)
def test_who_ends_the_process_or_its_memory_is_a_row(
    monkeypatch: pytest.MonkeyPatch, isolated: bool, poison: str, reason: str
) -> None:
    healthy = learn(batch(USERS), panel={3: 2})
    original = MPRank.fit

    def fragile(self: MPRank, X: Any, y: Any, offset: Any = None) -> MPRank:
        if len(y) == 15 and poison == "exit":
            os._exit(1)
        if len(y) == 15:
            raise MemoryError("8 TiB")
        return original(self, X, y, offset)

    monkeypatch.setattr(MPRank, "fit", fragile)
    rows = learn(batch(USERS), panel={3: 2}, isolated=isolated)
    bad = row_of(rows, 3, "rbf")
    before = row_of(healthy, 3, "rbf")
    assert (bad["status"], bad["reason"]) == ("failed", reason)
    # it has the columns that follow from the block, and none that need learning
    told = ("n_train", "n_test", "on_rating_scale", "excluded_feature")
    assert {name: bad[name] for name in told} == {name: before[name] for name in told}
    assert bad["dual"] is None
    untouched = [r for r in rows if r != bad]
    assert untouched == [r for r in healthy if (r["user_id"], r["learner"]) != ("user 3", "rbf")]


def test_too_little_memory_for_many_users_at_once_is_enough_for_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = learn(batch(USERS))
    together = learning.learn_together

    def greedy(spec: Any, group: Any, *more: Any) -> Any:
        if len(group.blocks.users) > 1:
            raise MemoryError("too many at once")
        return together(spec, group, *more)

    monkeypatch.setattr(learning, "learn_together", greedy)
    with pytest.raises(MemoryError):  # the driver then isolates the users
        learn(batch(USERS))
    assert learn(batch(USERS), isolated=True) == whole


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_a_numeric_failure_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    beyond = (FEATURES.matrix * np.float32(1e38)).astype(np.float64) ** 5
    huge = replace(FEATURES, matrix=beyond)
    monkeypatch.setattr(learning, "open_distributed", lambda files: huge)
    job = LearnJob(FILES, (LINEAR,), {}, min_ratings=2, margin=1.0, limits=LIMITS)
    (out,) = learn_batches(iter([batch(USERS[3:])]), job, lambda files: huge)
    (row,) = out.to_pylist()
    assert (row["status"], row["reason"]) == ("failed", "numeric_failure")
    assert "overflowed" in row["detail"]


def test_a_fallback_is_measured_as_its_learner_is() -> None:
    spec = LearnerSpec("order", "ranksvm", item_offset=True)
    job = LearnJob(FILES, (spec,), {}, min_ratings=10, margin=1.0, limits=LIMITS)
    (out,) = learn_batches(iter([batch(USERS[:1])]), job, lambda files: FEATURES)
    (row,) = out.to_pylist()
    assert (row["status"], row["on_rating_scale"], row["train_msd"]) == ("fallback", False, None)
    assert row["train_misranking"] is not None


def test_what_is_expected_of_a_user_is_learned_from_and_handed_on() -> None:
    prior = RNG.normal(size=(N_ITEMS + 2, D)).astype(np.float32)
    features = replace(FEATURES, prior=prior)
    job = LearnJob(
        FILES, (*BASELINE_SPECS, LINEAR, DUAL), {}, min_ratings=2, margin=1.0, limits=LIMITS
    )
    (out,) = learn_batches(iter([batch(USERS)]), job, lambda files: features)
    rows = out.to_pylist()
    user, items, ratings, n_train = USERS[3]
    X, y = FEATURES.matrix[items].astype(float), np.array(ratings)
    rated = items[:n_train]
    expected = prior[rated].sum(axis=0) / np.sqrt(n_train) + prior[-2] + prior[-1] * np.log(n_train)
    offset = FEATURES.offset[items] + X @ expected
    model = MPRank(2.0).fit(X[:n_train], y[:n_train], offset=offset[:n_train])
    row = row_of(rows, user, "linear")
    scores = model.decision_function(X[n_train:], offset=offset[n_train:])
    assert_allclose(row["weights"], model.coef_ + expected, rtol=1e-5)
    by_row = row["intercept"] + FEATURES.offset[items] + X @ np.array(row["weights"])
    assert_allclose(by_row[n_train:], scores, rtol=1e-5, atol=1e-5)
    assert_allclose(row["norm"], np.linalg.norm(model.coef_), rtol=1e-6)
    # a kernel model is scored from its row alone
    dual = row_of(rows, user, "dual")
    support = X[:n_train]
    kernel = Kernel("rbf", 0.3)(X[n_train:], support)
    rebuilt = (
        dual["intercept"] + FEATURES.offset[items[n_train:]] + X[n_train:] @ dual["weights"]
        + kernel @ np.array(dual["dual"])
    )  # fmt: skip
    learner = MPRank(kernel="rbf", gamma=0.3)
    learner.fit(X[:n_train], y[:n_train], offset=offset[:n_train])
    said = learner.decision_function(X[n_train:], offset=offset[n_train:])
    assert_allclose(rebuilt, said, rtol=1e-4)
    assert_allclose(dual["weights"], expected, rtol=1e-5)
    # with too few ratings the fallback is the prior; the baseline is the item offset alone
    cold = row_of(rows, 1, "linear")
    assert (cold["status"], cold["n_test"]) == ("fallback", 0)
    assert cold["weights"] is not None
    assert row_of(rows, user, "item_offset")["weights"] is None


@pytest.mark.parametrize("learner", ["svrank", "ranksvm"])
def test_who_did_not_converge_says_so(learner: str) -> None:
    options = {"C": 100.0, "kernel": "rbf"}
    hasty = LearnerSpec("hasty", learner, item_offset=True, params={**options, "max_iter": 2})
    patient = LearnerSpec("patient", learner, item_offset=True, params=options)
    job = LearnJob(FILES, (hasty, patient), {}, min_ratings=2, margin=1.0, limits=LIMITS)
    (out,) = learn_batches(iter([batch(USERS[3:])]), job, lambda files: FEATURES)
    rows = out.to_pylist()
    row = row_of(rows, 3, "hasty")
    assert (row["status"], row["reason"]) == ("approximated", "not_converged")
    assert "after 2 rounds" in row["detail"]
    assert row["dual"] is not None
    row = row_of(rows, 3, "patient")
    assert (row["status"], row["reason"], row["detail"]) == ("learned", None, None)


def test_the_fallback_of_a_learner_of_ranks_has_ranks() -> None:
    spec = LearnerSpec("ranks", "prank", item_offset=False)
    job = LearnJob(FILES, (spec,), {}, min_ratings=10, margin=1.0, limits=LIMITS)
    (out,) = learn_batches(iter([batch(USERS[:1])]), job, lambda files: FEATURES)
    (row,) = out.to_pylist()
    assert (row["status"], row["on_rating_scale"]) == ("fallback", False)
    scores = row["intercept"] + FEATURES.offset
    nearest = [min(SCALE.levels, key=lambda level: abs(level - s)) for s in scores]
    by_thresholds = [1 + sum(s >= t for t in row["thresholds"]) for s in scores]
    assert by_thresholds == [SCALE.levels.index(level) + 1 for level in nearest]


def test_too_many_ratings_for_a_kernel_are_approximated_and_say_so() -> None:
    limits = replace(LIMITS, max_kernel_ratings=10)
    perceptron = LearnerSpec("p", "prank", item_offset=False, params={"kernel": "poly"})
    job = LearnJob(FILES, (LINEAR, RBF, perceptron), {}, min_ratings=2, margin=1.0, limits=limits)
    (out,) = learn_batches(iter([batch(USERS)]), job, lambda files: FEATURES)
    rows = out.to_pylist()
    told = {(r["user_id"], r["learner"]): (r["status"], r["reason"]) for r in rows}
    assert told["user 3", "linear"] == ("learned", None)
    assert told["user 3", "rbf"] == ("approximated", "landmarks")
    assert told["user 3", "p"] == ("approximated", "first_ratings")
    assert told["user 0", "rbf"] == told["user 0", "p"] == ("learned", None)
    assert len(row_of(rows, 3, "rbf")["dual"]) == 10
