"""Explanations add up to the scores that they explain."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose

from spark_rank.features.files import ItemFeatures
from spark_rank.users.explaining import (
    EXPECTED,
    LEARNED_ITEMS,
    LEARNED_RANKERS,
    LEARNED_WEIGHTS,
    Influences,
    Pulls,
)
from spark_rank.users.specs import LearnerSpec
from spark_rank.users.stored_models import StoredModels, item_rows
from tests.users.learned_rows import FEATURES, N_ITEMS, SPECS, USERS, WITH_PRIOR, D, ident, learn


def influences(rows: pa.RecordBatch, number: int, features: ItemFeatures) -> Influences:
    row = rows.slice(number, 1).to_pylist()[0]
    trained = np.array(USERS[number][1][: USERS[number][3]])
    expected = features.expected_weights(trained.astype(np.int32))
    return Influences(
        StoredModels(rows, features.item_ids)[number], features, trained,
        None if row["expected_norm"] is None else expected, row["status"] == "learned",
    )  # fmt: skip


@pytest.mark.parametrize("spec", SPECS, ids=ident)
@pytest.mark.parametrize("features", [FEATURES, WITH_PRIOR], ids=["plain", "prior"])
def test_parts_add_up_to_the_score(spec: LearnerSpec, features: ItemFeatures) -> None:
    rows = learn(spec, features, panel={0: 1})
    for number in range(len(USERS)):
        found = influences(rows, number, features)
        model = found.model
        is_sum = all(x is None for x in (model.votes, model.prototypes, model.member_votes))
        for item in (0, 7, 20):
            parts = found.parts(item)
            assert bool(parts) == is_sum
            score = found.model.scores(features, np.array([item]))[0]
            if is_sum:
                assert_allclose(sum(parts.values()), score, rtol=1e-9, atol=1e-9)
            rated = found.rated_items(item)
            learned = sum(parts.get(name, 0.0) for name in (LEARNED_WEIGHTS, LEARNED_ITEMS))
            if is_sum:
                assert_allclose(rated.amounts.sum(), learned, rtol=1e-4, atol=1e-5)
            assert set(rated.numbers) <= set(found.trained)
            pulls = found.feature_pulls(item).amounts
            shown = sum(parts.get(name, 0.0) for name in (EXPECTED, LEARNED_WEIGHTS,
                                                          LEARNED_RANKERS))  # fmt: skip
            if is_sum:
                assert_allclose(pulls.sum(), shown, rtol=1e-6, atol=1e-6)
        if found.was_learned is False:
            assert len(found.rated_items(3).numbers) == 0


@pytest.mark.parametrize("readout", ["last", "voted"])
def test_spreads_are_those_of_the_pulls(readout: str) -> None:
    for spec, panel in (
        (LearnerSpec("it", "mprank", True), {0: 2}),
        (LearnerSpec("it", "mprank", True, {"kernel": "rbf"}), {}),
        (LearnerSpec("it", "rankboost", True), {}),
        (LearnerSpec("it", "prank", False, {"readout": readout, "epochs": 3}), {}),
    ):
        found = influences(learn(spec, WITH_PRIOR, panel=panel), 0, WITH_PRIOR)
        by_item = [found.feature_pulls(item).amounts for item in range(N_ITEMS)]
        spreads = found.feature_spreads()
        assert_allclose(np.abs(spreads.amounts), np.std(by_item, axis=0), atol=1e-7)
        assert spreads.numbers.tolist() == list(range(D))
        rated = [found.rated_items(item).amounts for item in range(N_ITEMS)]
        assert_allclose(
            np.abs(found.rated_item_spreads().amounts), np.std(rated, axis=0), atol=1e-7
        )


def test_rated_items_of_a_linear_model_give_its_weights() -> None:
    found = influences(learn(LearnerSpec("it", "svrank", True), FEATURES), 0, FEATURES)
    rated = found.rated_items(5)
    X = item_rows(FEATURES, found.model, rated.numbers)
    assert_allclose(X.T @ rated.coefficients, found.model.weights, rtol=1e-6, atol=1e-7)


def test_votes_weigh_a_rated_item_by_the_rules_it_is_part_of() -> None:
    spec = LearnerSpec("it", "prank", False, {"readout": "voted", "epochs": 3})
    found = influences(learn(spec, FEATURES), 0, FEATURES)
    model = found.model
    assert model.votes is not None
    assert model.dual is not None
    assert model.support is not None
    X = item_rows(FEATURES, model, np.arange(N_ITEMS))
    mean = sum(
        votes * sum(model.dual[j] * float(X[model.support[j]] @ X[4]) for j in range(rule))
        for rule, votes in enumerate(model.votes)
    ) / sum(model.votes)
    assert_allclose(found.rated_items(4).amounts.sum(), mean, rtol=1e-9, atol=1e-12)


def test_the_strongest_come_first_and_ties_keep_their_order() -> None:
    pulls = Pulls(np.arange(4), np.arange(4.0), np.array([1.0, -3.0, 3.0, 0.0]))
    assert pulls.strongest(3).numbers.tolist() == [1, 2, 0]
    assert pulls.strongest(0).numbers.tolist() == []
