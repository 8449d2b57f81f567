"""Every learner in one pass over the data, with hyper-parameters chosen per user or for all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from numpy.testing import assert_allclose
from pyspark.sql import SparkSession

from spark_rank.config import Config
from spark_rank.errors import ConfigError, InputDataError
from spark_rank.stages import STAGES, pipeline, report, tune
from spark_rank.stages.heaviest_first import by_cost
from spark_rank.stages.runner import run_stages
from spark_rank.stages.training import target_blocks
from spark_rank.store.run import Run
from spark_rank.tables.contracts import BLOCKS
from tests.generated import generated_run
from tests.predicted import predicted

LEARNERS = """
train:
  targets_min: 12
  learners:
    - {name: shared, learner: mprank, grid: {C: [0.0001, 0.1, 1], kernel: [linear, rbf]}}
    - {name: own, learner: mprank, grid: {C: [0.01, 0.1, 1, 10]}, selection: leave_pair_out}
    - {name: own_folds, learner: svrank, params: {epsilon: 0.5}, grid: {C: [1, 100]},
       selection: k_fold}
    - {learner: ranksvm}
    - {learner: rankboost, params: {n_rounds: 10}}
    - {learner: prank}
    - {name: averaged, learner: prank, params: {readout: averaged}, grid: {epochs: [1, 5]}}
    - {name: voted, learner: prank, params: {readout: voted}, item_offset: false}
    - {learner: widrow_hoff, params: {eta: 0.01}}
    - {learner: multiclass_perceptron}
synthesize: {users: 40, items: 60, median_ratings: 20}
tune: {users: 15}
"""
RANKERS = ("prank", "averaged", "voted", "widrow_hoff", "multiclass_perceptron")
ORDERS = ("ranksvm", "rankboost")
SCORERS = ("shared", "own", "own_folds")

MakeConfig = Callable[..., Config]


def run_until(last: str, spark: SparkSession, config: Config) -> Run:
    run = generated_run(spark, config)
    names = [stage.name for stage in pipeline(config)]
    stages = [STAGES[name] for name in names[: names.index(last) + 1]]
    run_stages(stages, config, spark, run)
    return run


@pytest.fixture(scope="module")
def trained(spark: SparkSession, make_config: MakeConfig) -> Run:
    return run_until("evaluate", spark, make_config(yaml=LEARNERS))


def query(run: Run, text: str) -> list[tuple[Any, ...]]:
    tables = {
        name: f"read_parquet('{run.path(name).removeprefix('file:')}/**/*.parquet')"
        for name in (
            "models",
            "metrics",
            "summary",
            "comparison",
            "tuning",
            "blocks",
            "rating_scale",
            "recommendations",
        )
    }
    return duckdb.sql(text.format(**tables)).fetchall()


def test_every_learner_learns_every_target(trained: Run) -> None:
    targets = query(trained, "select count(*) from {blocks} where len(items) >= 12")[0][0]
    users = query(trained, "select count(*) from {blocks}")[0][0]
    assert 0 < targets < users
    found = query(trained, "select learner, status, count(*) from {models} group by all")
    learners = {"constant", "item_offset", *RANKERS, *ORDERS, *SCORERS}
    assert {learner for learner, _, _ in found} == learners
    for learner in learners:
        counts = {status: n for name, status, n in found if name == learner}
        assert sum(counts.values()) == targets
        assert counts["learned"] >= 0.9 * targets
        assert "failed" not in counts


def test_learners_of_ranks_are_measured_by_the_levels_they_predict(trained: Run) -> None:
    levels = [r[0] for r in query(trained, "select rating from {rating_scale} order by rank")]
    rows = query(
        trained,
        """select user_id, learner, rank_loss, msd, exact_rank
           from {metrics} where n_test > 0""",
    )
    seen, found = set(), predicted(trained)
    for user, learner, rank_loss, msd, exact in rows:
        ranks, ratings = found[user, learner].ranks, found[user, learner].ratings
        assert (ranks[0] is not None) == (learner in RANKERS)
        if ranks[0] is None:
            continue
        seen.add(learner)
        true = np.array([levels.index(rating) + 1 for rating in ratings])
        assert_allclose(rank_loss, np.abs(true - ranks).mean())
        assert_allclose(exact, np.mean(true == ranks))
        residual = np.array(levels)[np.array(ranks) - 1] - ratings
        assert_allclose(msd, np.mean((residual[:, None] - residual[None, :]) ** 2), atol=1e-12)
    assert seen == set(RANKERS)


def test_scores_that_only_put_in_order_have_no_squared_difference(trained: Run) -> None:
    rows = query(
        trained,
        "select learner, count(msd), count(misranking), count(auc) from {metrics} group by all",
    )
    for learner, squared, misranked, areas in rows:
        assert (squared == 0) == (learner in ORDERS)
        assert misranked > 0
        assert areas > 0


def test_what_a_sample_chose_is_what_all_are_trained_with(trained: Run) -> None:
    rows = query(
        trained,
        """select learner, candidate, hyperparameters, users, error, chosen from {tuning}
           order by learner, candidate""",
    )
    assert {(learner, n) for learner, n, *_ in rows} == {
        *(("shared", n) for n in range(1, 7)), ("averaged", 1), ("averaged", 2),
        *(("own", n) for n in range(1, 5)), ("own_folds", 1), ("own_folds", 2),
    }  # fmt: skip
    assert {users for _, _, _, users, _, _ in rows} == {15}
    for label in ("shared", "averaged"):
        own = [row for row in rows if row[0] == label]
        (chosen,) = [row for row in own if row[5]]
        assert chosen[4] == min(row[4] for row in own)
        used = query(
            trained,
            f"""select distinct hyperparameters from {{models}}
                where learner = '{label}' and status = 'learned'""",
        )
        assert [json.loads(text) for (text,) in used] == [json.loads(chosen[2])]


def test_train_refuses_what_was_chosen_for_another_grid(
    spark: SparkSession, make_config: MakeConfig, trained: Run
) -> None:
    found = tune.decided_specs(make_config(yaml=LEARNERS), trained)
    assert all(spec.prior is not None for spec in found if spec.grid)
    edited = make_config(yaml=LEARNERS.replace("[0.0001, 0.1, 1]", "[0.1, 1]"))
    with pytest.raises(ConfigError, match="for other settings"):
        tune.decided_specs(edited, trained)
    with pytest.raises(ConfigError, match="no learner in train.learners has a grid"):
        tune.tune(make_config(), spark, trained)


def test_each_user_has_the_choice_that_the_sample_allows(
    make_config: MakeConfig, trained: Run
) -> None:
    specs = {spec.label: spec for spec in tune.decided_specs(make_config(yaml=LEARNERS), trained)}
    priors = (trained.record("tune") or {})["facts"]["priors"]
    assert priors.keys() == {"own", "own_folds"}
    for label, prior in priors.items():
        used = query(
            trained,
            f"""select distinct hyperparameters from {{models}}
                where learner = '{label}' and status = 'learned'""",
        )
        values = {json.loads(text)["C"] for (text,) in used}
        if prior is None:  # one point for all is as good
            assert values == {specs[label].params["C"]}
        else:
            assert values <= set(specs[label].grid["C"])


def test_partitions_decide_nothing(
    spark: SparkSession, make_config: MakeConfig, trained: Run
) -> None:
    config = make_config("prepare.buckets=3", yaml=LEARNERS)
    other = run_until("train", spark, config)
    for table, order in (("tuning", "learner, candidate"), ("models", "learner, user_id")):
        text = f"select * from {{{table}}} order by {order}"
        # as text, for null and NaN are equal to themselves there
        assert str(query(other, text)) == str(query(trained, text))


def test_a_task_is_a_bucket_and_the_longest_is_first(make_config: MakeConfig, trained: Run) -> None:
    rows = query(
        trained,
        """select distinct parse_filename(m.filename), b.bucket
           from (select user_id, filename from {models}) m join {blocks} b using (user_id)
           order by all""",
    )
    blocks = target_blocks(make_config(yaml=LEARNERS).train, trained.read(BLOCKS))
    order = by_cost(make_config(yaml=LEARNERS), blocks, 16)
    with_users = {row["bucket"] for row in blocks.select("bucket").distinct().collect()}
    assert [bucket for _, bucket in rows] == [bucket for bucket in order if bucket in with_users]


def test_the_same_command_again_tunes_nothing(
    spark: SparkSession, make_config: MakeConfig, trained: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    store = trained.root.removeprefix("file:").rsplit("/runs/", 1)[0]
    run_until("evaluate", spark, make_config(f"store={store}", yaml=LEARNERS))
    assert "[tune] already done" in capsys.readouterr().err
    with pytest.raises(ConfigError, match=r"tune.users was 15, is 14"):
        run_until("tune", spark, make_config(f"store={store}", "tune.users=14", yaml=LEARNERS))


@pytest.mark.slow
def test_a_learner_without_baselines_is_the_same_learner(
    spark: SparkSession, make_config: MakeConfig, finished: Run
) -> None:
    linear = "train.learners=[{name: linear, params: {C: 0.1}}]"
    config = make_config("train.baselines=false", linear)
    alone = run_until("report", spark, config)
    run_stages([STAGES["recommend"]], config, spark, alone)
    for table in ("models", "metrics"):
        own = query(alone, f"select * from {{{table}}} order by user_id")
        expected = f"select * from {{{table}}} where learner = 'linear' order by user_id"
        assert str(own) == str(query(finished, expected))
    assert query(alone, "select distinct learner from {summary}") == [("linear",)]
    assert query(alone, "select count(*) from {comparison}") == [(0,)]
    assert "linear" in Path(alone.path(report.FILE).removeprefix("file:")).read_text()
    assert query(alone, "select distinct source from {recommendations} where position = 1")


def test_a_baseline_that_is_not_learned_recommends_nothing(make_config: MakeConfig) -> None:
    wanted = ("train.baselines=false", "recommend.learner=item_offset")
    with pytest.raises(ConfigError, match="train.baselines is false"):
        make_config(*wanted)


def test_nobody_to_learn_is_said(
    spark: SparkSession, make_config: MakeConfig, finished: Run, tmp_path: Path
) -> None:
    root = Path(finished.root.removeprefix("file:"))
    copy = tmp_path / "runs" / root.name
    shutil.copytree(root, copy)
    (copy / "manifest" / "train.json").unlink()
    config = make_config(f"store={tmp_path}", "train.targets_min=1000")
    with pytest.raises(InputDataError, match="targets_min"):
        run_until("train", spark, config)


def test_learners_of_ranks_need_levels(spark: SparkSession, make_config: MakeConfig, tmp_path: Path
) -> None:  # fmt: skip
    rng = np.random.default_rng(0)
    lines = [f"{u},{i},{rng.normal():.6f}" for u in range(20) for i in range(10)]
    path = tmp_path / "continuous.csv"
    path.write_text("\n".join(["user,item,rating", *lines]) + "\n")
    config = make_config(
        f"input.path={path}", "input.format=csv", "train.learners=[{learner: prank}]"
    )
    with pytest.raises(InputDataError, match=r"prank learns ranks.*input\.cuts"):
        run_until("train", spark, config)
