"""From model rows to metric rows, without Spark."""

from __future__ import annotations

import pyarrow as pa

from spark_rank.engine.learning import MODEL_SCHEMA
from spark_rank.engine.scoring import evaluate_batches
from spark_rank.metrics import mean_squared_difference, pairwise_misranking


def test_each_row_gets_the_metrics_of_its_own_scores() -> None:
    rows = [
        {"user_id": "a", "learner": "x", "status": "learned", "n_train": 2, "n_test": 3,
         "on_rating_scale": True,
         "test_ratings": [1.0, 2.0, 5.0], "test_scores": [2.0, 1.0, 3.0], "train_msd": 0.25},
        {"user_id": "b", "learner": "x", "status": "failed", "reason": "numeric_failure",
         "n_train": 2, "n_test": 2, "test_ratings": [1.0, 2.0], "test_scores": None},
        {"user_id": "c", "learner": "x", "status": "learned", "n_train": 1, "n_test": 0,
         "on_rating_scale": True,
         "test_ratings": [], "test_scores": []},
        {"user_id": "d", "learner": "x", "status": "learned", "n_train": 1, "n_test": 2,
         "on_rating_scale": True,
         "test_ratings": [4.0, 4.0], "test_scores": [1.0, 3.0]},
        {"user_id": "e", "learner": "y", "status": "learned", "n_train": 1, "n_test": 2,
         "on_rating_scale": False,
         "test_ratings": [4.0, 5.0], "test_scores": [10.0, 30.0]},
    ]  # fmt: skip
    whole = pa.RecordBatch.from_pylist(rows, MODEL_SCHEMA)
    for batches in ([whole], [whole.slice(0, 1), whole.slice(1, 4)]):
        made = [row for out in evaluate_batches(iter(batches)) for row in out.to_pylist()]
        a, b, c, d, e = made
        assert a["msd"] == mean_squared_difference([2.0, 1.0, 3.0], [1.0, 2.0, 5.0])
        assert a["misranking"] == pairwise_misranking([2.0, 1.0, 3.0], [1.0, 2.0, 5.0])
        assert (a["train_msd"], a["n_test"]) == (0.25, 3)
        assert (b["status"], b["reason"], b["msd"]) == ("failed", "numeric_failure", None)
        assert (c["msd"], c["m1d"], c["misranking"]) == (None, None, None)
        assert (d["msd"], d["misranking"]) == (2.0, None)
        assert (e["msd"], e["m1d"], e["misranking"]) == (None, None, 0.0)
