"""ensemble as a stage of a run: every user, one sequence, one user's sequence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import SparkFiles
from pyspark.sql import SparkSession

from spark_rank.config import Config, load_config
from spark_rank.errors import ConfigError, InputDataError
from spark_rank.features.files import distribute_local
from spark_rank.learners import OAP, RIVALS
from spark_rank.learners.feature_maps import polynomial_features
from spark_rank.preference import from_votes, preference_loss
from spark_rank.stages import STAGES, pipeline
from spark_rank.stages.runner import run_stage
from spark_rank.store.run import Run
from spark_rank.users.ensembles import CURVE_ROUNDS, problem_number
from tests.predicted import predicted

MakeConfig = Callable[..., Config]
LEARNERS = (
    "ensemble.learners=[{n_members: 7, tau: 0.6, keep_members: true}, "
    "{name: bag, combine: bagging, n_members: 5}, "
    "{name: vote, combine: voted, sampling: poisson, n_members: 5, item_offset: false}]"
)


def files(run: Run, table: str) -> str:
    return f"'{run.path(table).removeprefix('file:')}/**/*.parquet'"


def rows(run: Run, table: str, order: str = "all") -> list[dict[str, Any]]:
    found: pa.Table = duckdb.sql(f"from {files(run, table)} order by {order}").arrow()
    whole = found if isinstance(found, pa.Table) else found.read_all()
    return [dict(row) for row in whole.to_pylist()]


@pytest.fixture(scope="module")
def with_ensembles(make_config: MakeConfig, run_pipeline: Callable[..., Run]) -> Run:
    """Return a run whose ensembles were learned in three groups, by all that may ask them."""
    config = make_config(
        "train.learners=[{learner: prank}]", LEARNERS, "ensemble.in_pipeline=true",
        "ensemble.groups=3", "rank={preference: members, learners: [oap_bpm]}",
        "recommend={in_pipeline: true, learner: vote, top: 4, bottom: 0}",
    )  # fmt: skip
    return run_pipeline(config, without=("aggregate",))


@pytest.mark.slow
def test_groups_and_partitions_decide_no_row(
    spark: SparkSession, with_ensembles: Run, make_config: MakeConfig
) -> None:
    from spark_rank.reader.recorded import ensemble_spec, recorded_training
    from spark_rank.stages.ensemble_users import ensemble_models
    from spark_rank.stages.training import learn_job
    from spark_rank.tables.contracts import BLOCKS

    config = make_config(LEARNERS)
    specs = [ensemble_spec(entry, config.seed) for entry in config.ensemble.learners]
    job = learn_job(recorded_training(with_ensembles), specs, spark, with_ensembles)
    blocks = with_ensembles.read(BLOCKS).repartition(5, "items")
    again = ensemble_models(blocks, job, groups=1, tasks=2).toArrow().to_pylist()
    stored = rows(with_ensembles, "ensemble_models")
    assert len(again) == len(stored) == 3 * 60
    by_key = {(row["user_id"], row["learner"]): row for row in again}
    for row in stored:
        del row["schema_version"], row["run_id"]
        assert row == by_key[row["user_id"], row["learner"]]


def test_evaluate_measures_ensembles_beside_the_others(with_ensembles: Run) -> None:
    found = duckdb.sql(
        f"""select m.learner, count(*), avg(m.rank_loss), avg(m.exact_rank)
            from {files(with_ensembles, "metrics")} m group by 1 order by 1"""
    ).fetchall()
    assert [row[:2] for row in found] == [
        (name, 60) for name in ("bag", "constant", "item_offset", "oap_bpm", "prank", "vote")
    ]
    losses = {row[0]: row[2] for row in found}
    found_ranks = predicted(with_ensembles)
    for label in ("bag", "oap_bpm", "vote"):
        own = [np.abs(np.array(user.ranks) - user.ratings).mean()
               for (_, learner), user in found_ranks.items() if learner == label]  # fmt: skip
        assert losses[label] == pytest.approx(np.mean(own))


def test_the_curve_and_the_diversity_are_means_over_users(with_ensembles: Run) -> None:
    models = rows(with_ensembles, "ensemble_models")
    curve = rows(with_ensembles, "ensemble_curve")
    assert {row["learner"] for row in curve} == {"bag", "oap_bpm", "vote"}
    for point in curve:
        place = CURVE_ROUNDS.tolist().index(point["round"])
        own = [m["curve"] or [] for m in models if m["learner"] == point["learner"]]
        losses = [sums[place] / point["round"] for sums in own if len(sums) > place]
        assert point["samples"] == len(losses)
        assert point["online_loss"] == pytest.approx(np.mean(losses))
        if len(losses) > 1 and np.std(losses) > 0:
            assert point["ci_low"] < point["online_loss"] < point["ci_high"]
    for row in rows(with_ensembles, "ensemble_diversity"):
        own = [m for m in models if m["learner"] == row["learner"] and m["status"] == "learned"]
        assert row["samples"] == len(own)
        assert row["prank_passes"] == row["n_members"] == len(own[0]["member_updates"])
        assert row["updates"] == pytest.approx(np.mean([m["member_updates"] for m in own]))
        for name in ("angle", "disagreement"):
            defined = [m[name] for m in own if m[name] is not None]
            assert row[name] == pytest.approx(np.mean(defined), abs=1e-8)
        assert (row["tau"] is None) == (row["sampling"] == "poisson")


def test_members_vote_in_rank(with_ensembles: Run) -> None:
    models = {row["user_id"]: row for row in rows(with_ensembles, "ensemble_models")
              if row["learner"] == "oap_bpm"}  # fmt: skip
    items = {row["item_id"]: row for row in rows(with_ensembles, "item_features")}
    blocks = {row["user_id"]: row for row in rows(with_ensembles, "blocks", "user")}
    ids = sorted(items, key=lambda item_id: items[item_id]["item"])
    checked = 0
    for ranking in rows(with_ensembles, "rankings"):
        model, block = models[ranking["user_id"]], blocks[ranking["user_id"]]
        held_out = [ids[item] for item in block["items"][block["n_train"] :]]
        assert sorted(ranking["items"]) == sorted(held_out)
        if model["members"] is None or not held_out:
            continue
        X = np.array([[*items[item]["features"], items[item]["offset"]] for item in held_out])
        if model["excluded_feature"] is not None:
            X[:, model["excluded_feature"]] = 0.0
        votes = np.reshape(model["members"], (7, -1))[:, : X.shape[1]] @ X.T
        truth = dict(enumerate(block["ratings"][block["n_train"] :]))
        expected = preference_loss(from_votes(votes), truth)
        # sums in another order: a tie of two items may come out otherwise
        assert ranking["preference_loss"] == pytest.approx(expected, abs=1e-3)
        checked += 1
    assert checked > 40
    assert (with_ensembles.record("rank") or {})["facts"]["learners"] == ["oap_bpm"]


def test_lists_are_of_the_voting_members(with_ensembles: Run) -> None:
    lists = rows(with_ensembles, "recommendations")
    models = {row["user_id"]: row for row in rows(with_ensembles, "ensemble_models")
              if row["learner"] == "vote"}  # fmt: skip
    features = {row["item_id"]: row["features"] for row in rows(with_ensembles, "item_features")}
    checked = 0
    for entry in lists:
        assert entry["learner"] == "vote"
        model = models[entry["user_id"]]
        if model["status"] != "learned":
            continue
        rules, votes = np.reshape(model["members"], (5, -1)), np.array(model["member_votes"])
        x = np.array(features[entry["item_id"]], dtype=float)
        if model["excluded_feature"] is not None:
            x[model["excluded_feature"]] = 0.0
        ranks = 1 + ((rules[:, : len(x)] @ x)[:, None] >= rules[:, len(x) + 1 :]).sum(axis=1)
        assert entry["score"] == pytest.approx(votes @ ranks / votes.sum())
        assert entry["predicted_rank"] == int(entry["score"] + 0.5)
        checked += 1
    assert checked > 50


def test_the_report_shows_curve_and_diversity(with_ensembles: Run) -> None:
    page = Path(with_ensembles.path("report/report.html").removeprefix("file:")).read_text()
    assert ">Ensembles</h2>" in page
    for word in ("disagreement", "oap_bpm", "PRank passes", "mean rank loss so far"):
        assert word in page


def test_who_has_no_members_is_told(with_ensembles: Run, make_config: MakeConfig) -> None:
    from spark_rank.stages.rank import ranking_learners

    other = "ensemble.learners=[{name: bag}, {name: other, combine: voted}]"
    asks = make_config(other, "rank={preference: members, learners: [other]}")
    with pytest.raises(ConfigError, match=r"no members of 'other', only of oap_bpm, bag, vote"):
        ranking_learners(asks, with_ensembles)
    trained = make_config(LEARNERS, "train.learners=[{learner: prank}]", "rank.learners=[vote]")
    assert ranking_learners(trained, with_ensembles) == ["vote"]
    assert ranking_learners(make_config("rank.preference=members"), with_ensembles) == ["oap_bpm"]
    assert ranking_learners(make_config("rank.preference=votes"), with_ensembles) == ["prank"]


def write_sequence(folder: Path, n: int, seed: int = 0, **columns: Any) -> tuple[Any, Any]:
    """Write half-way cut files, whose names tell the order, of a noisy rule."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    ranks = np.searchsorted([-1.0, 0.0, 1.0], X @ [1.0, -1.0, 0.5] + 0.5 * rng.normal(size=n)) + 1
    folder.mkdir(exist_ok=True)
    for part, (start, stop) in enumerate(((0, n // 3), (n // 3, n))):
        table = {"features": X[start:stop].tolist(), "rank": ranks[start:stop],
                 **{name: values[start:stop] for name, values in columns.items()}}  # fmt: skip
        pq.write_table(pa.table(table), folder / f"part-{part}.parquet")
    return X, ranks


def on_sequence(spark: SparkSession, config: Config) -> Run:
    run = Run(spark, config.store, config.run_id)
    run_stage(STAGES["ensemble"], config, spark, run)
    return run


def test_a_sequence_gives_what_the_class_learns(
    spark: SparkSession, make_config: MakeConfig, tmp_path: Path
) -> None:
    test = np.arange(400) >= 350
    X, ranks = write_sequence(tmp_path / "sequence", 400, test=test)
    config = make_config(
        f"ensemble.sequence={tmp_path / 'sequence'}", "ensemble.groups=7", "ensemble.chunk=90",
        "ensemble.learners=[{n_members: 20, keep_members: true}, {name: bag, combine: bagging, "
        "n_members: 10, tau: 0.7}, {name: near, kernel: rbf, gamma: 0.3, budget: 15}]",
        "ensemble.trials=2",
    )  # fmt: skip
    run = on_sequence(spark, config)
    found = {(row["learner"], row["trial"]): row for row in rows(run, "ensemble_models")}
    assert len(found) == 6
    for label, params in (
        ("oap_bpm", {"n_members": 20}),
        ("bag", {"combine": "bagging", "n_members": 10, "tau": 0.7}),
    ):
        local = OAP(4, **params).fit(X[:350], ranks[:350])  # type: ignore[arg-type]
        row = found[label, 1]
        assert row["online_loss"] == pytest.approx(local.online_loss_[-1], rel=1e-15)
        rules = np.column_stack([local.member_coef_, local.member_thresholds_])
        members = np.array(row["members"], np.float32).reshape(len(rules), -1)
        np.testing.assert_array_equal(members, rules.astype(np.float32))
    curve = {(row["learner"], row["round"]): row for row in rows(run, "ensemble_curve")}
    assert {name for name, _ in curve} == {"oap_bpm", "bag", "near", *RIVALS}
    assert max(number for _, number in curve) == 350
    metrics = {(row["learner"], row["metric"]): row for row in rows(run, "ensemble_metrics")}
    for name in ("oap_bpm", "near", "prank_voted"):
        loss = metrics[name, "rank_loss"]
        assert loss["trials"] == 2
        assert loss["least"] <= loss["mean"] <= loss["greatest"]
    assert not run.files.exists(run.path("scratch/ensemble"))


def test_kernels_of_a_sequence_by_their_settings(
    spark: SparkSession, make_config: MakeConfig, tmp_path: Path
) -> None:
    X, ranks = write_sequence(tmp_path / "s", 90, test=np.arange(90) >= 80)
    config = make_config(
        f"ensemble.sequence={tmp_path / 's'}",
        "ensemble.learners=[{name: one, kernel: poly, n_members: 6, keep_members: true}, "
        "{name: half, kernel: poly, gamma: 0.5, n_members: 6}, "
        "{name: near, kernel: rbf, gamma: 0.3, budget: 15, n_members: 6}]",
    )
    found = {row["learner"]: row for row in rows(on_sequence(spark, config), "ensemble_models")}
    for label, gamma in (("one", 1.0), ("half", 0.5)):
        terms = polynomial_features(X, gamma)
        np.testing.assert_allclose(terms @ terms.T, (gamma * X @ X.T + 1) ** 2)
        local = OAP(4, n_members=6).fit(terms[:80], ranks[:80])
        row = found[label]
        assert (row["kernel"], row["gamma"]) == ("poly", gamma)
        # an explicit map has no budget
        assert json.loads(row["hyperparameters"]).keys() >= {"gamma", "degree", "coef0"}
        assert "budget" not in json.loads(row["hyperparameters"])
        assert row["thresholds"] == local.thresholds_.tolist()
        weights = np.array(row["weights"], np.float32)
        np.testing.assert_array_equal(weights, local.coef_.astype(np.float32))
    assert len(found["one"]["members"]) == 6 * (10 + 3)
    near = found["near"]
    supports = np.reshape(near["support_features"], (15, 3))
    assert {tuple(point) for point in supports} <= {tuple(x) for x in X[:80]}
    distances = ((X[80:, None] - supports) ** 2).sum(axis=2)
    scores = np.exp(-near["gamma"] * distances) @ near["dual"]
    again = [1 + sum(score >= cut for cut in near["thresholds"]) for score in scores]
    assert near["rank_loss"] == pytest.approx(np.abs(np.array(again) - ranks[80:]).mean())
    assert near["weights"] is near["support_items"] is None


def test_its_files_stay_for_executors_that_start_later(
    spark: SparkSession, make_config: MakeConfig, tmp_path: Path
) -> None:
    # whatever was added, Spark hands to every executor that starts in this session
    before = set(spark.sparkContext.listFiles)
    write_sequence(tmp_path / "s", 60)
    settings = f"ensemble={{sequence: {tmp_path / 's'}, learners: [{{kernel: rbf, budget: 5}}]}}"
    on_sequence(spark, make_config(settings))
    added = [Path(uri.removeprefix("file:")) for uri in set(spark.sparkContext.listFiles) - before]
    assert len(added) == 4  # features and ranks; the kernel's points and roots
    for path in added:
        np.load(path)
    # nothing but what workers open is left
    left = {path.name for path in Path(SparkFiles.getRootDirectory()).iterdir()}
    assert not left & {"unsorted.npy", "landmarks.npy"}


def test_trials_of_a_file_are_sequences_of_their_own(
    spark: SparkSession, make_config: MakeConfig, tmp_path: Path
) -> None:
    trial = np.array([5, 9] * 150)
    X, ranks = write_sequence(tmp_path / "s", 300, trial=trial)
    config = make_config(f"ensemble.sequence={tmp_path / 's'}", "ensemble.learners=[{tau: 0.5}]")
    run = on_sequence(spark, config)
    for row in rows(run, "ensemble_models"):
        own = trial == row["trial"]
        local = OAP(4, n_members=20, tau=0.5, problem=row["trial"]).fit(X[own], ranks[own])
        assert row["thresholds"] == local.thresholds_.tolist()
        assert row["n_test"] == 0
    metrics = rows(run, "ensemble_metrics")
    assert {row["metric"] for row in metrics if row["mean"] is not None} == {"online_loss"}
    again = make_config(f"ensemble={{sequence: {tmp_path / 's'}, trials: 2}}")
    with pytest.raises(ConfigError, match=r"already has \d trials: set ensemble.trials to 1"):
        on_sequence(spark, again)


def test_one_user_of_the_run_as_a_sequence(
    spark: SparkSession, with_ensembles: Run, make_config: MakeConfig
) -> None:
    models = [row for row in rows(with_ensembles, "ensemble_models")
              if row["learner"] == "oap_bpm" and row["status"] == "learned"]  # fmt: skip
    wanted = max(models, key=lambda row: row["n_train"])
    root = with_ensembles.root.removeprefix("file:")
    config = make_config(
        f"store={root.rsplit('/runs/', 1)[0]}", LEARNERS, f"ensemble.user={wanted['user_id']}"
    )
    from spark_rank.stages.ensemble_sequence import sequence_job, sequence_models
    from spark_rank.stages.ensemble_sources import sequence_source

    folder = Path(root) / "local"
    folder.mkdir()
    source = sequence_source(config, with_ensembles, folder)
    distribute_local(spark, folder, source.files)
    assert source.trials[0].problem == problem_number(wanted["user_id"])
    table = sequence_models(spark, sequence_job(config, source), groups=2).toArrow()
    found = {row["learner"]: row for row in table.to_pylist()}
    # the same problem, the same draws, the same ensemble as in the every-user mode
    assert found["oap_bpm"]["member_updates"] == wanted["member_updates"]
    assert found["oap_bpm"]["thresholds"] == wanted["thresholds"]
    # and the same model to whoever scores items by it
    for name in ("weights", "offset_weight", "excluded_feature", "reviewers", "members"):
        assert found["oap_bpm"][name] == wanted[name]
    nobody = make_config(f"store={config.store}", "ensemble.user=nobody")
    with pytest.raises(ConfigError, match=r"ensemble\.user: the run has no user 'nobody'"):
        sequence_source(nobody, with_ensembles, folder)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"rank": [1, 2]}, "has no column 'features', only rank"),
        ({"features": [[1.0]], "rank": [1.5]}, r"column 'rank' is double: it must be tinyint or"),
        ({"features": [[1.0], [1.0, 2.0]], "rank": [1, 2]}, "features have 1 to 2 entries"),
        ({"features": [[1.0], [float("nan")]], "rank": [1, 2]}, "1 row without features"),
        ({"features": [[1.0], [2.0]], "rank": [0, 2]}, "1 row .* a rank below 1"),
        ({"features": [[1.0], [2.0]], "rank": [1, 1]}, "all ranks are 1"),
        ({"features": [[1.0], [2.0]], "rank": [1, 2], "test": [True, True]}, "no example to learn"),
        ({"features": [[1e300], [1e300]], "rank": [1, 2]}, r"oap_bpm: trial 1: .*scale the feat"),
    ],
)
def test_what_is_wrong_with_a_sequence_is_told(
    spark: SparkSession, make_config: MakeConfig, tmp_path: Path, table: Any, message: str
) -> None:
    pq.write_table(pa.table(table), tmp_path / "s.parquet")
    with pytest.raises(InputDataError, match=message):
        on_sequence(spark, make_config(f"ensemble.sequence={tmp_path / 's.parquet'}"))


def test_settings_that_contradict_each_other_are_told(make_config: MakeConfig) -> None:
    for sets, message in (
        (["ensemble.learners=[]"], r"ensemble\.learners: name at least one"),
        (["ensemble.learners=[{}, {tau: 0.5}]"], r"learners\[1\]\.name: 'oap_bpm' is taken"),
        (["ensemble.learners=[{name: constant}]"], "'constant' is taken"),
        (["ensemble={sequence: x, learners: [{name: prank}]}"], "'prank' is taken"),
        (["ensemble.learners=[{kernel: rbf}]"], r"kernel: 'rbf' is for a sequence"),
        (["ensemble={user: y, learners: [{kernel: rbf}]}"], r"\]\.item_offset: with a kernel the"),
        (["ensemble={sequence: x, user: y}"], r"ensemble\.user: ensemble\.sequence is set too"),
        (["ensemble.user= "], r"ensemble\.user: must not be empty"),
        (["ensemble.trials=3"], r"ensemble\.trials: 3 is for a sequence"),
        (["rank={preference: members, learners: [x]}"], r"rank\.learners\[0\].*known: oap_bpm"),
        (["recommend.learner=oap_bmp"], "did you mean 'oap_bpm'"),
    ):
        with pytest.raises(ConfigError, match=message):
            make_config(*sets)
    config = make_config("recommend.learner=oap_bpm")
    assert "ensemble" in STAGES["recommend"].needs(config)
    assert "ensemble" not in [stage.name for stage in pipeline(config)]


KILLED = """
import os, signal, sys
from pathlib import Path
from pyspark import TaskContext
from spark_rank.config import load_config
from spark_rank.sequences import learning as sequence_learning
from spark_rank.session.session import spark_session
from spark_rank.store.run import Run
from spark_rank.stages.runner import run_stage
from spark_rank.stages import STAGES, ensemble_sequence

original = sequence_learning.sequence_parts

def dying_parts(batches, job, work):
    context, sent = TaskContext.get(), 0
    for batch in original(batches, job, work):
        yield batch
        sent += 1
        if context.attemptNumber() == 0 and context.partitionId() % 2 and sent == 2:
            (Path(folder) / f"killed-{context.partitionId()}").touch()
            os.kill(os.getpid(), signal.SIGKILL)

path, folder = sys.argv[1:]
Path(folder).mkdir()
if folder.endswith("dying"):
    ensemble_sequence.sequence_parts = dying_parts
config = load_config(path, ["store=" + folder])
with spark_session("test", {"spark.master": "local[2,3]", "spark.ui.enabled": "false"}) as spark:
    run = Run(spark, config.store, config.run_id)
    run_stage(STAGES["ensemble"], config, spark, run)
"""


@pytest.mark.slow
def test_tasks_that_are_killed_and_tried_again_change_nothing(tmp_path: Path) -> None:
    write_sequence(tmp_path / "s", 400, test=np.arange(400) >= 350)
    config, script = tmp_path / "test.yaml", tmp_path / "killed.py"
    config.write_text(json.dumps({
        "ensemble": {"sequence": str(tmp_path / "s"), "groups": 4, "chunk": 100,
                     "learners": [{"n_members": 12}, {"combine": "voted", "n_members": 12}]},
    }))  # fmt: skip
    script.write_text(KILLED)
    tables = []
    for name in ("dying", "living"):
        subprocess.run(
            [sys.executable, str(script), str(config), str(tmp_path / name)],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
            capture_output=True, text=True, timeout=240, check=True,
        )  # fmt: skip
        # two ensembles in four groups are eight tasks, of which every other one dies once
        assert len(list((tmp_path / name).glob("killed-*"))) == (4 if name == "dying" else 0)
        folder = tmp_path / name / "runs" / "run_id=default"
        tables.append([
            duckdb.sql(f"from '{folder}/{table}/*.parquet' order by all").fetchall()
            for table in ("ensemble_models", "ensemble_curve", "ensemble_metrics")
        ])  # fmt: skip
    assert tables[0] == tables[1]


def test_weights_of_ratings_are_refused() -> None:
    config = load_config(
        None,
        ["train.weights=propensity", "features.propensities=fitted", "features.kind=factors"],
    )
    with pytest.raises(ConfigError, match="ensembles do not weigh ratings"):
        STAGES["ensemble"].validate(config)
