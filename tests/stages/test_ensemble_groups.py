"""Ensembles through Spark: any number of groups, tasks that are killed and tried again."""

from __future__ import annotations

import os
import subprocess
import sys
from ast import literal_eval
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from spark_rank.features.files import open_distributed
from spark_rank.learners import OAP
from spark_rank.learners.perceptrons.blocks import BLOCK_ROUNDS
from spark_rank.sequences.files import Examples, TrialPart
from spark_rank.users.ensemble_learning import ensemble_batches
from tests.stages import ensembles_at_work as at_work


@pytest.mark.parametrize("combine", ["bpm", "voted"])
def test_any_groups_of_a_sequence_are_the_class(
    spark: SparkSession, tmp_path: Path, combine: str
) -> None:
    n = at_work.PART.n_train
    local = OAP(4, combine=combine, **at_work.PARAMS)  # type: ignore[arg-type]
    local.fit(at_work.X[:n], at_work.RANKS[:n])
    rules = np.column_stack([local.member_coef_, local.member_thresholds_]).astype(np.float32)
    for groups in (1, 2, 7, 100):
        rows = at_work.sequence_rows(spark, tmp_path, groups, combine)
        assert [row["n_rounds"] for row in rows] == [40, 40, 10]
        assert sum(row["total"] for row in rows) == local.total_loss_
        last = rows[-1]
        assert last["member_updates"] == local.member_updates_.tolist()
        errors = np.abs(local.predict(at_work.X[n:]) - at_work.RANKS[n:])
        assert last["rank_loss"] == pytest.approx(errors.mean())
        # the column is float32: equal there, to the bit
        assert np.array(last["members"], np.float32).tobytes() == rules.tobytes()
        if combine == "bpm":
            assert last["thresholds"] == local.thresholds_.tolist()
            weights = np.array(last["weights"], np.float32)
            np.testing.assert_array_equal(weights, local.coef_.astype(np.float32))
        else:
            assert last["member_votes"] == local.votes().tolist()


def test_blocks_of_a_long_sequence_are_the_class(spark: SparkSession, tmp_path: Path) -> None:
    n, rng = 2 * BLOCK_ROUNDS + 500, np.random.default_rng(3)
    X = rng.normal(size=(n + 100, 2))
    ranks = np.searchsorted([-1.0, 0.0, 1.0], X @ [1.0, -2.0] + rng.normal(size=n + 100)) + 1
    params: dict[str, Any] = {"n_members": 8, "tau": 0.5, "seed": 7, "combine": "bpm"}
    local = OAP(4, **params).fit(X[:n], ranks[:n])
    totals = np.rint(local.online_loss_ * np.arange(1, n + 1)).astype(int)
    examples, part = Examples(X, ranks), TrialPart(1, 0, n, 100)
    for groups, chunk in ((1, 1_000_000), (2, 40_000), (8, BLOCK_ROUNDS)):
        rows = at_work.outcomes(spark, tmp_path, examples, part, params, groups, chunk)
        ends = np.cumsum([row["n_rounds"] for row in rows])
        assert {BLOCK_ROUNDS, 2 * BLOCK_ROUNDS, n} <= set(ends.tolist())
        assert np.cumsum([row["total"] for row in rows]).tolist() == totals[ends - 1].tolist()
        assert rows[-1]["thresholds"] == local.thresholds_.tolist()
        errors = np.abs(local.predict(X[n:]) - ranks[n:])
        assert rows[-1]["rank_loss"] == pytest.approx(errors.mean())


@pytest.mark.slow
def test_any_groups_of_every_user_are_what_one_task_learns(
    spark: SparkSession, tmp_path: Path
) -> None:
    job = at_work.user_job(spark, tmp_path)
    (alone,) = ensemble_batches(iter([at_work.blocks()]), job, open_distributed)
    expected = sorted(alone.to_pylist(), key=lambda row: (row["learner"], row["user_id"]))
    assert {row["status"] for row in expected} == {"learned"}
    for groups, partitions in ((1, 3), (2, 3), (7, 2), (100, 2)):
        assert at_work.user_rows(spark, job, groups, partitions) == expected


@pytest.mark.slow
def test_killed_tasks_are_tried_again_and_change_nothing(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "tests.stages.ensembles_at_work", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True, text=True, timeout=280, check=True,
    )  # fmt: skip
    killed = [path.name.split("-")[1] for path in tmp_path.glob("killed-*")]
    # four groups are four tasks, of users in two partitions eight: every other one dies once
    assert sorted(killed) == ["part_batches"] * 4 + ["sequence_parts"] * 2
    undisturbed, disturbed = literal_eval((tmp_path / "rows.txt").read_text())
    assert [len(rows) for rows in undisturbed] == [3, 2 * len(at_work.USERS)]
    assert disturbed == undisturbed
