"""From model rows to metric rows and ROC sums, without Spark."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import roc_auc_score

from spark_rank.metrics import (
    BATCH_METRICS,
    mean_squared_difference,
    ndcg,
    pair_cost,
    pairwise_misranking,
)
from spark_rank.tables.contract import arrow_schema
from spark_rank.tables.contracts import MODELS
from spark_rank.users.evaluating import with_curves
from spark_rank.users.generalization import BoundFacts
from spark_rank.users.measuring import (
    MEASURED,
    METRIC_NAMES,
    ROC_GRID,
    Measures,
    Predictions,
    measured,
)
from spark_rank.users.rank_scale import RankScale
from spark_rank.users.roc_sums import roc_table, summed_curves
from spark_rank.users.user_groups import UserGroups

FACTS = BoundFacts(frozenset(), 1.0, 4.0, 0.0, 1.0, 0.05)
MEASURES = Measures(3, 4.0, 0.25, RankScale((1.0, 2.0, 3.0, 4.0, 5.0)), FACTS, UserGroups(3, (20,)))
NAMES = (*MEASURED, "hyperparameters", "kernel", "gamma", "offset_weight", "on_rating_scale")
SCHEMA = arrow_schema(tuple(c for name in NAMES for c in MODELS.columns if c.name == name))
LIST = pa.list_(pa.float32())


def model(
    user: str, ratings: list[float], scores: list[float] | None, **more: Any
) -> dict[str, Any]:
    return {"user_id": user, "learner": "x", "n_train": 4,
            "n_test": len(ratings), "status": "learned" if scores is not None else "failed",
            "on_rating_scale": True, "ratings": ratings, "scores": scores,
            **more}  # fmt: skip


def measure(rows: list[dict[str, Any]]) -> tuple[pa.RecordBatch, Any]:
    """Measure model rows that also have the columns `ratings` and `scores`."""
    found = Predictions(
        pa.array([row["ratings"] for row in rows], LIST),
        pa.array([row["scores"] for row in rows], LIST),
        pa.nulls(len(rows), pa.list_(pa.int32())),
    )
    return measured(pa.RecordBatch.from_pylist(rows, SCHEMA), found, MEASURES)


ROWS = [
    model("a", [1.0, 2.0, 5.0], [2.0, 1.0, 3.0], train_msd=0.25),
    model("b", [1.0, 2.0], None, reason="numeric_failure", on_rating_scale=None),
    model("c", [], []),
    model("d", [4.0, 4.0], [1.0, 3.0]),
    model("e", [4.0, 5.0], [10.0, 30.0], learner="y", on_rating_scale=False),
]


@pytest.mark.parametrize("cuts", [[0, 5], [0, 1, 5], [0, 1, 2, 3, 4, 5]])
def test_each_row_gets_the_metrics_of_its_own_scores(cuts: list[int]) -> None:
    made = [row for a, b in pairwise(cuts) for row in measure(ROWS[a:b])[0].to_pylist()]
    a, b, c, d, e = made
    assert a["msd"] == mean_squared_difference([2.0, 1.0, 3.0], [1.0, 2.0, 5.0])
    assert a["misranking"] == pairwise_misranking([2.0, 1.0, 3.0], [1.0, 2.0, 5.0])
    assert a["svr2"] == pair_cost([2.0, 1.0, 3.0], [1.0, 2.0, 5.0], "svr", 2, 0.25)
    assert a["ndcg"] == ndcg([2.0, 1.0, 3.0], [1.0, 2.0, 5.0], 3)
    assert (a["train_msd"], a["n_test"], a["user_group"]) == (0.25, 3, "3-19")
    assert a["rank_loss"] == 4.0 / 3.0
    assert (b["status"], b["reason"]) == ("failed", "numeric_failure")
    assert all(b[name] is None for name in METRIC_NAMES)
    assert all(c[name] is None for name in METRIC_NAMES)
    assert (d["msd"], d["misranking"]) == (2.0, None)
    assert (e["msd"], e["m1d"], e["misranking"]) == (None, None, 0.0)


def test_the_contract_names_what_the_kernels_compute() -> None:
    assert METRIC_NAMES == BATCH_METRICS


def test_roc_sums_are_those_of_all_users_together() -> None:
    rng = np.random.default_rng(0)
    rows = []
    for user in range(40):
        ratings = rng.integers(1, 6, rng.integers(0, 12)).astype(float)
        scores = ratings + rng.normal(0, 2, len(ratings))
        failed = user % 9 == 0
        rows.append(model(str(user), ratings.tolist(), None if failed else scores.tolist()))
    tables = []
    for size in (40, 7):
        parts = []
        for start in range(0, 40, 2 * size):  # tasks with two batches
            two = (rows[start : start + size], rows[start + size : start + 2 * size])
            batches = [with_curves(*measure(part)) for part in two if part]
            parts += summed_curves(iter(batches))
        tables.append(roc_table(pa.Table.from_batches(parts), MEASURES.groups))
    assert tables[0].equals(tables[1])
    own = tables[0].filter(pc.equal(tables[0]["user_group"], "all"))
    assert own["false_positive_rate"].to_pylist() == ROC_GRID.tolist()
    curve, users = own["true_positive_rate"].to_pylist(), own["users"][0].as_py()
    both = [r for r in rows if r["scores"] and 0 < sum(y >= 4 for y in r["ratings"])
            < len(r["ratings"])]  # fmt: skip
    assert users == len(both)
    assert curve[-1] == 1.0
    assert (np.diff(curve) >= 0.0).all()
    areas = [roc_auc_score(np.array(r["ratings"]) >= 4, r["scores"]) for r in both]
    assert_allclose(np.trapezoid(curve, ROC_GRID), np.mean(areas), atol=0.05)
