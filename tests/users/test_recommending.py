"""A batch of users gets lists of unseen items, without Spark."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spark_rank.features.choice import Choice
from spark_rank.features.files import FeatureFiles, ItemFeatures, MappedFile
from spark_rank.users import recommending
from spark_rank.users.diversifying import directions, diversified
from spark_rank.users.joining import MODELS_SCHEMA, WANTED_COLUMNS
from spark_rank.users.rank_scale import RankScale
from spark_rank.users.recommending import (
    RECOMMENDATION_SCHEMA,
    ListOrder,
    RecommendJob,
    facts_as_bytes,
    recommend_batches,
)
from spark_rank.users.stored_models import StoredModels

N_ITEMS, D = 40, 3
RNG = np.random.default_rng(2)
# ids whose order as text is not that of the numbers
IDS = pa.array([f"item {i * 7 % N_ITEMS}" for i in range(N_ITEMS)])
FEATURES = ItemFeatures(
    RNG.normal(size=(N_ITEMS, D)).astype(np.float32),
    RNG.normal(size=N_ITEMS),
    np.empty((0, D), np.float32),
    IDS,
)
NO_FILE = MappedFile("none", "")
SCALE = RankScale((1.0, 2.0, 3.0, 4.0, 5.0))
JOB = RecommendJob(FeatureFiles(NO_FILE, NO_FILE, NO_FILE, NO_FILE), "it", 5, 2, SCALE, 1.0, 5.0)
SCHEMA = pa.schema(
    [*(MODELS_SCHEMA.field(name) for name in WANTED_COLUMNS if name in MODELS_SCHEMA.names),
     ("items", pa.list_(pa.int32())), ("bucket", pa.int32())]
)  # fmt: skip


@dataclass
class Facts:
    value: bytes


def facts(n_ratings: Any = 9, candidate: Any = True) -> Facts:
    columns = {
        "title": pa.array([None if i % 3 else f"title {i}" for i in range(N_ITEMS)], pa.string()),
        "n_ratings": pa.array(np.broadcast_to(n_ratings, N_ITEMS), pa.int32()),
        "candidate": pa.array(np.broadcast_to(candidate, N_ITEMS), pa.bool_()),
    }
    return Facts(facts_as_bytes(pa.record_batch(columns)))


def user(name: str, items: list[int], **columns: Any) -> dict[str, Any]:
    """Return a user with a linear model, unless other columns say otherwise."""
    linear = {"status": "learned", "on_rating_scale": True, "intercept": 3.0, "offset_weight": 1.0,
              "hyperparameters": "{}", "weights": [0.5, -1.0, 0.25], "bucket": 1}  # fmt: skip
    return {"user_id": name, "items": items, **linear, **columns}


KERNEL = {"weights": [0.1, 0.1, 0.1], "kernel": "rbf", "gamma": 0.5, "dual": [1.0, -2.0],
          "support_items": ["item 0", "item 7"]}  # fmt: skip
USERS = [
    user("seen some", list(range(0, N_ITEMS, 2))),
    user("own column", [3], excluded_feature=1, bucket=0),
    user("seen nearly all", list(range(1, N_ITEMS))),
    user("seen all", list(range(N_ITEMS))),
    user("all alike", [], weights=[0.0, 0.0, 0.0], offset_weight=0.0),
    user("cold", [1], status="fallback", reason="too_few_ratings", weights=None),
    user("failed", [1], status="failed", reason="numeric_failure", weights=None),
    user("kernel", [5, 6], **KERNEL),
    user("ranks", [2], on_rating_scale=False, intercept=0.0, thresholds=[-1.0, 0.0, 0.5, 1.0]),
    user("order", [2], on_rating_scale=False, weights=None, ranker_features=[0, 2],
         ranker_cuts=[0.0, 0.5], ranker_below=[False, True], ranker_alphas=[1.0, 0.5]),
    user("prototypes", [], on_rating_scale=False, weights=None,
         prototypes=RNG.normal(size=20).round(2).tolist()),
    user("beyond single precision", [0], weights=[1e30, 1e30, -1e30]),
    user("approximated", [9], status="approximated", reason="landmarks"),
]  # fmt: skip


def batch(users: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        [{name: u.get(name) for name in WANTED_COLUMNS} for u in users], SCHEMA
    )


def recommend(
    users: list[dict[str, Any]],
    job: RecommendJob = JOB,
    known: Facts | None = None,
    size: int = 99,
    features: ItemFeatures = FEATURES,
) -> list[dict[str, Any]]:
    whole = batch(users)
    parts = [whole.slice(start, size) for start in range(0, len(users), size)]
    made = recommend_batches(iter(parts), job, known or facts(), lambda files: features)
    rows = []
    for out in made:
        assert out.schema == RECOMMENDATION_SCHEMA
        rows += out.to_pylist()
    return rows


def naive(one: dict[str, Any], allowed: set[int], size: int, sign: float) -> list[tuple[str, Any]]:
    """Return ids and scores in order: by score, then by id as text."""
    scores = StoredModels(batch([one]), IDS)[0].scores(FEATURES, np.arange(N_ITEMS))
    ids = IDS.to_pylist()
    unseen = sorted(allowed - set(one["items"]), key=lambda i: (-sign * scores[i], ids[i]))
    return [(ids[i], scores[i]) for i in unseen[:size]]


def numbers_of(chosen: list[tuple[str, Any]]) -> set[int]:
    return {IDS.to_pylist().index(name) for name, _ in chosen}


@pytest.mark.parametrize("one", USERS, ids=lambda one: one["user_id"])
def test_lists_are_the_models_scores_in_order(one: dict[str, Any]) -> None:
    rows = recommend([USERS[0], one, USERS[1]])
    allowed = set(range(N_ITEMS))
    for name, size, sign in (("top", 5, 1.0), ("bottom", 2, -1.0)):
        listed = [row for row in rows if row["user_id"] == one["user_id"] and row["list"] == name]
        if one in USERS[:2]:
            listed = listed[:size]
        expected = naive(one, allowed, size, sign)
        assert [(row["item_id"], row["score"]) for row in listed] == expected
        allowed -= numbers_of(expected)  # an item of the top list is not in the bottom list
        assert [row["position"] for row in listed] == list(range(1, len(listed) + 1))
    assert all(row["learner"] == "it" for row in rows)
    assert {row["bucket"] for row in rows if row["user_id"] == one["user_id"]} <= {one["bucket"]}


CHOICE = Choice(
    RNG.normal(size=(N_ITEMS, 2)).astype(np.float32),
    RNG.normal(size=(N_ITEMS + 2, 2)).astype(np.float32),
)
CHOOSING = replace(FEATURES, choice=CHOICE)
BLENDED = replace(JOB, beta=0.8)


def blended(one: dict[str, Any]) -> dict[int, tuple[float, float]]:
    """Return score and value in the list of every item, item by item."""
    scores = StoredModels(batch([one]), IDS)[0].scores(FEATURES, np.arange(N_ITEMS))
    own, n = one["items"], len(one["items"])
    rows = CHOICE.encoder.astype(float)
    code = rows[own].sum(axis=0) / np.sqrt(max(n, 1)) + rows[-2] + rows[-1] * np.log(max(n, 1))
    beta = 0.8 if one["on_rating_scale"] else 0.0
    chances = CHOICE.decoder.astype(float) @ code
    return {i: (scores[i], scores[i] + beta * chances[i]) for i in range(N_ITEMS)}


@pytest.mark.parametrize("one", USERS, ids=lambda one: one["user_id"])
def test_with_beta_lists_are_ordered_by_score_and_choice(one: dict[str, Any]) -> None:
    ids = IDS.to_pylist()
    rows = recommend([USERS[0], one], BLENDED, features=CHOOSING)
    rows = [row for row in rows if row["user_id"] == one["user_id"] and row["list"] == "top"]
    values = blended(one)
    unseen = sorted(set(range(N_ITEMS)) - set(one["items"]), key=lambda i: (-values[i][1], ids[i]))
    assert [row["item_id"] for row in rows[:5]] == [ids[i] for i in unseen[:5]]
    for row, item in zip(rows, unseen[:5], strict=False):
        assert (row["score"], row["list_score"]) == pytest.approx(values[item])


def test_batches_change_no_bit_of_a_blend(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = recommend(USERS, BLENDED, features=CHOOSING)
    assert recommend(USERS, BLENDED, size=1, features=CHOOSING) == whole
    monkeypatch.setattr(recommending, "_MOST_COLUMNS", 7)
    monkeypatch.setattr(recommending, "_BLOCK", 21)
    assert recommend(USERS, BLENDED, features=CHOOSING) == whole
    # the same scores of the models as without choices, and their lists without a beta
    plain = recommend(USERS, features=CHOOSING)
    assert plain == recommend(USERS)
    assert all(row["score"] == row["list_score"] for row in plain)


def test_a_list_may_be_more_diverse_or_end_at_a_gap() -> None:
    one = USERS[0]
    pool = naive(one, set(range(N_ITEMS)), 20, 1.0)
    order = ListOrder(diversity=0.5, pool=20)
    rows = recommend([one], replace(JOB, order=order, bottom=0))
    numbers = [IDS.to_pylist().index(name) for name, _ in pool]
    taken = diversified(
        np.array([[score for _, score in pool]]), np.arange(20)[None, :],
        directions(FEATURES.matrix)[numbers], 0.5, 5,
    )  # fmt: skip
    assert [row["item_id"] for row in rows] == [pool[place][0] for place in taken[0]]
    assert rows[0]["item_id"] == pool[0][0]
    gaps = -np.diff([score for _, score in pool[:5]])
    least = float(np.sort(gaps)[-2])
    cut = recommend([one], replace(JOB, order=ListOrder(cut="gap", gap=least), bottom=0))
    assert len(cut) == int(np.flatnonzero(gaps >= least)[0]) + 1 < 5
    assert [row["item_id"] for row in cut] == [name for name, _ in pool[: len(cut)]]


def test_rated_items_are_listed_where_they_may_be() -> None:
    rows = recommend(USERS[:2], replace(JOB, rated=True, bottom=0))
    for one in USERS[:2]:
        own = [row["item_id"] for row in rows if row["user_id"] == one["user_id"]]
        assert own == [name for name, _ in naive({**one, "items": []}, set(range(N_ITEMS)), 5, 1.0)]


def test_batches_and_blocks_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = recommend(USERS)
    assert recommend(USERS, size=1) == whole == recommend(USERS, size=4)
    monkeypatch.setattr(recommending, "_MOST_COLUMNS", 7)
    monkeypatch.setattr(recommending, "_BLOCK", 21)
    assert recommend(USERS) == whole
    assert recommend([]) == []
    # kernel values of other blocks may be rounded otherwise
    monkeypatch.setattr(recommending, "_MOST_ROWS", 9)
    again = recommend(USERS)
    assert [row["item_id"] for row in again] == [row["item_id"] for row in whole]
    assert [row["score"] for row in again] == pytest.approx([row["score"] for row in whole])


def test_equal_scores_go_by_the_id_as_text() -> None:
    rows = [row for row in recommend([USERS[4]]) if row["list"] == "top"]
    assert [row["item_id"] for row in rows] == ["item 0", "item 1", "item 10", "item 11", "item 12"]
    bottom = [row["item_id"] for row in recommend([USERS[4]]) if row["list"] == "bottom"]
    assert bottom == ["item 13", "item 14"], "what is in the top is in no bottom"


@pytest.mark.parametrize("model", [{}, {"weights": [0.0, 0.0, 0.0], "offset_weight": 0.0}, KERNEL])
@pytest.mark.parametrize("n_unseen", [0, 3, 5, 6, 8, 9])
def test_few_items_are_in_one_list_only(model: dict[str, Any], n_unseen: int) -> None:
    one = user("few", list(range(n_unseen, N_ITEMS)), **model)
    rows = recommend([USERS[0], one, USERS[1]], replace(JOB, top=5, bottom=3))
    lists = {name: [row["item_id"] for row in rows
                    if row["user_id"] == "few" and row["list"] == name]
             for name in ("top", "bottom")}  # fmt: skip
    top = naive(one, set(range(n_unseen)), 5, 1.0)
    rest = set(range(n_unseen)) - numbers_of(top)
    bottom = naive(one, rest, 3, -1.0)
    assert lists == {"top": [item for item, _ in top], "bottom": [item for item, _ in bottom]}
    assert len(lists["top"] + lists["bottom"]) == min(n_unseen, 8)
    others = [row for row in rows if row["user_id"] != "few"]
    assert others == recommend([USERS[0], USERS[1]], replace(JOB, top=5, bottom=3))


def test_only_candidates_are_listed() -> None:
    candidate = np.arange(N_ITEMS) % 5 == 0
    rows = recommend(USERS, replace(JOB, top=20, bottom=0), facts(candidate=candidate))
    assert {row["list"] for row in rows} == {"top"}
    for one in USERS:
        listed = [row["item_id"] for row in rows if row["user_id"] == one["user_id"]]
        expected = naive(one, set(np.flatnonzero(candidate).tolist()), 20, 1.0)
        assert listed == [item for item, _ in expected]


def test_rows_say_where_scores_come_from() -> None:
    n_ratings = np.where(np.arange(N_ITEMS) < 20, 0, 4)
    rows = recommend(USERS, replace(JOB, top=40), facts(n_ratings=n_ratings))
    numbers = {name: i for i, name in enumerate(IDS.to_pylist())}
    said: dict[str, set[tuple[str, str | None]]] = {}
    for row in rows:
        item = numbers[row["item_id"]]
        assert row["item_ratings"] == n_ratings[item]
        assert row["title"] == (None if item % 3 else f"title {item}")
        said.setdefault(row["user_id"], set()).add((row["source"], row["reason"]))
        if row["source"] == "new_item":
            assert item < 20
    new = ("new_item", "no_training_ratings")
    assert said["own column"] == {new, ("learned", None)}
    assert said["approximated"] == {new, ("learned", "landmarks")}
    assert said["cold"] == {("fallback", "too_few_ratings")}
    assert said["failed"] == {("item_offset", "numeric_failure")}
    assert "seen all" not in said


def test_predictions_are_on_the_scale_where_there_is_one() -> None:
    rows = recommend(USERS, replace(JOB, top=40))
    for row in rows:
        score, rank, rating = row["score"], row["predicted_rank"], row["predicted_rating"]
        if row["user_id"] == "order":
            assert rank is rating is None
        elif row["user_id"] == "ranks":
            assert rank == 1 + sum(score >= cut for cut in (-1.0, 0.0, 0.5, 1.0))
            assert rating == SCALE.levels[rank - 1]
        elif row["user_id"] == "prototypes":
            assert rank == score == rating
        else:
            assert rating == min(max(score, 1.0), 5.0)
            assert rank == min(range(1, 6), key=lambda level: (abs(level - rating), level))
    continuous = recommend(USERS[:1], replace(JOB, scale=None))
    assert {row["predicted_rank"] for row in continuous} == {None}
    assert None not in {row["predicted_rating"] for row in continuous}


def test_a_model_beyond_all_numbers_lists_nothing_and_harms_nobody() -> None:
    endless = user("endless", [1], weights=[float("inf"), 1.0, 1.0])
    huge = user("huge", [1], weights=[3e38, 3e38, 3e38], offset_weight=1e300)
    rows = recommend([USERS[0], endless, huge, USERS[7]])
    assert [row for row in rows if row["user_id"] not in ("endless", "huge")] == recommend(
        [USERS[0], USERS[7]]
    )
    assert "endless" not in {row["user_id"] for row in rows}
    assert all(np.isfinite(row["score"]) for row in rows)
