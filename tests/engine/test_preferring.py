"""A batch of users put in order, without Spark."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spark_rank.engine.preferring import RankJob, rank_batches, rank_items
from spark_rank.features.files import FeatureFiles, ItemFeatures, MappedFile
from spark_rank.metrics import pairwise_misranking

NO_FILE = MappedFile("none", "")
FILES = FeatureFiles(NO_FILE, NO_FILE, NO_FILE, NO_FILE)
IDS = pa.array([f"i{n}" for n in range(10)])


def open_features(files: FeatureFiles) -> ItemFeatures:
    return ItemFeatures(
        np.empty((10, 0), np.float32), np.zeros(10), np.empty((0, 0), np.float32), IDS
    )


def job(preference: str = "scores", method: str = "quicksort", top: int | None = None) -> RankJob:
    return RankJob(preference, method, top, FILES)


def rank(users: list[dict[str, Any]], how: RankJob, size: int = 100) -> list[dict[str, Any]]:
    schema = pa.schema(
        [("user_id", pa.string()), ("items", pa.list_(pa.int32())),
         ("ratings", pa.list_(pa.float32())), ("scores", pa.list_(pa.float32())),
         ("draw", pa.int64())]
    )  # fmt: skip
    whole = pa.RecordBatch.from_pylist(users, schema)
    batches = (whole.slice(start, size) for start in range(0, len(users), size))
    return [row for out in rank_batches(batches, how, open_features) for row in out.to_pylist()]


USERS = [
    {"user_id": "a", "items": [4, 2, 9, 0], "ratings": [1.0, 5.0, 3.0, 2.0],
     "scores": [0.1, 0.9, 0.3, 0.2], "draw": -7},
    {"user_id": "b", "items": [], "ratings": [], "scores": [], "draw": 1},
    {"user_id": "c", "items": [5], "ratings": [2.0], "scores": [0.0], "draw": 2},
]  # fmt: skip


@pytest.mark.parametrize("method", ["quicksort", "degree"])
def test_scores_without_ties_give_the_order_of_the_scores(method: str) -> None:
    a, b, c = rank(USERS, job(method=method))
    assert a["items"] == ["i2", "i9", "i0", "i4"]
    assert (a["preference_loss"], a["ranking_loss"], a["n_items"]) == (0.0, 0.0, 4)
    assert 3 <= a["calls"] <= 6
    assert (b["items"], b["calls"], b["n_items"], b["ranking_loss"]) == ([], 0, 0, None)
    assert (c["items"], c["calls"]) == (["i5"], 0)


def test_top_gives_the_beginning_and_no_loss_of_the_whole() -> None:
    a, b, _ = rank(USERS, job(top=2))
    assert (a["items"], a["ranking_loss"], a["n_items"]) == (["i2", "i9"], None, 4)
    assert b["items"] == []


def test_batches_change_nothing() -> None:
    tied = [{**USERS[0], "user_id": str(n), "scores": [0.5] * 4, "draw": n} for n in range(20)]
    whole = rank(tied, job())
    assert whole == rank(tied, job(), size=3)
    assert len({tuple(row["items"]) for row in whole}) > 5  # ties are drawn, user by user


def test_votes_may_go_in_a_circle() -> None:
    # three learners, three items: each is preferred to the next by two of three
    scores = np.array([[3.0, 2.0, 1.0], [1.0, 3.0, 2.0], [2.0, 1.0, 3.0]])
    ratings = np.array([5.0, 3.0, 1.0])
    orders = {
        tuple(rank_items(scores, ratings, np.random.default_rng(seed), job("votes"))["order"])
        for seed in range(60)
    }
    assert {(0, 1, 2), (1, 2, 0), (2, 0, 1)} <= orders


def test_the_loss_of_a_ranking_without_ties_is_its_misranking() -> None:
    rng = np.random.default_rng(5)
    ratings = rng.permutation(9).astype(float)
    scores = rng.normal(size=(1, 9))
    row = rank_items(scores, ratings, rng, job())
    assert row["ranking_loss"] == pytest.approx(pairwise_misranking(scores[0], ratings))
    assert row["preference_loss"] == pytest.approx(row["ranking_loss"])
