"""Weighted metrics of models, and weights of training ratings, against plain sums."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from spark_rank.metrics import weighted_misranking, weighted_squared_difference
from spark_rank.records.features import FeatureFiles, MappedFile, ShownFacts
from spark_rank.users.held_out import HeldOut
from spark_rank.users.measuring import Predictions
from spark_rank.users.propensity_weights import with_propensity_weights
from spark_rank.users.shown_measuring import ShownJob, shown_rows, shown_summary

FACTS = ShownFacts(0.7, 3.0, (0.0, 0.8, 0.1), 1.0, 5.0, 100, 40.0)
FILE = MappedFile("x", "x")
JOB = ShownJob(FeatureFiles(FILE, FILE, FILE, FILE), FACTS, None, (1.0, 5.0))
SIZES, N_TRAIN = (4, 3, 2), (9, 1, 5)


def drawn() -> tuple[pa.RecordBatch, HeldOut, Predictions]:
    rng = np.random.default_rng(4)
    ends = np.concatenate([[0], np.cumsum(SIZES)]).astype(np.int64)
    ratings = rng.integers(1, 6, ends[-1]).astype(np.float32)
    scores = rng.uniform(0, 7, ends[-1]).astype(np.float32)
    offsets = pa.array(ends, pa.int32())
    models = pa.record_batch({
        "user_id": ["a", "b", "c"], "learner": ["one", "one", "two"],
        "n_train": pa.array(N_TRAIN, pa.int32()), "on_rating_scale": [True, True, True],
    })  # fmt: skip
    users = HeldOut(models.column("user_id"), np.zeros(ends[-1], np.int32), ratings, ends)
    lists = [pa.ListArray.from_arrays(offsets, pa.array(values)) for values in (ratings, scores)]
    return models, users, Predictions(*lists, pa.nulls(3, pa.list_(pa.int32())))


def test_metrics_are_those_of_items_shown_at_random() -> None:
    models, users, predicted = drawn()
    rows = shown_rows(models, users, predicted, JOB)
    summary = shown_summary(pa.Table.from_batches([rows])).to_pylist()
    assert [row["learner"] for row in summary] == ["one", "two"]
    found, weights, errors = [], [], []
    for user in (0, 1):
        own = slice(users.ends[user], users.ends[user + 1])
        ratings = users.ratings[own].astype(float)
        scores = 0.8 * np.array(predicted.scores[user].as_py()) + 0.1
        weight = np.exp(-0.7 * (ratings - 3.0)) / N_TRAIN[user]
        found.append([weighted_squared_difference(scores, ratings, weight),
                      weighted_misranking(scores, ratings, weight)])  # fmt: skip
        weights += weight.tolist()
        errors += (np.clip(scores, 1, 5) - ratings).tolist()
    w, e = np.array(weights), np.array(errors)
    one = summary[0]
    for name, values in zip(("msd", "misranking"), zip(*found, strict=True), strict=True):
        defined = [value for value in values if value is not None]
        assert one[name] == pytest.approx(sum(defined) / len(defined), rel=1e-6)
    assert one["rmse"] == pytest.approx(np.sqrt(w @ e**2 / w.sum()), rel=1e-6)
    assert one["mean_error"] == pytest.approx(w @ e / w.sum(), rel=1e-6)
    assert one["effective_ratings"] == pytest.approx(w.sum() ** 2 / (w @ w), rel=1e-6)
    assert (one["users"], one["ratings"]) == (2, 7)


def test_training_weights_have_mean_one_and_no_outlier() -> None:
    blocks = pa.record_batch({
        "ratings": pa.array([[5.0, 4.0, 5.0, 1.0, 3.0], [2.0], []], pa.list_(pa.float32())),
        "n_train": pa.array([4, 1, 0], pa.int32()),
    })  # fmt: skip
    facts = ShownFacts(3.0, 3.0, (0.0, 1.0, 0.0), 1.0, 5.0, 100, 40.0)
    weights = with_propensity_weights(blocks, facts).column("weights").to_pylist()
    assert [len(own) for own in weights] == [5, 1, 0]
    training = np.array(weights[0][:4])
    assert training.mean() == pytest.approx(1.0)
    assert training[1] / training[0] == pytest.approx(np.exp(3.0))
    # unclipped it would weigh e¹² times as much as a five
    assert training[3] == pytest.approx(10 * np.median(training), rel=0.01)
    assert weights[1] == [1.0]
