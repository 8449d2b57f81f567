"""The scores of a grid over a sample of users."""

from __future__ import annotations

import json
import math

import numpy as np
import pyarrow as pa
import pytest

from spark_rank.features.files import FeatureFiles, ItemFeatures, MappedFile
from spark_rank.learners.errors import LearnerError
from spark_rank.users import tuning
from spark_rank.users.fitting import Limits, Sample
from spark_rank.users.learning import LearnJob
from spark_rank.users.specs import LearnerSpec
from spark_rank.users.tuning import error_batches, grid_scores

SPEC = LearnerSpec("m", "mprank", True, {"kernel": "rbf"}, {"C": [1.0, 2.0], "gamma": [0.1, 0.2]})


def table(rows: list[list[float]]) -> pa.Table:
    return pa.table({
        "learner": pa.array(["m"] * len(rows)),
        "user_id": pa.array([str(number) for number in range(len(rows))]),
        "n_ratings": pa.array([20] * len(rows)),
        "errors": pa.array(rows, pa.list_(pa.float64())),
        "own_errors": pa.array([None] * len(rows), pa.list_(pa.float64())),
    })  # fmt: skip


def test_the_least_mean_is_chosen() -> None:
    rows = [[4.0, 1.0, 2.0, 9.0], [0.5, 2.0, 1.0, 9.0], [3.0, 3.0, 3.0, 9.0]]
    found = grid_scores([SPEC], table(rows), None)
    assert [row["error"] for row in found] == [2.5, 2.0, 2.0, 9.0]
    errors = np.std(rows, axis=0, ddof=1) / math.sqrt(3)
    assert np.allclose([row["standard_error"] for row in found], errors)
    # two are equal: the first
    assert [row["chosen"] for row in found] == [False, True, False, False]
    assert [row["candidate"] for row in found] == [1, 2, 3, 4]
    points = [json.loads(row["hyperparameters"]) for row in found]
    assert [(point["C"], point["gamma"]) for point in points] == [
        (1.0, 0.1), (1.0, 0.2), (2.0, 0.1), (2.0, 0.2),
    ]  # fmt: skip
    assert {row["users"] for row in found} == {3}
    assert {row["measure"] for row in found} == {"msd"}


def test_the_order_of_the_users_decides_nothing() -> None:
    values = np.random.default_rng(1).normal(size=(50, 4)) * 10.0 ** np.arange(50)[:, None]
    one = grid_scores([SPEC], table(values.tolist()), None)
    other = grid_scores([SPEC], table(values[::-1].tolist()), None)
    assert one == other


def test_a_point_that_failed_for_a_user_is_not_chosen() -> None:
    found = grid_scores([SPEC], table([[math.inf, 2.0, 1.0, 3.0], [0.0, 2.0, 1.5, 3.0]]), None)
    assert [row["error"] for row in found] == [None, 2.0, 1.25, 3.0]
    assert [row["chosen"] for row in found] == [False, False, True, False]


def test_a_grid_that_nobody_can_tell_apart_is_refused() -> None:
    failed = [[math.inf] * 4, [1.0] * 4]
    for rows, reason in (
        (failed, "failed for some user"),
        ([], "no user of the sample could be measured"),
    ):
        with pytest.raises(LearnerError, match=f"m: no point .*{reason}"):
            grid_scores([SPEC], table(rows), None)


def test_what_goes_wrong_with_one_user_is_told_and_leaves_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fragile(spec: LearnerSpec, sample: Sample, held_back: Sample, limits: Limits) -> np.ndarray:
        if len(sample.ratings) == 5:
            raise ZeroDivisionError("poison")
        assert held_back.ratings.tolist() == [2.0, 2.0]
        return np.array([2.0, 1.0, 3.0, 4.0])

    monkeypatch.setattr(tuning, "held_back_errors", fragile)
    features = ItemFeatures(
        np.ones((9, 2), np.float32), np.zeros(9), np.empty((0, 2), np.float32),
        pa.array([str(item) for item in range(9)]),
    )  # fmt: skip
    blocks = pa.record_batch({
        "user": pa.array([0, 1], pa.int32()), "user_id": pa.array(["bad", "good"]),
        "items": pa.array([range(6), range(8)], pa.list_(pa.int32())),
        "ratings": pa.array([[1.0] * 6, [2.0] * 8], pa.list_(pa.float32())),
        "n_train": pa.array([5, 6], pa.int32()),
    })  # fmt: skip
    files = FeatureFiles(*(MappedFile(name, "") for name in ("a", "b", "c", "d")))
    job = LearnJob(files, (SPEC,), {}, 2, 1.0, Limits(None, 100, 10, 3))
    (out,) = error_batches(iter([blocks]), job, lambda files: features)
    bad, good = out.to_pylist()
    assert (bad["user_id"], bad["errors"]) == ("bad", None)
    assert bad["detail"] == "ZeroDivisionError: poison"
    assert (good["user_id"], good["errors"], good["detail"]) == ("good", [2.0, 1.0, 3.0, 4.0], None)
    assert (good["n_ratings"], good["own_errors"]) == (6, None)
    found = grid_scores([SPEC], pa.Table.from_batches([out]), None)
    assert [(row["error"], row["users"]) for row in found] == [
        (2.0, 1),
        (1.0, 1),
        (3.0, 1),
        (4.0, 1),
    ]
