"""The model of what users choose, against plain least squares, and its rows of users."""

from __future__ import annotations

import numpy as np
import pytest

from spark_rank.features import choice as module
from spark_rank.features.choice import Choice, learn_choice

RNG = np.random.default_rng(3)
N_USERS, N_ITEMS, TASTES = 400, 60, 3


def make_choices() -> tuple[np.ndarray, np.ndarray]:
    """Return items of users who mostly choose from one third of the items."""
    items, ends = [], [0]
    for user in range(N_USERS):
        size = int(RNG.integers(4, 12))
        odds = np.where(np.arange(N_ITEMS) % TASTES == user % TASTES, 1.0, 0.05)
        odds[-1] = 0.0  # nobody has this one
        items.append(RNG.choice(N_ITEMS, size, replace=False, p=odds / odds.sum()))
        ends.append(ends[-1] + size)
    return np.concatenate(items).astype(np.int32), np.array(ends, dtype=np.int64)


ITEMS, ENDS = make_choices()
CHOICE = learn_choice(ITEMS, ENDS, N_ITEMS, rank=8)


def test_half_a_round_is_weighted_least_squares() -> None:
    vectors = RNG.normal(size=(N_ITEMS, 4))
    found = module._solved(ENDS, ITEMS, vectors)
    ridge = module._RIDGE * np.sqrt(len(ITEMS) / N_USERS)
    for user in (0, 7, 99):
        chosen = np.zeros(N_ITEMS)
        chosen[ITEMS[ENDS[user] : ENDS[user + 1]]] = 1.0
        weight = module._ALL_PAIRS + chosen
        left = (vectors * weight[:, None]).T @ vectors + ridge * np.eye(4)
        # a rated pair is a 1 of weight 1 beside a 0 of the weight of all pairs
        assert found[user] == pytest.approx(np.linalg.solve(left, vectors.T @ chosen))


def test_codes_follow_the_formula() -> None:
    codes = CHOICE.codes(ITEMS, ENDS)
    for user in (0, 5):
        own = ITEMS[ENDS[user] : ENDS[user + 1]]
        rows = CHOICE.encoder.astype(np.float64)
        expected = (
            rows[own].sum(axis=0) / np.sqrt(len(own)) + rows[-2] + rows[-1] * np.log(len(own))
        )
        assert codes[user] == pytest.approx(expected)
    nobody = CHOICE.codes(np.empty(0, np.int32), np.array([0, 0]))
    assert nobody[0] == pytest.approx(CHOICE.encoder[-2])
    with pytest.raises(IndexError):
        CHOICE.codes(np.array([N_ITEMS], np.int32), np.array([0, 1]))


def test_users_choose_what_others_of_their_taste_chose() -> None:
    chances = CHOICE.codes(ITEMS, ENDS) @ CHOICE.decoder.T.astype(np.float64)
    own = np.arange(N_ITEMS)[None, :] % TASTES == np.arange(N_USERS)[:, None] % TASTES
    own[:, -1] = False
    other = ~own
    other[:, -1] = False
    assert np.mean(chances[own]) > 2 * np.mean(chances[other])
    assert not CHOICE.decoder[-1].any(), "nothing is known of an item that nobody chose"


def test_results_are_the_same_bits_again_and_scale_with_the_scale() -> None:
    again = learn_choice(ITEMS, ENDS, N_ITEMS, rank=8, scale=2.0)
    assert (again.encoder == CHOICE.encoder).all()
    assert (again.decoder == 2.0 * CHOICE.decoder).all()


def test_without_ratings_nothing_is_chosen() -> None:
    empty = learn_choice(np.empty(0, np.int32), np.array([0, 0]), 5, rank=2)
    assert isinstance(empty, Choice)
    assert not empty.codes(np.array([1], np.int32), np.array([0, 1])).any()
