"""Models and blocks are joined as by a plain lookup, in any order of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from spark_rank.users.joining import (
    MODELS_SCHEMA,
    WANTED_COLUMNS,
    ScoringLearner,
    scoring_models,
    users_with_models,
)

BLOCK = pa.schema([
    ("user", pa.int32()), ("user_id", pa.string()), ("items", pa.list_(pa.int32())),
    ("bucket", pa.int32()),
])  # fmt: skip
FIRST, SECOND = "one", "item_offset"

Row = dict[str, Any]


def model(user: int, bucket: int, learner: str = FIRST, **more: Any) -> Row:
    own = {"user_id": f"u{user}", "learner": learner, "status": "learned", "bucket": bucket,
           "intercept": float(user), "offset_weight": 1.0, "weights": [user, 0.5],
           "hyperparameters": "{}", "on_rating_scale": True}  # fmt: skip
    return {**own, **more}


def block(user: int) -> Row:
    return {"user": user, "user_id": f"u{user}", "items": list(range(user % 4)), "bucket": 0}


def together(
    rows: Sequence[Row], blocks: Sequence[Row], scored_by: ScoringLearner, users: int = 2
) -> list[pa.RecordBatch]:
    models = pa.Table.from_pylist(
        [{name: row.get(name) for name in MODELS_SCHEMA.names} for row in rows], MODELS_SCHEMA
    )
    return list(
        users_with_models(pa.Table.from_pylist(list(blocks), BLOCK), models, scored_by, users)
    )


@given(
    learned=st.sets(st.integers(0, 30), max_size=20),
    blocked=st.lists(st.integers(0, 30), unique=True, max_size=20),
    order=st.randoms(use_true_random=False),
)
def test_every_user_with_a_model_comes_once_in_the_order_of_the_users(
    learned: set[int], blocked: list[int], order: Any
) -> None:
    rows = [row for user in learned
            for row in (model(user, 0), model(user, 0, SECOND, intercept=99.0))]  # fmt: skip
    order.shuffle(rows)
    expected = [(f"u{user}", float(user), [user, 0.5], block(user)["items"])
                for user in sorted(blocked) if user in learned]  # fmt: skip
    found = []
    for batch in together(rows, [block(user) for user in blocked], ScoringLearner(FIRST, None)):
        assert batch.schema.names == list(WANTED_COLUMNS)
        assert 0 < len(batch) <= 2
        found += [(r["user_id"], r["intercept"], r["weights"], r["items"])
                  for r in batch.to_pylist()]  # fmt: skip
    assert found == expected


def test_members_of_ensembles_come_along_and_others_have_none() -> None:
    members = model(5, 0, n_members=2, members=[0.25, 0.5], member_votes=[1, 2])
    (batch,) = together([model(1, 0), members], [block(1), block(5)], ScoringLearner(FIRST, None))
    plain, of_ensemble = batch.to_pylist()
    assert (plain["n_members"], plain["members"], plain["member_votes"]) == (None, None, None)
    assert (of_ensemble["n_members"], of_ensemble["members"]) == (2, [0.25, 0.5])
    assert of_ensemble["member_votes"] == [1, 2]


def test_a_failed_model_gives_way_to_the_substitute() -> None:
    nothing = dict.fromkeys(MODELS_SCHEMA.names)
    rows = [
        model(1, 0),
        {**nothing, "user_id": "u2", "learner": FIRST, "status": "failed", "reason": "numeric"},
        {**nothing, "user_id": "u3", "learner": FIRST, "status": "failed", "reason": "other"},
        model(1, 0, SECOND, intercept=9.0),
        model(2, 0, SECOND, intercept=2.5, weights=None),
        {**nothing, "user_id": "u3", "learner": SECOND, "status": "failed", "reason": "other"},
    ]
    models = pa.Table.from_pylist(
        [{name: row.get(name) for name in MODELS_SCHEMA.names} for row in rows], MODELS_SCHEMA
    )
    found = scoring_models(models, ScoringLearner(FIRST, SECOND))
    assert found.schema == MODELS_SCHEMA
    names = ("user_id", "status", "reason", "intercept", "offset_weight", "weights")
    assert [tuple(row[name] for name in names) for row in found.to_pylist()] == [
        ("u1", "learned", None, 1.0, 1.0, [1.0, 0.5]),
        ("u2", "failed", "numeric", 2.5, 1.0, None),
        # without any model the user is scored by the offset alone
        ("u3", "failed", "other", None, 1.0, None),
    ]
    own = scoring_models(models, ScoringLearner(FIRST, None))
    assert own.column("user_id").to_pylist() == ["u1", "u2", "u3"]
    assert own.column("intercept").to_pylist() == [1.0, None, None]
