"""Held-out scores from blocks and model rows equal those of the learners."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose

from spark_rank.features.files import ItemFeatures
from spark_rank.users.held_out import HeldOut, held_out, in_order, predictions
from spark_rank.users.specs import BASELINE_SPECS, LearnerSpec
from tests.users.learned_rows import (
    FEATURES,
    SCALE,
    SPECS,
    USERS,
    WITH_PRIOR,
    blocks,
    ident,
    learn,
    own_predictions,
)


def check(spec: LearnerSpec, features: ItemFeatures, panel: dict[int, int] | None = None) -> None:
    found = predictions(learn(spec, features, panel), held_out(blocks()), features, SCALE)
    said = own_predictions(spec, features, panel)
    for scores, ranks, own in zip(
        found.scores.to_pylist(), found.ranks.to_pylist(), said, strict=True
    ):
        assert own is not None
        assert_allclose(scores, own.scores, rtol=2e-5, atol=2e-5)
        assert ranks == own.ranks
    assert found.ratings.to_pylist() == [ratings[n_train:] for _, _, ratings, n_train in USERS]


@pytest.mark.parametrize("spec", SPECS[::3], ids=ident)
@pytest.mark.parametrize("features", [FEATURES, WITH_PRIOR], ids=["plain", "prior"])
def test_a_block_and_a_row_give_what_the_learner_says(
    spec: LearnerSpec, features: ItemFeatures
) -> None:
    check(spec, features)


@pytest.mark.parametrize("spec", BASELINE_SPECS, ids=ident)
def test_baselines_too(spec: LearnerSpec) -> None:
    check(spec, FEATURES)


@pytest.mark.parametrize("learner", ["mprank", "prank", "rankboost"])
def test_a_users_own_column_counts_as_nothing(learner: str) -> None:
    check(LearnerSpec("it", learner, True), FEATURES, {0: 1, 2: 2})


def test_without_features_constant_and_offset_are_left() -> None:
    bare = replace(FEATURES, matrix=FEATURES.matrix[:, :0], prior=FEATURES.prior[:, :0])
    check(LearnerSpec("it", "mprank", True), bare)


def test_a_failed_model_predicts_nothing() -> None:
    rows = learn(LearnerSpec("it", "mprank", True))
    place = rows.schema.get_field_index("status")
    failed = rows.set_column(place, "status", pa.array(["failed", "fallback", "fallback"]))
    found = predictions(failed, held_out(blocks()), FEATURES, SCALE)
    assert found.scores.is_valid().to_pylist() == [False, True, True]
    assert found.ratings.null_count == 0


def test_a_model_with_a_score_beyond_all_numbers_predicts_nothing() -> None:
    matrix = FEATURES.matrix.copy()
    matrix[USERS[0][1][-1]] = np.float32(3e38)
    rows = learn(LearnerSpec("it", "mprank", True))
    place = rows.schema.get_field_index("weights")
    huge = pa.array([[3e38, 3e38, 3e38], None, None], rows.column("weights").type)
    rows = rows.set_column(place, rows.schema.field(place), huge)
    found = predictions(rows, held_out(blocks()), replace(FEATURES, matrix=matrix), SCALE)
    assert found.scores.is_valid().to_pylist() == [False, True, True]


def naive(users: Sequence[int]) -> list[tuple[str, list[int], list[float]]]:
    return [
        (f"user {user}", items[n_train:], ratings[n_train:])
        for user, items, ratings, n_train in (USERS[place] for place in users)
    ]


def listed(own: HeldOut) -> list[tuple[str, list[int], list[float]]]:
    return [
        (own.users[user].as_py(), own.items[a:b].tolist(), own.ratings[a:b].tolist())
        for user, (a, b) in enumerate(zip(own.ends[:-1], own.ends[1:], strict=True))
    ]


@pytest.mark.parametrize("users", [[0, 1, 2], [2, 0], [1], [], [2, 2, 0, 1, 2]])
def test_users_are_taken_in_any_order_and_any_number_of_times(users: list[int]) -> None:
    assert listed(held_out(blocks()).of(np.array(users, dtype=int))) == naive(users)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_blocks_come_in_the_order_of_their_users(size: int) -> None:
    shuffled = pa.Table.from_batches([blocks()]).take(pa.array([2, 0, 1]))
    batches = list(in_order(shuffled, size))
    assert [user for batch in batches for user in batch.column("user").to_pylist()] == [0, 1, 2]
    assert max(len(batch) for batch in batches) <= size
    assert list(in_order(shuffled.slice(0, 0), size)) == []
