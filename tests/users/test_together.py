"""Learning many users in one call equals learning them one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose

from spark_rank.features.files import FeatureFiles, ItemFeatures, MappedFile
from spark_rank.users.batches import build_batch
from spark_rank.users.fitting import Limits
from spark_rank.users.learning import LearnJob, learn_batches, learn_user
from spark_rank.users.measuring import with_training_metrics
from spark_rank.users.problems import problem_groups, problems
from spark_rank.users.specs import BASELINE_SPECS, LearnerSpec
from spark_rank.users.together import learn_together

N_ITEMS = 260
FILES = FeatureFiles(*(MappedFile(name, "") for name in ("matrix", "offset", "prior", "item_ids")))
LIMITS = Limits(None, max_kernel_ratings=1000, landmarks=10, folds=3)
SPECS = (
    *BASELINE_SPECS,
    LearnerSpec("fixed", "mprank", True, {"C": 0.7, "ridge": "fixed", "growth": 0.01}),
    LearnerSpec("plain", "mprank", False, {"C": 2.0}),
    LearnerSpec("dual", "mprank", True, {"C": 2.0, "solver": "dual"}),
)
PANEL = {3: 1, 6: 0}


def features(width: int, *, with_prior: bool) -> ItemFeatures:
    rng = np.random.default_rng(width)
    prior = rng.normal(size=(N_ITEMS + 2, width)) / 5.0
    return ItemFeatures(
        rng.normal(size=(N_ITEMS, width)).astype(np.float32),
        rng.normal(size=N_ITEMS),
        (prior if with_prior else prior[:0]).astype(np.float32),
        pa.array([f"item {i}" for i in range(N_ITEMS)]),
    )


def blocks() -> pa.RecordBatch:
    """Return users with 0 to 250 ratings; of user 4 all are equal, and user 5 has none to test."""
    rng = np.random.default_rng(11)
    sizes = [40, 0, 1, 90, 12, 30, 7, 250, 130, 9]
    ratings = [rng.integers(1, 6, n).astype(float) for n in sizes]
    ratings[4][:] = 3.0
    n_train = [n if user == 5 else (n + 1) // 2 for user, n in enumerate(sizes)]
    return pa.record_batch(
        {
            "user": pa.array(range(len(sizes)), pa.int32()),
            "user_id": pa.array([f"user {u}" for u in range(len(sizes))]),
            "items": pa.array(
                [rng.permutation(N_ITEMS)[:n].tolist() for n in sizes], pa.list_(pa.int32())
            ),
            "ratings": pa.array(ratings, pa.list_(pa.float32())),
            "n_train": pa.array(n_train, pa.int32()),
            "bucket": pa.array(np.arange(len(n_train), dtype=np.int32)),
        }
    )


def job(specs: tuple[LearnerSpec, ...] = SPECS) -> LearnJob:
    return LearnJob(FILES, specs, PANEL, min_ratings=2, margin=1.0, limits=LIMITS)


def assert_close(found: Any, expected: Any) -> None:
    if isinstance(expected, float):
        assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    elif isinstance(expected, list):  # numbers of single precision
        assert_allclose(found, expected, rtol=2e-7, atol=1e-7)
    else:
        assert found == expected


@pytest.mark.parametrize("with_prior", [False, True])
@pytest.mark.parametrize("width", [4, 40, 100, 124])
def test_a_user_among_others_is_the_user_alone(width: int, with_prior: bool) -> None:
    shared = features(width, with_prior=with_prior)
    told: list[tuple[str, str]] = []
    (together,) = learn_batches(iter([blocks()]), job(), lambda files: shared)
    alone = [
        # the columns that follow from the block are added at the end
        learn_user(problem, spec, job(), shared.item_ids) | {"bucket": problem.user}
        for problem in problems(blocks(), shared, PANEL)
        for spec in SPECS
    ]
    expected = build_batch(with_training_metrics(alone, job().margin), together.schema)
    for row, other in zip(together.to_pylist(), expected.to_pylist(), strict=True):
        for name, value in other.items():
            assert_close(row[name], value)
        told.append((row["learner"], row["status"]))
    statuses = {spec.label: [s for label, s in told if label == spec.label] for spec in SPECS}
    # one user has no rating, another one only, and a third the same ones only
    assert statuses["constant"] == ["learned", "failed", *["learned"] * 8]
    assert [u for u, s in enumerate(statuses["plain"]) if s != "learned"] == [1, 2, 4]


@pytest.mark.parametrize("width", [4, 100, 124])
def test_who_else_is_in_the_batch_changes_no_bit(width: int) -> None:
    shared, whole = features(width, with_prior=True), blocks()

    def learn(*batches: pa.RecordBatch) -> list[dict[str, Any]]:
        made = learn_batches(iter(batches), job(), lambda files: shared)
        return [row for out in made for row in out.to_pylist()]

    expected = learn(whole)
    assert learn(*(whole.slice(row, 1) for row in range(len(whole)))) == expected
    assert learn(whole.slice(0, 3), whole.slice(3, 0), whole.slice(3)) == expected


@pytest.mark.parametrize(
    "spec",
    [
        LearnerSpec("it", "svrank", True),
        LearnerSpec("it", "mprank", True, {"kernel": "rbf"}),
        LearnerSpec("it", "mprank", True, {"solver": "online"}),
        LearnerSpec("it", "mprank", True, {}, {"C": [1.0, 2.0]}, "leave_pair_out"),
    ],
)
def test_what_has_no_compiled_way_is_left_to_the_general_one(spec: LearnerSpec) -> None:
    (group,) = problem_groups(blocks(), features(4, with_prior=False), PANEL)
    assert learn_together(spec, group, LIMITS, 2) is None


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_numbers_beyond_all_bounds_fail_alone() -> None:
    shared = features(4, with_prior=False)
    matrix = shared.matrix.astype(np.float64)
    (user,) = blocks().slice(0, 1).column("items").to_pylist()
    matrix[user[0]] *= 1e200
    wild = replace(shared, matrix=matrix)
    (out,) = learn_batches(iter([blocks()]), job(SPECS[2:3]), lambda files: wild)
    rows = out.to_pylist()
    with_it = [user[0] in items for items in blocks().column("items").to_pylist()]
    assert rows[0]["status"] == "failed"
    for row, wild_item in zip(rows, with_it, strict=True):
        assert (row["status"] != "failed") or wild_item or row["n_train"] == 0
