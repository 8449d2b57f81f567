"""When a mean over users says something, and when one learner may be marked as the best."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spark_rank.metrics import batch_metrics, compare_paired
from spark_rank.metrics.meaning import (
    FEWEST_USERS,
    FREE_FOR_A_CONSTANT,
    NOTHING_TO_ORDER,
    SCORES_ALL_EQUAL,
    Evidence,
    enough_users,
    nothing_learned,
)

BASELINES = ("constant", "item_offset")


def evidence(means: dict[str, dict[str, Any]], users: int = 100, **status: Any) -> Evidence:
    counts = {name: {metric: users for metric, mean in own.items() if mean is not None}
              for name, own in means.items()}  # fmt: skip
    return Evidence(means, counts, {name: {"learned": users} for name in means} | status, BASELINES)


def test_fewer_users_are_never_told_from_chance() -> None:
    for users in range(1, 2 * FEWEST_USERS):
        found = compare_paired(np.zeros(users), np.ones(users))
        assert found.sign_p is not None
        assert (found.sign_p < 0.05) == enough_users(users)
    assert not enough_users(None)


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ({"learned": 1, "fallback: too_few_ratings": 9}, None),
        ({"approximated: landmarks": 3}, None),
        ({"fallback: no_features": 3}, "nothing learned (no features)"),
        ({"fallback: b": 3, "failed: a": 1}, "nothing learned (a, b)"),
        ({}, None),
    ],
)
def test_a_learner_without_a_learned_user_says_nothing(
    status: dict[str, int], said: str | None
) -> None:
    assert nothing_learned(status) == said


def test_equal_ratings_are_no_success() -> None:
    found = evidence({"mine": {"msd": 0.0, "misranking": None},
                      "constant": {"msd": 0.0, "misranking": None}})  # fmt: skip
    assert found.nothing_because("mine") == NOTHING_TO_ORDER
    assert found.mean("mine", "msd") is None
    assert found.best("msd", higher=False) is None


def test_equal_scores_say_nothing_except_of_a_baseline() -> None:
    found = evidence({"mine": {"msd": 1.0, "misranking": 1.0},
                      "item_offset": {"msd": 1.0, "misranking": 1.0},
                      "other": {"msd": 2.0, "misranking": 0.4}})  # fmt: skip
    assert found.nothing_because("mine") == SCORES_ALL_EQUAL
    assert found.mean("item_offset", "msd") == 1.0
    assert found.best("misranking", higher=False) == 0.4


def test_a_fallback_is_not_the_best() -> None:
    found = evidence({"mine": {"msd": 1.0, "misranking": 0.3},
                      "item_offset": {"msd": 1.2, "misranking": 0.4},
                      "constant": {"msd": 1.5, "misranking": 1.0}},
                     mine={"fallback: no_features": 100})  # fmt: skip
    assert found.mean("mine", "msd") is None
    assert found.best("msd", higher=False) is None  # baselines alone are no result


@pytest.mark.parametrize("users", [2, FEWEST_USERS - 1, FEWEST_USERS])
def test_the_best_needs_users_and_a_rival(users: int) -> None:
    means = {"mine": {"msd": 1.0, "misranking": 0.3}, "constant": {"msd": 2.0, "misranking": 1.0}}
    assert evidence(means, users).best("msd", higher=False) == (1.0 if users > 5 else None)
    assert evidence(means, users).best("msd", higher=True) == (2.0 if users > 5 else None)
    del means["constant"]
    assert evidence(means, users).best("msd", higher=False) is None


def test_costs_that_a_constant_has_none_of_have_no_best() -> None:
    """By the metrics themselves, on ratings at random: these three and no other."""
    random = np.random.default_rng(0)
    ratings = random.integers(1, 6, 500).astype(float)
    free = batch_metrics(
        np.full(500, 3.0), ratings, [0, 500], on_rating_scale=[True], top=10, relevant_from=4.0,
        epsilon=0.25, levels=[1.0, 2.0, 3.0, 4.0, 5.0],
    )  # fmt: skip
    assert {name for name, values in free.items() if values[0] == 0.0} == FREE_FOR_A_CONSTANT
    found = evidence({"mine": {"hr1": 0.3, "misranking": 0.3}, "constant": {"hr1": 0.0,
                      "misranking": 1.0}})  # fmt: skip
    assert found.best("hr1", higher=False) is None


def test_a_record_without_numbers_of_users_is_read() -> None:
    means, status = {"mine": {"msd": 1.0, "misranking": 0.3}}, {"mine": {"learned": 9}}
    found = Evidence(means, {}, status, BASELINES)
    assert found.mean("mine", "msd") == 1.0
    assert found.count("mine", "msd") is None
