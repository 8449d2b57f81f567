"""A model row suffices to score any item, by the formula in the table's contract."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose

from spark_rank.features.files import FeatureFiles, ItemFeatures, MappedFile
from spark_rank.learners import PRank
from spark_rank.tables.contract import arrow_schema
from spark_rank.tables.contracts import ENSEMBLE_MODELS, ITEM_FEATURES, MODELS
from spark_rank.users.fitting import Limits
from spark_rank.users.learning import LearnJob, learn_batches
from spark_rank.users.rank_scale import RankScale
from spark_rank.users.specs import BASELINE_SPECS, LearnerSpec
from spark_rank.users.stored_models import SCORING_COLUMNS, StoredModels, rank_rule
from tests.users.learned_rows import Own, own_predictions

PAGE = (Path(__file__).parents[2] / "docs/guide/read-tables.md").read_text()
N_ITEMS, D, N_TRAIN = 60, 5, 40
RNG = np.random.default_rng(11)
# whole numbers, as the ratings of reviewers are: nothing is lost in single precision
MATRIX = RNG.integers(-2, 3, size=(N_ITEMS, D)).astype(np.float32)
OFFSET = RNG.integers(-4, 5, size=N_ITEMS) / 8.0
ITEM_IDS = [f"item {number}" for number in range(N_ITEMS)]
PRIOR = (RNG.integers(-4, 5, size=(N_ITEMS + 2, D)) / 64.0).astype(np.float32)
RATINGS = np.clip(np.round(3 + MATRIX @ RNG.normal(size=D) / 2 + RNG.normal(size=N_ITEMS)), 1, 5)
SCALE = RankScale((1.0, 2.0, 3.0, 4.0, 5.0))
FILES = FeatureFiles(*(MappedFile(name, "") for name in ("matrix", "offset", "prior", "item_ids")))

_KINDS = {column.name: column for column in ENSEMBLE_MODELS.columns}
SCORED = arrow_schema(tuple(_KINDS[name] for name in SCORING_COLUMNS))

LEARNERS: list[tuple[str, dict[str, Any], bool]] = [
    *[(name, {"kernel": kernel}, offset)
      for name in ("mprank", "svrank", "ranksvm")
      for kernel in ("linear", "rbf", "poly", "linear+rbf")
      for offset in (True, False)],
    *[("prank", {"readout": readout, "epochs": 2}, offset)
      for readout in ("last", "averaged") for offset in (True, False)],
    *[("prank", {"readout": readout, "kernel": kernel, "epochs": 2, "gamma": 0.3}, False)
      for readout in ("last", "averaged", "voted") for kernel in ("rbf", "poly", "linear")],
    *[("widrow_hoff", {"eta": 0.01}, offset) for offset in (True, False)],
    *[("multiclass_perceptron", {}, offset) for offset in (True, False)],
    *[("rankboost", {"n_rounds": 20}, offset) for offset in (True, False)],
]  # fmt: skip


def model_row(
    learner: str, params: dict[str, Any], item_offset: bool, prior: np.ndarray, most: int
) -> dict[str, Any]:
    (row,) = learned_rows([LearnerSpec("it", learner, item_offset, params)], prior, most)
    return row


def said_by_learner(
    learner: str, params: dict[str, Any], item_offset: bool, prior: np.ndarray, most: int
) -> Own:
    """Return the fitted learner's scores and ranks of the held-out items, before it is a row."""
    spec = LearnerSpec("it", learner, item_offset, params)
    features = ItemFeatures(MATRIX, OFFSET, prior, pa.array(ITEM_IDS))
    limits = Limits(SCALE, max_kernel_ratings=most, landmarks=10, folds=3)
    (own,) = own_predictions(spec, features, limits=limits, users=one_block())
    assert own is not None
    return own


def learned_rows(
    specs: Sequence[LearnerSpec], prior: np.ndarray = PRIOR, most: int = 1000
) -> list[dict[str, Any]]:
    """Return the model rows of one user."""
    features = ItemFeatures(MATRIX, OFFSET, prior, pa.array(ITEM_IDS))
    limits = Limits(SCALE, max_kernel_ratings=most, landmarks=10, folds=3)
    job = LearnJob(FILES, tuple(specs), {}, min_ratings=2, margin=1.0, limits=limits)
    (out,) = learn_batches(iter([one_block()]), job, lambda files: features)
    return [dict(row) for row in out.to_pylist()]


def one_block() -> pa.RecordBatch:
    return pa.record_batch(
        {
            "user": pa.array([7], pa.int32()),
            "user_id": pa.array(["seven"]),
            "items": pa.array([list(range(N_ITEMS))], pa.list_(pa.int32())),
            "ratings": pa.array([RATINGS.tolist()], pa.list_(pa.float32())),
            "n_train": pa.array([N_TRAIN], pa.int32()),
            "bucket": pa.array([0], pa.int32()),
        }
    )


def kernel_value(row: dict[str, Any], a: np.ndarray, b: np.ndarray) -> float:
    settings, name = json.loads(row["hyperparameters"]), row["kernel"]
    if name == "poly":
        return float((row["gamma"] * (a @ b) + settings["coef0"]) ** settings["degree"])
    value = a @ b if "linear" in name else 0.0
    if "rbf" in name:
        weight = settings.get("rbf_weight", 1.0)
        value += weight * np.exp(-row["gamma"] * ((a - b) ** 2).sum())
    return float(value)


def rank_among(score: float, thresholds: list[float]) -> int:
    return 1 + sum(score >= threshold for threshold in thresholds)


def score_by_hand(row: dict[str, Any], item: int) -> tuple[float, int | None]:
    """Return the score and rank of an item, by the documentation of the table."""
    x, offset = MATRIX[item].astype(float), OFFSET[item]
    if row["prototypes"] is not None:
        sums = [w[:-1] @ x + w[-1] * offset for w in np.reshape(row["prototypes"], (5, D + 1))]
        return float(np.argmax(sums) + 1), int(np.argmax(sums) + 1)
    duals = []
    if row["dual"] is not None:
        support = [MATRIX[ITEM_IDS.index(name)].astype(float) for name in row["support_items"]]
        duals = [a * kernel_value(row, s, x) for a, s in zip(row["dual"], support, strict=True)]
    if row["votes"] is not None:
        rules = np.reshape(row["thresholds"], (len(row["votes"]), -1))
        ranks = [rank_among(sum(duals[:s]), rule) for s, rule in enumerate(rules)]
        score = float(np.dot(ranks, row["votes"]) / sum(row["votes"]))
        return score, int(np.floor(score + 0.5))
    score = row["intercept"] + row["offset_weight"] * offset + sum(duals)
    if row["weights"] is not None:
        score += np.dot(row["weights"], x)
    rankers = [row[f"ranker_{name}"] for name in ("features", "cuts", "below", "alphas")]
    if rankers[0] is not None:
        for feature, cut, below, alpha in zip(*rankers, strict=True):
            score += alpha * ((x[feature] < cut) if below else (x[feature] >= cut))
    if row["thresholds"] is None:
        return float(score), None
    return float(score), rank_among(score, row["thresholds"])


@pytest.mark.parametrize("expected", [False, True])
@pytest.mark.parametrize(("learner", "params", "item_offset"), LEARNERS)
def test_every_model_is_scored_by_its_row_alone(
    learner: str, params: dict[str, Any], item_offset: bool, expected: bool
) -> None:
    prior = PRIOR if expected else PRIOR[:0]
    row = model_row(learner, params, item_offset, prior, most=1000)
    assert (row["status"], row["detail"]) == ("learned", None)
    by_hand = [score_by_hand(row, item) for item in range(N_TRAIN, N_ITEMS)]
    scores, ranks = zip(*by_hand, strict=True)
    own = said_by_learner(learner, params, item_offset, prior, most=1000)
    assert_allclose(own.scores, scores, rtol=1e-4, atol=1e-4)
    if own.ranks is None:
        assert set(ranks) == {None}
    else:
        # in single precision a score may fall on the other side of its threshold
        assert np.mean(np.array(own.ranks) == ranks) >= 0.9
    # the model orders the held-out items better than chance
    assert np.corrcoef(own.scores, RATINGS[N_TRAIN:])[0, 1] > 0.0
    assert row["on_rating_scale"] == (learner in ("mprank", "svrank"))
    assert (row["train_msd"] is None) == (not row["on_rating_scale"])


@pytest.mark.parametrize(("learner", "params", "item_offset"), LEARNERS)
def test_the_lines_of_the_page_score_every_model(
    learner: str, params: dict[str, Any], item_offset: bool
) -> None:
    (lines,) = re.findall(r"```python\n([^`]*def score\(row, item\):.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {
        "np": np, "json": json,
        "features": dict(zip(ITEM_IDS, MATRIX.astype(float), strict=True)),
        "offset": dict(zip(ITEM_IDS, OFFSET, strict=True)),
    }  # fmt: skip
    exec(lines, names)
    row = model_row(learner, params, item_offset, PRIOR, most=1000)
    scores = [names["score"](row, item) for item in ITEM_IDS[N_TRAIN:]]
    own = said_by_learner(learner, params, item_offset, PRIOR, most=1000)
    assert_allclose(own.scores, scores, rtol=1e-4, atol=1e-4)


def test_a_voting_row_gives_the_ranks_of_the_learner_to_the_bit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where one feature is small, products with the supports round away what decides a rank."""
    rng = np.random.default_rng(8)
    matrix = rng.integers(-2, 3, (N_ITEMS, 2)) * np.array([1.0, 1e-8]) / 3.0
    monkeypatch.setattr(f"{__name__}.MATRIX", matrix.astype(np.float32))
    monkeypatch.setattr(f"{__name__}.RATINGS", rng.integers(1, 6, N_ITEMS).astype(float))
    features = ItemFeatures(MATRIX, OFFSET, PRIOR[:0, :2], pa.array(ITEM_IDS))
    (spec,) = [LearnerSpec("it", "prank", False, {"readout": "voted", "epochs": 3})]
    rows = learned_rows([spec], PRIOR[:0, :2])
    batch = pa.RecordBatch.from_pylist(rows, schema=SCORED)
    model = StoredModels(batch, features.item_ids)[0]
    X, ranks = MATRIX[:N_TRAIN], SCALE.ranks(RATINGS[:N_TRAIN])
    learner = PRank(5, readout="voted", epochs=3).fit(X, ranks)
    scores = model.scores(features, np.arange(N_ITEMS))
    assert scores.tolist() == learner.decision_function(MATRIX).tolist()
    predicted = rank_rule(batch, 0).ranks(scores)
    assert predicted.tolist() == learner.predict(MATRIX).tolist()


@pytest.mark.parametrize(("learner", "params", "item_offset"), LEARNERS)
def test_without_features_the_offset_is_all_there_is(
    learner: str, params: dict[str, Any], item_offset: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only learners of ranks learn from it: it is a feature to them."""
    monkeypatch.setattr(f"{__name__}.MATRIX", MATRIX[:, :0])
    row = model_row(learner, params, item_offset, PRIOR[:0, :0], most=1000)
    of_ranks = learner in ("prank", "widrow_hoff", "multiclass_perceptron")
    if of_ranks and item_offset:
        assert (row["status"], row["reason"]) == ("learned", None)
        return
    assert (row["status"], row["reason"]) == ("fallback", "no_features")
    constant = float(np.mean(RATINGS[:N_TRAIN] - OFFSET[:N_TRAIN]))
    assert (row["intercept"], row["weights"]) == (pytest.approx(constant, rel=1e-6), None)


def test_the_query_of_the_readme_scores_thousands_of_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as there are in the default run: DuckDB takes so many rows in several parts."""
    (query,) = [part for part in re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
                if "list_dot_product" in part]  # fmt: skip
    specs = [*BASELINE_SPECS, LearnerSpec("mprank_linear", "mprank", True, {}),
             LearnerSpec("mprank", "mprank", True, {"kernel": "linear+rbf"})]  # fmt: skip
    rows, n_users = learned_rows(specs), 3100
    users = [{**row, "user_id": f"user {user}"} for user in range(n_users) for row in rows]
    items = [{"item_id": name, "offset": OFFSET[i], "features": MATRIX[i].tolist()}
             for i, name in enumerate(ITEM_IDS)]  # fmt: skip
    for contract, content in ((MODELS, users), (ITEM_FEATURES, items)):
        (tmp_path / contract.table).mkdir()
        table = pa.Table.from_pylist(content, arrow_schema(contract.columns))
        pq.write_table(table, tmp_path / contract.table / "part.parquet")
    monkeypatch.chdir(tmp_path)
    expected = [score_by_hand(rows[2], item)[0] for item in range(N_ITEMS)]
    scored = duckdb.sql(query).df().pivot(index="user_id", columns="item_id", values="score")
    assert scored.shape == (n_users, N_ITEMS)
    by_user = scored[ITEM_IDS].to_numpy()
    assert_allclose(by_user, np.broadcast_to(expected, by_user.shape), rtol=1e-6)


@pytest.mark.parametrize("learner", ["mprank", "svrank", "ranksvm"])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear+rbf"])
def test_a_model_on_landmarks_is_scored_by_its_row_alone(learner: str, kernel: str) -> None:
    row = model_row(learner, {"kernel": kernel}, True, PRIOR, most=12)
    assert (row["status"], row["reason"]) == ("approximated", "landmarks")
    assert len(row["dual"]) == len(row["support_items"]) == 10
    by_hand = [score_by_hand(row, item)[0] for item in range(N_TRAIN, N_ITEMS)]
    own = said_by_learner(learner, {"kernel": kernel}, True, PRIOR, most=12)
    assert_allclose(own.scores, by_hand, rtol=1e-3, atol=1e-3)


def test_all_hyper_parameters_are_told() -> None:
    row = model_row("prank", {"readout": "averaged"}, True, PRIOR, most=1000)
    assert json.loads(row["hyperparameters"]) == {
        "n_ranks": 5, "kernel": "linear", "epochs": 1, "readout": "averaged", "gamma": 1.0,
        "degree": 2, "coef0": 1.0, "update": "perceptron", "C": 1.0,
    }  # fmt: skip
