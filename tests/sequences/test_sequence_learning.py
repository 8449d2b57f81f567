"""A sequence's ensembles in Arrow batches: against the class OAP, however the work is cut."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spark_rank.features.files import MappedFile
from spark_rank.learners import OAP, RIVALS
from spark_rank.learners.feature_maps import polynomial_features
from spark_rank.learners.kernels import Kernel
from spark_rank.learners.perceptrons import blocks
from spark_rank.sequences.examples import SequenceJob, SequenceSpec, Trial, TrialSequence, View
from spark_rank.sequences.files import Examples, SequenceFiles, TrialPart
from spark_rank.sequences.learning import Work, sequence_parts, sequence_results
from spark_rank.sequences.rivals import rival_results
from spark_rank.users.ensembles import CURVE_ROUNDS, split_members
from spark_rank.users.member_sums import KEY

N_TRAIN, N_TEST, N_MEMBERS = 300, 40, 100
RNG = np.random.default_rng(1)
FILES = SequenceFiles(MappedFile("x", ""), MappedFile("y", ""))
# features without a short binary expansion: sums of floats would depend on their order
X = RNG.normal(size=(2 * (N_TRAIN + N_TEST), 3))
RANKS = np.searchsorted([-1.0, 0.0, 1.0], X @ [1.0, -2.0, 0.5] + RNG.normal(size=len(X))) + 1
EXAMPLES = Examples(X, RANKS)
PARTS = (TrialPart(1, 0, N_TRAIN, N_TEST), TrialPart(2, N_TRAIN + N_TEST, N_TRAIN, N_TEST))
TRIALS = (Trial(1, PARTS[0], 0, False), Trial(2, PARTS[1], 1, True))
SPECS = tuple(
    SequenceSpec(
        combine,
        {"combine": combine, "sampling": sampling, "n_members": N_MEMBERS, "tau": 0.4, "seed": 9},
        View(FILES, squared=combine == "voted"), False, "linear", None, "{}",
    )
    for combine, sampling in (("bpm", "bernoulli"), ("bagging", "poisson"), ("voted", "bernoulli"))
)  # fmt: skip
JOB = SequenceJob(TRIALS, SPECS, 4, 9, chunk=1000)


def open_files(files: SequenceFiles) -> Examples:
    return EXAMPLES


def results(groups: int, job: SequenceJob, seed: int = 0, size: int = 5) -> list[dict[str, Any]]:
    """Return what a reduce makes of parts that came in any order, in batches of any size."""
    work = [
        Work(trial, spec, first, last)
        for trial in range(len(job.trials))
        for spec in range(len(job.specs))
        for first, last in split_members(N_MEMBERS, groups)
    ]
    ids = pa.record_batch({"id": pa.array(range(len(work)), pa.int64())})
    batches = list(sequence_parts(iter([ids]), job, work, open_files))
    rows = [row for batch in batches for row in batch.to_pylist()]
    np.random.default_rng(seed).shuffle(rows)
    # what Spark sorts by says nothing about the groups' order
    rows.sort(key=lambda row: tuple(row[name] for name in KEY))
    parts = (pa.RecordBatch.from_pylist(rows[start : start + size], batches[0].schema)
             for start in range(0, len(rows), size))  # fmt: skip
    found = sequence_results(parts, job, open_files)
    return [row for batch in found for row in batch.to_pylist()]


def examples_of(trial: Trial, spec: SequenceSpec) -> tuple[Any, Any, Any, Any]:
    sequence = TrialSequence(EXAMPLES, trial, spec.view.squared, JOB.seed)
    features, ranks = sequence.rounds(0, N_TRAIN)
    return features, ranks, *sequence.held_out()


def curve(rows: list[dict[str, Any]]) -> tuple[list[int], int, list[int]]:
    """Return the losses on the grid, their sum, and the lengths of the chunks, of all rows."""
    rows.sort(key=lambda row: row["first_round"])
    totals = np.cumsum([0] + [row["total"] for row in rows]).tolist()
    losses = [total + loss for total, row in zip(totals, rows, strict=False)
              for loss in row["losses"]]  # fmt: skip
    assert all(row["status"] is None for row in rows[:-1])
    return losses, totals[-1], [row["n_rounds"] for row in rows]


def by_ensemble(rows: list[dict[str, Any]]) -> dict[tuple[int, str], list[dict[str, Any]]]:
    found: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault((row["trial"], row["learner"]), []).append(row)
    return found


# blocks of 2^16 are longer than the sequence; 100 divide it, 77 do not
@pytest.mark.parametrize("block", [2**16, 100, 77])
@pytest.mark.parametrize("groups", [1, 2, 7, 100])
def test_any_groups_give_what_the_class_learns(
    groups: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_ROUNDS", block)
    found = by_ensemble(results(groups, JOB, seed=groups))
    assert len(found) == 6
    for trial in TRIALS:
        for spec in SPECS:
            features, ranks, X_test, test_ranks = examples_of(trial, spec)
            local = OAP(4, problem=trial.problem, **spec.params).fit(features, ranks)
            losses, total, lengths = curve(found[trial.number, spec.label])
            assert (sum(lengths), max(lengths)) == (N_TRAIN, min(block, N_TRAIN))
            assert total == local.total_loss_
            exact = np.rint(local.online_loss_ * np.arange(1, N_TRAIN + 1)).astype(int)
            assert losses == exact[CURVE_ROUNDS[: len(losses)] - 1].tolist()
            row = found[trial.number, spec.label][-1]
            assert row["status"] == "learned"
            predicted = local.predict(X_test)
            assert row["rank_loss"] == pytest.approx(np.abs(predicted - test_ranks).mean())
            assert row["member_updates"] == local.member_updates_.tolist()
            if local.combine == "bpm":
                assert row["thresholds"] == local.thresholds_.tolist()
                weights = np.array(row["weights"], np.float32)
                np.testing.assert_array_equal(weights, local.coef_.astype(np.float32))
            else:
                rules = np.column_stack([local.member_coef_, local.member_thresholds_])
                members = np.array(row["members"], np.float32).reshape(N_MEMBERS, -1)
                np.testing.assert_array_equal(members, rules.astype(np.float32))
                assert row["member_votes"] == local.votes().tolist()


@pytest.mark.parametrize("block", [2**16, 100, 77])
@pytest.mark.parametrize("chunk", [1, 37, 77, 150, 299])
def test_chunks_add_up_to_the_whole(
    chunk: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_ROUNDS", block)
    job = replace(JOB, specs=SPECS[:2], trials=TRIALS[1:])
    whole = by_ensemble(results(3, job))
    for key, rows in by_ensemble(results(2, replace(job, chunk=chunk))).items():
        losses, total, lengths = curve(rows)
        assert (losses, total) == curve(whole[key])[:2]
        ends = np.cumsum(lengths).tolist()
        assert all(length == chunk or end % block == 0 or end == N_TRAIN
                   for length, end in zip(lengths, ends, strict=True))  # fmt: skip
        assert set(range(block, N_TRAIN, block)) <= set(ends)
        names = ("weights", "thresholds", "members", "member_votes", "angle",
                 "disagreement", "member_correct", "rank_loss", "misranking")  # fmt: skip
        assert {n: rows[-1][n] for n in names} == {n: whole[key][-1][n] for n in names}


def test_a_reordered_trial_is_a_permutation_of_its_own() -> None:
    part = PARTS[0]
    given = TrialSequence(EXAMPLES, Trial(1, part, 0, False), False, 0)
    orders = []
    for problem, seed in ((1, 0), (2, 0), (1, 1)):
        trial = TrialSequence(EXAMPLES, Trial(2, part, problem, True), False, seed)
        chunks = list(trial.chunks(64))
        features = np.concatenate([chunk for chunk, _ in chunks])
        ranks = np.concatenate([own for _, own in chunks])
        np.testing.assert_array_equal(ranks, trial.rounds(0, N_TRAIN)[1])
        rows = [X.tolist().index(row) for row in features.tolist()]
        np.testing.assert_array_equal(RANKS[rows], ranks)
        assert sorted(rows) == list(range(N_TRAIN))
        np.testing.assert_array_equal(trial.held_out()[0], given.held_out()[0])
        orders.append(rows)
    assert len({tuple(rows) for rows in orders}) == 3
    assert all(rows != list(range(N_TRAIN)) for rows in orders)


def test_a_reduce_sorts_a_reordered_trial_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_ROUNDS", 50)
    sorts: list[int] = []
    original = TrialSequence._order.func  # type: ignore[attr-defined]

    def order(sequence: TrialSequence) -> Any:
        sorts.append(sequence.trial.number)
        return original(sequence)

    monkeypatch.setattr(TrialSequence._order, "func", order)
    results(2, replace(JOB, trials=TRIALS[1:], specs=SPECS[:1]))
    assert sorts == [2] * 3  # once by each of two groups, once by the reduce


@pytest.mark.parametrize("name", RIVALS)
@pytest.mark.parametrize("chunk", [77, 1000])
def test_rivals_see_the_same_sequence(name: str, chunk: int) -> None:
    ids = pa.record_batch({"id": pa.array([0, 1], pa.int64())})
    work = [(0, name), (1, name)]
    job = replace(JOB, chunk=chunk)
    found = rival_results(iter([ids]), job, work, SPECS[2].view, open_files)
    for trial, batch in zip(TRIALS, found, strict=True):
        (row,) = batch.to_pylist()
        features, ranks, X_test, test_ranks = examples_of(trial, SPECS[2])
        kind: Any = RIVALS[name][0]
        local = kind(4, **RIVALS[name][1]).fit(features, ranks)
        assert row["total"] == local.total_loss_
        errors = np.abs(local.predict(X_test) - test_ranks)
        assert row["rank_loss"] == pytest.approx(errors.mean())
        assert row["exact_rank"] == pytest.approx((errors == 0).mean())
        assert row["failure"] is None


def test_what_overflows_is_told() -> None:
    huge = Examples(X * 1e200, RANKS)
    work = [Work(0, 0, 0, 50), Work(0, 0, 50, 100)]
    ids = pa.record_batch({"id": pa.array([0, 1], pa.int64())})
    opened: Callable[[SequenceFiles], Examples] = lambda files: huge  # noqa: E731
    parts = sequence_parts(iter([ids]), JOB, work, opened)
    rows = [row for batch in sequence_results(parts, JOB, opened) for row in batch.to_pylist()]
    assert rows[-1]["status"] is None
    assert "scale the features down" in rows[-1]["failure"]
    (rival,) = rival_results(iter([ids.slice(0, 1)]), JOB, [(0, "prank")], SPECS[0].view, opened)
    assert "scale the features down" in rival.to_pylist()[0]["failure"]


def test_without_a_test_part_there_are_no_metrics() -> None:
    trial = Trial(1, TrialPart(1, 0, N_TRAIN, 0), 0, False)
    rows = results(2, replace(JOB, trials=(trial,)))
    assert all(row["rank_loss"] is row["misranking"] is row["disagreement"] is None for row in rows)
    assert all((row["status"], row["n_test"]) == ("learned", 0) for row in rows)


def test_terms_of_degree_two_are_the_explicit_map() -> None:
    features, _, X_test, _ = examples_of(TRIALS[0], SPECS[2])
    np.testing.assert_array_equal(features, polynomial_features(X[:N_TRAIN]))
    np.testing.assert_array_equal(X_test, polynomial_features(X[N_TRAIN : N_TRAIN + N_TEST]))


@pytest.mark.parametrize("gamma", [0.1, 0.5, 3.0])
def test_their_products_are_the_kernel_of_any_width(gamma: float) -> None:
    trial = TrialSequence(EXAMPLES, TRIALS[0], True, 0, gamma)
    ((terms, _),), (held_out, _) = trial.chunks(N_TRAIN), trial.held_out()
    kernel = Kernel("poly", gamma, 2, 1.0)
    expected = kernel(X[:N_TRAIN], X[N_TRAIN : N_TRAIN + N_TEST])
    # where the kernel is nearly 0, terms of either sign cancel
    np.testing.assert_allclose(terms @ held_out.T, expected, rtol=1e-12, atol=1e-12)
