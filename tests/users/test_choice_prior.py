"""How a user's own errors change the choice that the sample made."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from spark_rank.users.choice_prior import ChoicePrior, mean_and_error, measured_prior

POINTS = 3
# of all users, the second point is the best; own errors look best at the last, as when features
# have seen what is left out
CURVE = np.array([2.2, 2.0, 2.1])
OPTIMISM = np.array([0.1, 0.4, 0.9])


def users(rng: Any, count: int, *, telling: float) -> tuple[Any, list[Any], Any]:
    """Return held-back errors, own errors and sizes; the share `telling` of a user is in both."""
    differences = rng.normal(scale=0.5, size=(count, POINTS))
    noise = rng.normal(scale=0.5, size=(2, count, POINTS))
    held_back = CURVE + telling * differences + noise[0] / 5
    own = CURVE - OPTIMISM + telling * differences + (1.0 - telling) * noise[1]
    return held_back, list(own), rng.integers(20, 200, count)


def test_errors_that_are_noise_move_nobody() -> None:
    for seed in range(20):
        found = measured_prior(*users(np.random.default_rng(seed), 300, telling=0.0))
        assert found is None


def test_errors_that_tell_something_are_trusted_and_choose_better() -> None:
    rng = np.random.default_rng(1)
    prior = measured_prior(*users(rng, 300, telling=1.0))
    assert prior is not None
    held_back, own, sizes = users(rng, 300, telling=1.0)
    chosen = [prior.best(one, int(n)) for one, n in zip(own, sizes, strict=True)]
    assert len(set(chosen)) == POINTS
    alone = [int(np.argmin(one)) for one in own]
    means = [held_back[np.arange(300), points].mean() for points in (chosen, alone)]
    assert means[0] < min(means[1], held_back[:, 1].mean())


@pytest.mark.parametrize("telling", [0.0, 0.5, 1.0])
def test_optimism_that_all_users_share_changes_no_choice(telling: float) -> None:
    held_back, own, sizes = users(np.random.default_rng(2), 300, telling=telling)
    more = [one - np.array([0.0, 1.0, 5.0]) for one in own]
    first, second = (measured_prior(held_back, errors, sizes) for errors in (own, more))
    if first is None or second is None:
        assert first is second
        return
    assert first.ratings == second.ratings
    for one, other, size in zip(own, more, sizes, strict=True):
        assert first.best(one, int(size)) == second.best(other, int(size))


def test_a_user_moves_by_the_share_of_his_ratings() -> None:
    prior = ChoicePrior((1.0, 1.1), (0.5, 0.4), 100.0)
    # the own errors set the second point 0.3 lower than the sample's do; with 100 ratings half of
    # it counts, 0.15 > 0.1, with 20 a sixth, 0.05
    own = np.array([0.5, 0.1])
    assert prior.best(own, 100) == 1
    assert prior.best(own, 20) == 0


def test_the_order_of_the_users_decides_nothing() -> None:
    held_back, own, sizes = users(np.random.default_rng(3), 200, telling=1.0)
    order = np.random.default_rng(4).permutation(200)
    shuffled = measured_prior(held_back[order], [own[i] for i in order], sizes[order])
    assert shuffled == measured_prior(held_back, own, sizes)


def test_who_cannot_tell_takes_the_sample_s_point() -> None:
    prior = ChoicePrior((2.0, 1.0, math.inf), (2.0, 1.0, 1.0), 10.0)
    assert prior.best(None, 50) == 1
    assert prior.best(np.full(3, np.inf), 50) == 1
    # a point that the sample or the user cannot learn is not taken, however good it looks
    assert prior.best(np.array([0.5, math.inf, -99.0]), 10**6) == 0


def test_nothing_to_measure_by_is_no_prior() -> None:
    held_back, own, sizes = users(np.random.default_rng(5), 50, telling=1.0)
    assert measured_prior(held_back, [None] * 50, sizes) is None
    assert measured_prior(held_back[:0], [], sizes[:0]) is None
    assert measured_prior(held_back[:1], own[:1], sizes[:1]) is None
    assert measured_prior(np.full_like(held_back, np.inf), own, sizes) is None


def test_a_manifest_keeps_it() -> None:
    prior = ChoicePrior((2.0, 1.0 / 3.0, math.inf), (math.inf, 0.1, 0.2), 30.0)
    facts = prior.to_facts()
    json.dumps(asdict(facts), allow_nan=False)
    assert ChoicePrior.from_facts(facts) == prior


def test_mean_and_error_are_those_of_the_textbook() -> None:
    values = np.random.default_rng(6).normal(size=40)
    assert_allclose(mean_and_error(values), (values.mean(), values.std(ddof=1) / math.sqrt(40)))
    assert mean_and_error(values[:0]) == (math.inf, math.inf)
    assert mean_and_error(values[:1]) == (values[0], math.inf)
    assert mean_and_error(np.array([1.0, np.inf])) == (math.inf, math.inf)
