"""Ensembles in Arrow batches equal the class OAP, for every split of the members."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from spark_rank.features.files import FeatureFiles, ItemFeatures
from spark_rank.learners import OAP
from spark_rank.users.ensemble_learning import (
    ENSEMBLE_SCHEMA,
    combine_batches,
    ensemble_batches,
    part_batches,
)
from spark_rank.users.ensembles import (
    CURVE_ROUNDS,
    EnsembleSpec,
    curve_of,
    problem_number,
    split_members,
)
from spark_rank.users.held_out import held_out, predictions
from spark_rank.users.learning import LearnJob
from tests.users.learned_rows import FEATURES, FILES, LIMITS, N_ITEMS, SCALE, WITH_PRIOR

N_MEMBERS = 23
RNG = np.random.default_rng(5)
SPECS = tuple(
    EnsembleSpec(
        f"{combine} {sampling} {offset}", "oap", offset,
        {"combine": combine, "sampling": sampling, "n_members": N_MEMBERS, "tau": 0.6, "seed": 3},
        keep_members=offset,
    )
    for combine in ("bpm", "bagging", "voted")
    for sampling, offset in (("bernoulli", True), ("poisson", False))
)  # fmt: skip


def blocks() -> pa.RecordBatch:
    """Return users; two of them cannot be learned: one rating, and all ratings equal."""
    items = [RNG.permutation(N_ITEMS)[: 6 + 3 * u].tolist() for u in range(6)]
    items += [[3, 4], [0, 1, 2, 3, 4]]
    ratings = [[float((i * 7 + u) % 5 + 1) for i in own] for u, own in enumerate(items)]
    ratings[7] = [3.0] * 5
    return pa.record_batch({
        "user": pa.array(range(8), pa.int32()),
        "user_id": pa.array([f"u {u}" for u in range(8)]),
        "items": pa.array(items, pa.list_(pa.int32())),
        "ratings": pa.array(ratings, pa.list_(pa.float32())),
        "n_train": pa.array([len(own) // 2 + 1 for own in items[:6]] + [1, 3], pa.int32()),
        "bucket": pa.array(range(8), pa.int32()),
    })  # fmt: skip


BLOCKS = blocks()


def open_as(features: ItemFeatures) -> Callable[[FeatureFiles], ItemFeatures]:
    return lambda files: features


def job(**changes: Any) -> LearnJob:
    return replace(LearnJob(FILES, SPECS, {0: 1}, 2, 1.0, LIMITS), **changes)


def by_key(batches: Iterator[pa.RecordBatch]) -> dict[tuple[str, str], dict[str, Any]]:
    rows = [row for batch in batches for row in batch.to_pylist()]
    found = {(row["user_id"], row["learner"]): row for row in rows}
    assert len(found) == len(rows)
    return found


def in_groups(
    groups: int, how: LearnJob, features: ItemFeatures, size: int = 3
) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the rows of a reduce over parts that came in any order, in batches of any size."""
    parts = [
        row
        for group in range(groups)
        for batch in part_batches(iter([BLOCKS]), how, group, groups, open_as(features))
        for row in batch.to_pylist()
    ]
    schema = next(part_batches(iter([BLOCKS]), how, 0, groups, open_as(features))).schema
    np.random.default_rng(groups).shuffle(parts)
    # the columns that Spark sorts by do not order the groups
    parts.sort(key=lambda row: (row["problem"], row["learner"]))
    batches = (
        pa.RecordBatch.from_pylist(parts[start : start + size], schema)
        for start in range(0, len(parts), size)
    )
    return by_key(combine_batches(batches, how, open_as(features)))


@pytest.mark.parametrize("features", [FEATURES, WITH_PRIOR], ids=["plain", "prior"])
@pytest.mark.parametrize("groups", [1, 2, 7, 100])
def test_any_groups_of_members_give_the_same_rows(groups: int, features: ItemFeatures) -> None:
    whole = by_key(ensemble_batches(iter([BLOCKS]), job(), open_as(features)))
    assert len(whole) == 8 * len(SPECS)
    assert in_groups(groups, job(), features) == whole


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.label)
def test_rows_are_what_the_class_learns(spec: EnsembleSpec) -> None:
    rows = by_key(ensemble_batches(iter([BLOCKS]), job(panel={}), open_as(FEATURES)))
    for block in BLOCKS.to_pylist()[:6]:
        row, n = rows[block["user_id"], spec.label], block["n_train"]
        X = FEATURES.matrix[block["items"]].astype(np.float64)
        if spec.item_offset:
            X = np.column_stack([X, FEATURES.offset[block["items"]]])
        ranks = np.array(block["ratings"]).astype(int)
        local = OAP(5, problem=problem_number(block["user_id"]), **spec.params)
        local.fit(X[:n], ranks[:n])
        assert row["status"] == "learned"
        stored = pa.RecordBatch.from_pylist([row], ENSEMBLE_SCHEMA)
        one = BLOCKS.filter(pc.equal(BLOCKS.column("user_id"), block["user_id"]))
        found = predictions(stored, held_out(one), FEATURES, SCALE)
        assert found.ranks.to_pylist() == [local.predict(X[n:]).tolist()]
        scores = local.decision_function(X[n:])
        np.testing.assert_allclose(found.scores.to_pylist()[0], scores, rtol=1e-5, atol=1e-5)
        assert row["online_loss"] == local.online_loss_[-1]
        assert (
            row["curve"]
            == curve_of(
                np.rint(np.diff(local.online_loss_ * np.arange(1, n + 1), prepend=0)).astype(int)
            ).tolist()
        )
        for name in ("presented", "correct", "updates"):
            assert row[f"member_{name}"] == getattr(local, f"member_{name}_").tolist()
        if local.combine == "bpm":
            learned = np.append(row["weights"], row["offset_weight"])[: X.shape[1]]
            np.testing.assert_array_equal(learned[:3].astype(np.float32),
                                          local.coef_[:3].astype(np.float32))  # fmt: skip
            assert row["thresholds"] == local.thresholds_.tolist()
        if spec.keep_members or local.combine != "bpm":
            rules = np.reshape(row["members"], (N_MEMBERS, -1))
            coef = local.member_coef_.astype(np.float32)
            np.testing.assert_array_equal(rules[:, : coef.shape[1]], coef)
            np.testing.assert_array_equal(rules[:, 4:], local.member_thresholds_)
        votes = local.votes().tolist() if local.combine != "bpm" else None
        assert row["member_votes"] == votes


def test_who_cannot_be_learned_falls_back_in_any_split() -> None:
    for rows in (
        by_key(ensemble_batches(iter([BLOCKS]), job(), open_as(FEATURES))),
        in_groups(3, job(), FEATURES),
    ):
        cold, equal = rows["u 6", SPECS[0].label], rows["u 7", SPECS[2].label]
        assert (cold["status"], cold["reason"]) == ("fallback", "too_few_ratings")
        assert (equal["status"], equal["reason"]) == ("fallback", "equal_ratings")
        for row in (cold, equal):
            assert row["members"] is row["member_updates"] is row["curve"] is None
            assert row["intercept"] is not None


def test_a_failure_is_told_in_any_split() -> None:
    matrix = FEATURES.matrix.copy()
    matrix[BLOCKS.to_pylist()[0]["items"][0]] = np.float32(np.inf)
    broken = replace(FEATURES, matrix=matrix)
    whole = by_key(ensemble_batches(iter([BLOCKS]), job(), open_as(broken)))
    failed = whole["u 0", SPECS[0].label]
    assert (failed["status"], failed["reason"]) == ("failed", "numeric_failure")
    assert "row 0 of X holds NaN or infinity" in failed["detail"]
    assert failed["members"] is failed["member_updates"] is None
    assert in_groups(2, job(), broken) == whole


def test_members_are_split_evenly_and_once() -> None:
    for n_members in (1, 2, 7, 23, 100):
        for groups in (1, 2, 7, 100):
            split = split_members(n_members, groups)
            assert [m for first, last in split for m in range(first, last)] == [*range(n_members)]
            sizes = [last - first for first, last in split]
            assert len(split) == min(groups, n_members)
            assert max(sizes) - min(sizes) <= 1


def test_problem_numbers_are_of_the_id_alone() -> None:
    # fixed for good: stored ensembles were drawn by them
    assert problem_number("u 0") == 3146559277148979185
    found = {problem_number(f"u{n}") for n in range(10_000)}
    assert len(found) == 10_000
    assert all(0 <= number < 2**63 for number in found)


def test_the_grid_is_rounds_of_equal_ratio() -> None:
    assert CURVE_ROUNDS[:8].tolist() == [1, 2, 3, 4, 6, 8, 11, 16]
    losses = np.arange(12)
    assert curve_of(losses).tolist() == [sum(range(n)) for n in (1, 2, 3, 4, 6, 8, 11)]
