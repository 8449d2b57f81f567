"""Counts of the data: from records, from settings, by hand, and how ratings are spread."""

from __future__ import annotations

import pytest
from hypothesis import given as draw
from hypothesis import strategies as st

from spark_rank.config.schema import PrepareConfig, SynthesizeConfig
from spark_rank.data.synthetic import Population, user_ratings
from spark_rank.errors import ConfigError
from spark_rank.planning.sizes import (
    from_options,
    of_input,
    of_records,
    spread,
    synthetic,
    training_share,
)
from tests.records.counts import prepared_record


@draw(st.integers(1, 10**7), st.integers(1, 10**6), st.floats(0.0001, 1.0))
def test_stand_ins_are_spread_about_the_mean(users: int, items: int, density: float) -> None:
    ratings = max(users, round(users * items * density))
    sizes = spread(users, items, ratings, "x")
    own = sizes.of_users()
    assert own == sorted(own)
    assert own[0] >= 1.0
    assert sum(own) / len(own) >= sizes.mean * (1 - 1e-9)
    assert 1 <= sizes.heaviest <= items


def test_the_generated_data_set_is_foreseen() -> None:
    settings = SynthesizeConfig(users=400, items=300, median_ratings=40, activity_spread=1.0)
    population = Population(0, 300, 40.0, 1.0, 5)
    made = [len(user_ratings(population, user)[0]) for user in range(400)]
    sizes = synthetic(settings)
    assert (sizes.users, sizes.items) == (400, 300)
    assert sizes.ratings == pytest.approx(sum(made), rel=0.1)


def test_records_of_prepare_win_over_those_of_ingest() -> None:
    ingested = {"tables": {"users": 5, "items": 7, "ratings": 20}}
    prepared = prepared_record(4, 6, 16, 5)
    assert of_records({}, "r") is None
    first = of_records({"ingest": ingested}, "r")
    assert first is not None
    assert (first.users, first.items, first.ratings) == (5, 7, 20)
    second = of_records({"ingest": ingested, "prepare": prepared}, "r")
    assert second is not None
    assert (second.users, second.items, second.ratings, second.heaviest) == (4, 6, 16, 5)
    assert second.source == "counted by prepare in run r"


def test_bytes_of_input_are_ratings_by_format() -> None:
    plain = of_input(2_060_000_000, ["a.txt"], "netflix")
    assert plain.ratings == pytest.approx(100_000_000, rel=0.01)
    packed = of_input(2_060_000_000, ["a.txt.gz"], "netflix")
    assert packed.ratings == pytest.approx(4 * plain.ratings, rel=0.01)
    assert "guessed" in plain.source


def test_what_is_not_given_is_as_it_was() -> None:
    base = spread(1000, 500, 50_000, "counted")
    more = from_options(base, None, 4000, None)
    assert (more.users, more.items, more.ratings) == (4000, 500, 200_000)
    assert more.source == "given by --users; the others counted"
    longer = from_options(base, 200_000, None, None)
    assert (longer.users, longer.ratings) == (4000, 200_000)
    fewer_items = from_options(base, None, None, 20)
    assert fewer_items.ratings == 1000 * 20
    assert fewer_items.heaviest <= 20
    usual = from_options(None, None, 10, None)
    assert (usual.users, usual.items, usual.ratings) == (10, 17_770, 2090)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match="10 to 100 ratings of 10 items, not 101"):
        from_options(None, 101, 10, 10)
    with pytest.raises(ConfigError, match="give --ratings or --users"):
        from_options(None, None, None, 10)


def test_shares_to_learn_from() -> None:
    sizes = spread(10, 100, 100, "x")
    assert training_share(PrepareConfig(train_share=0.8), sizes) == 0.8
    assert training_share(PrepareConfig(split="k_fold", folds=5), sizes) == 0.8
    assert training_share(PrepareConfig(split="leave_last", leave_last=3), sizes) == 0.7
