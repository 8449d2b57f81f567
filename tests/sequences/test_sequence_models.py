"""Rules that were learned on a sequence, as their rows tell them: applied again, from the row."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spark_rank.features.files import ItemFeatures, MappedFile
from spark_rank.learners.kernels import Kernel
from spark_rank.metrics import pairwise_misranking
from spark_rank.sequences.examples import SequenceJob, SequenceSpec, SequenceUser, Trial, View
from spark_rank.sequences.files import Examples, SequenceFiles, Supports, TrialPart
from spark_rank.sequences.landmarks import landmark_features
from spark_rank.sequences.learning import Work, sequence_parts, sequence_results
from spark_rank.users.ensembles import EnsembleSpec, problem_number
from spark_rank.users.fitting import with_offset
from spark_rank.users.prior_scores import Prior, prior_of
from spark_rank.users.problems import Problem, problems
from spark_rank.users.stored_models import StoredModels, rank_rule
from tests.users.learned_rows import FEATURES, SCALE, USERS, WITH_PRIOR

SEED, BUDGET, N_MEMBERS = 9, 7, 6
FILES = SequenceFiles(MappedFile("x", ""), MappedFile("y", ""))
NOTHING = Prior(None, None)
KERNELS = [Kernel("rbf", 0.4), Kernel("poly", 0.5, 3, 1.0)]


def on_landmarks(X: Any, parts: list[TrialPart], kernel: Kernel, folder: Path) -> Examples:
    """Return the examples on landmarks, opened; of no ranks yet."""
    file, supports = landmark_features(X, parts, kernel, BUDGET, SEED, folder)
    mapped, points, roots = (
        np.load(folder / each.name) for each in (file, supports.points, supports.roots)
    )
    return Examples(mapped, np.empty(0, np.int64), Supports(supports.parts, points, roots))


def learned(
    examples: Examples,
    trials: list[Trial],
    combine: str,
    kernel: Kernel | None = None,
    known: Prior = NOTHING,
    user: SequenceUser | None = None,
) -> pa.Table:
    """Return a model row per trial, members kept."""
    constants = {} if kernel is None else {"degree": kernel.degree, "coef0": kernel.coef0}
    params = {"combine": combine, "n_members": N_MEMBERS, "tau": 0.6, "seed": SEED}
    spec = SequenceSpec(
        "it", params, View(FILES, squared=False), True,
        "linear" if kernel is None else kernel.name, None if kernel is None else kernel.gamma,
        json.dumps({**params, **constants}), known,
    )  # fmt: skip
    job = SequenceJob(tuple(trials), (spec,), 5, SEED, 1000, user)
    opened: Callable[[SequenceFiles], Examples] = lambda files: examples  # noqa: E731
    work = [Work(place, 0, 0, N_MEMBERS) for place in range(len(trials))]
    ids = pa.record_batch({"id": pa.array(range(len(work)), pa.int64())})
    parts = sequence_parts(iter([ids]), job, work, opened)
    return pa.Table.from_batches(list(sequence_results(parts, job, opened)))


def kernel_of(row: dict[str, Any], a: Any, b: Any) -> float:
    settings = json.loads(row["hyperparameters"])
    if row["kernel"] == "rbf":
        return float(np.exp(-row["gamma"] * ((a - b) ** 2).sum()))
    return float((row["gamma"] * (a @ b) + settings["coef0"]) ** settings["degree"])


def expansion(row: dict[str, Any], duals: Any, x: Any) -> float:
    supports = np.reshape(row["support_features"], (-1, len(x)))
    return sum(dual * kernel_of(row, s, x) for dual, s in zip(duals, supports, strict=True))


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("combine", ["bpm", "bagging", "voted"])
def test_a_row_of_a_file_scores_what_it_never_saw(
    combine: str, kernel: Kernel, tmp_path: Path
) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(70, 2))
    ranks = 1 + np.searchsorted([-0.5, 0.0, 0.5, 1.0], X[:, 0] * X[:, 1])
    # the second trial has fewer examples to learn than the budget has room for
    parts = [TrialPart(1, 0, 40, 15), TrialPart(2, 55, 5, 10)]
    examples = on_landmarks(X, parts, kernel, tmp_path)
    examples = Examples(examples.features, ranks, examples.supports)
    trials = [Trial(1, parts[0], 0, False), Trial(2, parts[1], 1, True)]
    for part, row in zip(parts, learned(examples, trials, combine, kernel).to_pylist(),
                         strict=True):  # fmt: skip
        assert row["weights"] is row["support_items"] is None
        held_out = X[part.start + part.n_train :][: part.n_test]
        rules = np.reshape(row["members"], (N_MEMBERS, -1))
        of_members = [
            [1 + sum(expansion(row, rule[:-4], x) >= cut for cut in rule[-4:]) for rule in rules]
            for x in held_out
        ]
        if combine == "bpm":
            scores = [expansion(row, row["dual"], x) for x in held_out]
            found = [1 + sum(s >= cut for cut in row["thresholds"]) for s in scores]
            means = rules[:, :-4].mean(axis=0)
            np.testing.assert_allclose(row["dual"], means, rtol=1e-4, atol=1e-4)
        else:
            scores = (
                np.array(of_members) @ row["member_votes"] / sum(row["member_votes"])
            ).tolist()
            found = [math.floor(score + 0.5) for score in scores]
        # the outcome of the task has what the learner itself says of these examples
        true = ranks[part.start + part.n_train :][: part.n_test]
        assert row["rank_loss"] == pytest.approx(np.abs(np.array(found) - true).mean())
        assert row["misranking"] == pytest.approx(pairwise_misranking(scores, true))


def one_user(features: ItemFeatures) -> Problem:
    user, items, ratings, n_train = USERS[0]
    block = pa.record_batch({
        "user": pa.array([user], pa.int32()), "user_id": ["someone"],
        "items": pa.array([items], pa.list_(pa.int32())),
        "ratings": pa.array([ratings], pa.list_(pa.float32())),
        "n_train": pa.array([n_train], pa.int32()),
        "bucket": pa.array([0], pa.int32()),
    })  # fmt: skip
    (problem,) = problems(block, features, {0: 1})
    return problem


@pytest.mark.parametrize("combine", ["bpm", "bagging", "voted"])
@pytest.mark.parametrize(("kernel", "offset"), [(None, True), (None, False), (KERNELS[0], False)],
                         ids=["linear with offset", "linear", "rbf"])  # fmt: skip
@pytest.mark.parametrize("features", [FEATURES, WITH_PRIOR], ids=["plain", "prior"])
def test_a_row_of_a_user_is_a_model_like_any_other(
    features: ItemFeatures, kernel: Kernel | None, offset: bool, combine: str, tmp_path: Path
) -> None:
    problem = one_user(features)
    part = TrialPart(1, 0, problem.n_train, len(problem.items) - problem.n_train)
    known = prior_of(problem, EnsembleSpec("it", "oap", offset, {}))
    X = with_offset(problem.X, known.offset)
    examples = Examples(X, np.empty(0)) if kernel is None else on_landmarks(
        X, [part], kernel, tmp_path
    )  # fmt: skip
    examples = Examples(examples.features, SCALE.ranks(problem.ratings), examples.supports)
    ids = features.item_ids.take(pa.array(problem.items[problem.train])).to_pylist()
    user = SequenceUser("someone", tuple(ids), problem.excluded_feature, None)
    trial = Trial(1, part, problem_number("someone"), True)
    table = learned(examples, [trial], combine, kernel, known, user)
    (row,) = table.to_pylist()
    assert (row["user_id"], row["excluded_feature"]) == ("someone", 1)
    assert row["support_features"] is None
    if combine != "bpm" and kernel is not None:
        return  # members that are kernels have no reader in the product
    (batch,) = table.combine_chunks().to_batches()
    model = StoredModels(batch, features.item_ids)[0]
    scores = model.scores(features, problem.items[problem.test])
    ranks, true = rank_rule(batch, 0).ranks(scores), SCALE.ranks(problem.ratings[problem.test])
    assert row["rank_loss"] == pytest.approx(np.abs(ranks - true).mean())
    assert row["misranking"] == pytest.approx(pairwise_misranking(scores, true))
