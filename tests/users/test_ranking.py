"""A worker ranks users' held-out items, without Spark."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spark_rank.features.files import FeatureFiles, ItemFeatures, MappedFile
from spark_rank.metrics import pairwise_misranking
from spark_rank.tables.contract import arrow_schema
from spark_rank.tables.contracts import BLOCKS, ENSEMBLE_MODELS
from spark_rank.users.held_out import in_order
from spark_rank.users.ranking import MODEL_COLUMNS, RankJob, rank_bucket, user_keys

NO_FILE = MappedFile("none", "")
FILES = FeatureFiles(NO_FILE, NO_FILE, NO_FILE, NO_FILE)
IDS = pa.array([f"i{n}" for n in range(10)])
Row = dict[str, Any]


def open_features(files: FeatureFiles) -> ItemFeatures:
    """Return features that let an item's own weight be its score."""
    nothing = np.empty((0, 10), np.float32)
    return ItemFeatures(np.eye(10, dtype=np.float32), np.zeros(10), nothing, IDS)


def job(preference: str = "scores", method: str = "quicksort", top: int | None = None,
        learners: tuple[str, ...] = ("one",)) -> RankJob:  # fmt: skip
    return RankJob(learners, preference, method, top, 3, FILES)


def user(name: str, items: list[int], ratings: list[float], n_train: int = 1) -> Row:
    """Return a block: one training rating of item 1, then the held-out ratings."""
    return {"user_id": name, "items": [1] * n_train + items, "ratings": [3.0] * n_train + ratings,
            "n_train": n_train}  # fmt: skip


def scored(name: str, scores: dict[int, float] | None, learner: str = "one", **more: Any) -> Row:
    """Return a model that gives every item its score, 0 where none is named."""
    weights = None if scores is None else [scores.get(item, 0.0) for item in range(10)]
    return {"user_id": name, "learner": learner, "bucket": 0, "weights": weights,
            "status": "failed" if scores is None else "learned", **more}  # fmt: skip


def rank(
    blocks: list[Row], models: list[Row], how: RankJob, opened: Any = open_features
) -> list[Row]:
    numbered = [{**block, "user": number, "bucket": 0} for number, block in enumerate(blocks)]
    tables = [
        pa.Table.from_pylist(rows, arrow_schema(contract.columns))
        for rows, contract in ((numbered, BLOCKS), (models, ENSEMBLE_MODELS))
    ]
    made = rank_bucket(tables[0], tables[1].select(MODEL_COLUMNS), how, opened)
    return [row for out in made for row in out.to_pylist()]


USERS = [
    user("a", [4, 2, 9, 0], [1.0, 5.0, 3.0, 2.0]),
    user("nobody", [3], [2.0]),
    user("b", [], [], 2),
    user("c", [5], [2.0]),
    user("failed", [5, 6], [2.0, 1.0]),
]
MODELS = [
    scored("c", {5: 0.0}),
    scored("a", {4: 0.1, 2: 0.9, 9: 0.3, 0: 0.2}),
    scored("a", {4: 0.9, 2: 0.1, 9: 0.2, 0: 0.3}, "two"),
    scored("b", {}),
    scored("failed", None),
]


@pytest.mark.parametrize("method", ["quicksort", "degree"])
@pytest.mark.parametrize("size", [1, 100])
def test_scores_without_ties_give_the_order_of_the_scores(
    method: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_order, "__defaults__", (size,))
    a, b, c = rank(USERS, MODELS, job(method=method))
    assert [row["user_id"] for row in (a, b, c)] == ["a", "b", "c"], "in the order of the blocks"
    assert a["items"] == ["i2", "i9", "i0", "i4"]
    assert (a["preference_loss"], a["ranking_loss"], a["n_items"]) == (0.0, 0.0, 4)
    assert 3 <= a["calls"] <= 6
    assert (b["items"], b["calls"], b["n_items"], b["ranking_loss"]) == ([], 0, 0, None)
    assert (c["items"], c["calls"], c["preference_loss"]) == (["i5"], 0, None)


def test_top_gives_the_beginning_and_no_loss_of_the_whole() -> None:
    a, b, _ = rank(USERS, MODELS, job(top=2))
    assert (a["items"], a["ranking_loss"], a["n_items"]) == (["i2", "i9"], None, 4)
    assert b["items"] == []


def test_another_learner_and_users_that_not_all_have_scored() -> None:
    (a,) = rank(USERS, MODELS, job(learners=("two",)))
    assert a["items"] == ["i4", "i0", "i9", "i2"]
    (both,) = rank(USERS, MODELS, job("votes", "degree", learners=("one", "two")))
    # of the middle two each learner prefers another one: all are equally good
    assert (both["user_id"], both["items"]) == ("a", ["i4", "i2", "i9", "i0"])


def test_batches_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [str(n) for n in range(20)]
    blocks = [user(name, [4, 2, 9, 0], [1.0, 5.0, 3.0, 2.0]) for name in names]
    tied = [scored(name, dict.fromkeys(range(10), 0.5)) for name in names]
    whole = rank(blocks, tied, job())
    monkeypatch.setattr(in_order, "__defaults__", (3,))
    assert whole == rank(blocks, tied[::-1], job())
    assert len({tuple(row["items"]) for row in whole}) > 5  # ties are drawn, user by user


def test_votes_may_go_in_a_circle() -> None:
    # three learners, three items: each is preferred to the next by two of three
    names = [str(n) for n in range(60)]
    blocks = [user(name, [0, 1, 2], [5.0, 3.0, 1.0]) for name in names]
    models = [
        scored(name, scores, label)
        for name in names
        for label, scores in (
            ("x", {0: 3.0, 1: 2.0, 2: 1.0}),
            ("y", {0: 1.0, 1: 3.0, 2: 2.0}),
            ("z", {0: 2.0, 1: 1.0, 2: 3.0}),
        )
    ]
    found = rank(blocks, models, job("votes", learners=("x", "y", "z")))
    circle = {("i0", "i1", "i2"), ("i1", "i2", "i0"), ("i2", "i0", "i1")}
    assert circle <= {tuple(row["items"]) for row in found}
    for row in found:
        assert row["preference_loss"] == pytest.approx((1 / 3 + 2 / 3 + 1 / 3) / 3)


def test_members_vote_and_without_members_the_model_decides() -> None:
    def opened(files: FeatureFiles) -> ItemFeatures:
        return ItemFeatures(np.arange(10, dtype=np.float32)[:, None], np.zeros(10),
                            np.empty((0, 0), np.float32), IDS)  # fmt: skip

    # rules of a weight on the feature, one on the offset, and a threshold: two members like
    # great numbers, one the small ones
    members = {"n_members": 3, "members": [1.0, 0.0, 0.5, 2.0, 0.0, 0.5, -1.0, 0.0, 0.5],
               "hyperparameters": "{}", "kernel": "linear", "offset_weight": 0.0,
               "intercept": 0.0, "thresholds": [0.5]}  # fmt: skip
    blocks = [user("x", [4, 7, 2], [3.0, 2.0, 1.0]), user("y", [4, 7, 2], [3.0, 2.0, 1.0])]
    voting = {**scored("x", {}), **members, "weights": [0.0]}
    alone = {**scored("y", {}), "weights": [0.1], "offset_weight": 0.0, "intercept": 0.0}
    x, y = rank(blocks, [voting, alone], job("members", "degree"), opened)
    assert x["items"] == ["i7", "i4", "i2"]
    # i7 over i4 is wrong: two of three say so; of i4 and i7 over i2 one of three does not
    assert x["preference_loss"] == pytest.approx((2 / 3 + 1 / 3 + 1 / 3) / 3)
    assert y["items"] == ["i7", "i4", "i2"]


def test_the_loss_of_a_ranking_without_ties_is_its_misranking() -> None:
    rng = np.random.default_rng(5)
    ratings, scores = rng.permutation(9).astype(float), rng.normal(size=9).astype(np.float32)
    model = scored("a", dict(enumerate(scores.tolist())))
    (row,) = rank([user("a", [*range(9)], ratings.tolist())], [model], job())
    assert row["ranking_loss"] == pytest.approx(pairwise_misranking(scores, ratings))
    assert row["preference_loss"] == pytest.approx(row["ranking_loss"])


def test_a_model_with_a_score_that_is_no_number_has_no_ranking() -> None:
    assert rank(USERS, [scored("a", {2: float("nan")})], job()) == []


def test_draws_depend_on_seed_and_user() -> None:
    users = pa.array(["a", "b"])
    one, other = user_keys(users, 1), user_keys(users, 2)
    assert len({*one.tolist(), *other.tolist()}) == 4
    assert user_keys(users.slice(1), 1).tolist() == one[1:].tolist()
