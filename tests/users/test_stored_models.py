"""Model rows that are read back score as their learners and as the contract's formula."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose

from spark_rank.features.files import ItemFeatures
from spark_rank.features.pool import ReviewerPool, id_keys
from spark_rank.users.specs import LearnerSpec
from spark_rank.users.stored_models import (
    StoredModels,
    has_ranks,
    linear_rows,
    rank_rule,
    weight_matrix,
)
from tests.users.learned_rows import (
    FEATURES,
    LIMITS,
    N_ITEMS,
    SPECS,
    USERS,
    WITH_PRIOR,
    D,
    Own,
    ident,
    learn,
    own_predictions,
)


def check(rows: pa.RecordBatch, features: ItemFeatures, own: Sequence[Own | None]) -> None:
    """Hold read-back models against the scores and ranks that the learners give."""
    for number, (row, said, (_, items, _, n_train)) in enumerate(
        zip(rows.to_pylist(), own, USERS, strict=True)
    ):
        assert said is not None
        assert row["status"] != "failed", row["detail"]
        model = StoredModels(rows, features.item_ids)[number]
        scores = model.scores(features, np.array(items))
        assert_allclose(scores[n_train:], said.scores, rtol=2e-5, atol=2e-5)
        if said.ranks is not None:
            assert has_ranks(rows)[number]
            ranks = rank_rule(rows, number).ranks(scores)
            assert ranks[n_train:].tolist() == said.ranks
        else:
            assert not has_ranks(rows)[number]


@pytest.mark.parametrize("spec", SPECS, ids=ident)
@pytest.mark.parametrize("features", [FEATURES, WITH_PRIOR], ids=["plain", "prior"])
def test_a_row_scores_as_the_learner_that_it_was(spec: LearnerSpec, features: ItemFeatures) -> None:
    check(learn(spec, features), features, own_predictions(spec, features))


@pytest.mark.parametrize("learner", ["mprank", "rankboost", "prank", "multiclass_perceptron"])
def test_a_users_own_column_is_read_as_nothing(learner: str) -> None:
    spec, panel = LearnerSpec("it", learner, True), {0: 1, 2: 2}
    rows = learn(spec, panel=panel)
    assert rows.column("excluded_feature").to_pylist() == [1, None, 2]
    check(rows, FEATURES, own_predictions(spec, panel=panel))


def test_landmarks_are_a_model_like_any_other() -> None:
    spec = LearnerSpec("it", "mprank", True, {"kernel": "rbf", "gamma": 0.4})
    limits = replace(LIMITS, max_kernel_ratings=6)
    rows = learn(spec, limits=limits)
    assert rows.column("status").to_pylist()[0] == "approximated"
    check(rows, FEATURES, own_predictions(spec, limits=limits))


def value(kernel: str, gamma: float | None, settings: dict[str, Any], a: Any, b: Any) -> float:
    product = sum(float(x) * float(y) for x, y in zip(a, b, strict=True))
    distance = sum((float(x) - float(y)) ** 2 for x, y in zip(a, b, strict=True))
    if kernel == "linear":
        return product
    assert gamma is not None
    if kernel == "poly":
        return float((gamma * product + settings["coef0"]) ** settings["degree"])
    gaussian = settings.get("rbf_weight", 1.0) * math.exp(-gamma * distance)
    return product + gaussian if kernel == "linear+rbf" else gaussian


def members_mean(row: dict[str, Any], values: list[float]) -> float:
    rules = np.reshape(row["members"], (row["n_members"], -1)).tolist()
    total = 0.0
    for rule, votes in zip(rules, row["member_votes"], strict=True):
        score = sum(w * f for w, f in zip(rule, values, strict=False))
        total += votes * (1 + sum(score >= cut for cut in rule[D + 1 :]))
    return total / sum(row["member_votes"])


def by_the_contract(row: dict[str, Any], features: ItemFeatures, item: int) -> float:
    """Return the score of an item by the contract's formula, in plain loops."""
    numbers = {name: i for i, name in enumerate(features.item_ids.to_pylist())}

    def x(i: int) -> list[float]:
        vector = features.matrix[i].tolist()
        if row["excluded_feature"] is not None:
            vector[row["excluded_feature"]] = 0.0
        return vector

    def kernel(support: str) -> float:
        settings = json.loads(row["hyperparameters"])
        return value(row["kernel"], row["gamma"], settings, x(numbers[support]), x(item))

    offset = float(features.offset[item])
    if row["prototypes"] is not None:
        k = len(row["prototypes"]) // (D + 1)
        sums = [sum(w * f for w, f in zip(row["prototypes"][r * (D + 1) : (r + 1) * (D + 1)],
                                          [*x(item), offset], strict=True))
                for r in range(k)]  # fmt: skip
        return 1.0 + sums.index(max(sums))
    if row["votes"] is not None:
        k = len(row["thresholds"]) // len(row["votes"]) + 1
        total = 0.0
        for rule, votes in enumerate(row["votes"]):
            score = sum(row["dual"][j] * kernel(row["support_items"][j]) for j in range(rule))
            cuts = row["thresholds"][rule * (k - 1) : (rule + 1) * (k - 1)]
            total += votes * (1 + sum(score >= cut for cut in cuts))
        return total / sum(row["votes"])
    if row["member_votes"] is not None:
        return members_mean(row, [*x(item), offset])
    score = row["intercept"] + row["offset_weight"] * offset
    score += sum(w * f for w, f in zip(row["weights"] or [], x(item), strict=bool(row["weights"])))
    for support, dual in zip(row["support_items"] or [], row["dual"] or [], strict=True):
        score += dual * kernel(support)
    for feature, cut, below, alpha in zip(
        *(row[f"ranker_{part}"] or [] for part in ("features", "cuts", "below", "alphas")),
        strict=True,
    ):
        score += alpha * ((x(item)[feature] < cut) if below else (x(item)[feature] >= cut))
    return float(score)


@pytest.mark.parametrize("spec", SPECS, ids=ident)
def test_scores_are_the_contracts_formula(spec: LearnerSpec) -> None:
    rows = learn(spec, WITH_PRIOR, panel={2: 1})
    items = np.arange(N_ITEMS)
    for number, row in enumerate(rows.to_pylist()):
        model = StoredModels(rows, WITH_PRIOR.item_ids)[number]
        expected = [by_the_contract(row, WITH_PRIOR, item) for item in items]
        assert_allclose(model.scores(WITH_PRIOR, items), expected, rtol=1e-9, atol=1e-9)


def test_scores_do_not_depend_on_which_other_items_are_asked_for() -> None:
    rows = learn(LearnerSpec("it", "mprank", True))
    model = StoredModels(rows, FEATURES.item_ids)[0]
    whole = model.scores(FEATURES, np.arange(N_ITEMS))
    for items in ([5], [7, 2, 19], []):
        assert model.scores(FEATURES, np.array(items, dtype=int)).tolist() == whole[items].tolist()


def test_linear_rows_are_told_from_others_and_give_their_weights() -> None:
    linear = learn(LearnerSpec("it", "mprank", True), WITH_PRIOR, panel={2: 0})
    kernel = learn(LearnerSpec("it", "mprank", True, {"kernel": "rbf"}), WITH_PRIOR)
    boosted = learn(LearnerSpec("it", "rankboost", False))
    assert linear_rows(linear).tolist() == [True, True, True]
    assert linear_rows(kernel).tolist() == [False, True, True]  # the others fell back
    assert linear_rows(boosted).tolist() == [False, True, True]
    weights = weight_matrix(linear, linear_rows(linear), D)
    for number, row in enumerate(linear.to_pylist()):
        expected = np.array(row["weights"])
        if row["excluded_feature"] is not None:
            expected[row["excluded_feature"]] = 0.0
        assert weights[number].tolist() == expected.tolist()
    assert (weight_matrix(kernel, linear_rows(kernel), D)[0] == 0.0).all()
    assert (weight_matrix(boosted, linear_rows(boosted), D) == 0.0).all()


@pytest.mark.parametrize("params", [{"kernel": "linear"}, {"kernel": "rbf"}])
def test_a_users_reviewers_are_that_users_features(params: dict[str, Any]) -> None:
    rng = np.random.default_rng(8)
    ids = [f"r{number}" for number in range(9)]
    pool = ReviewerPool(
        ends=np.arange(0, 9 * 6 + 1, 6),
        items=np.concatenate([np.sort(rng.permutation(N_ITEMS)[:6]) for _ in ids]).astype(np.int32),
        ratings=rng.integers(-2, 3, 54).astype(np.float32),
        missing=rng.normal(size=9).astype(np.float32),
        users=np.arange(100, 109, dtype=np.int32),
        keys=id_keys(ids),
        size=4,
        seed=3,
    )
    empty = np.empty((0, 0), np.float32)
    features = ItemFeatures(np.empty((N_ITEMS, 0), np.float32), FEATURES.offset, empty,
                            FEATURES.item_ids, pool)  # fmt: skip
    spec = LearnerSpec("it", "mprank", True, params)
    rows = learn(spec, features)
    chosen = [features.reviewers(user, f"user {user}") for user, *_ in USERS]
    place = rows.schema.get_field_index("reviewers")
    rows = rows.set_column(place, "reviewers", pa.array(chosen, pa.list_(pa.int32())))
    assert not linear_rows(rows)[0]
    check(rows, features, own_predictions(spec, features))
