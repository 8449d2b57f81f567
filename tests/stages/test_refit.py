"""refit: what is learned from all ratings is what a run that holds nothing out learns."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

from spark_rank.config import Config, load_config
from spark_rank.errors import ConfigError, TooManyFailuresError
from spark_rank.records.results import RecommendFacts
from spark_rank.report.recommendations import recommendations_section
from spark_rank.runs.users import Question, answer
from spark_rank.session.session import runtime_setting
from spark_rank.stages import STAGES, pipeline
from spark_rank.stages.final_run import FinalRun
from spark_rank.stages.runner import run_stages
from spark_rank.store.run import Run
from spark_rank.store.waves import _Saver
from tests.stages.test_incremental import local, ratings, rows, save

SETTINGS = """
input: {path: RATINGS, format: csv}
prepare: {buckets: 6}
features: {rank: 3, rounds: 3}
train:
  learners:
    - {name: first, params: {C: 0.1}}
    - {name: own, params: {kernel: rbf, C: 10}}
recommend: {learner: own, top: 3, bottom: 1}
"""
MEASURED = ("ingest", "prepare", "features", "train", "evaluate")


class Store:
    """A store on small ratings, some users with too few to learn from."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        given = ratings(40, 20) | {("few", "i1"): 3, ("equal", "i1"): 4, ("equal", "i2"): 4,
                                   ("equal", "i3"): 4, ("equal", "i4"): 4}  # fmt: skip
        self.ratings = save(folder / "ratings.csv", given)

    def config(self, run_id: str, *sets: str) -> Config:
        path = self.folder / f"{run_id}.yaml"
        path.write_text(SETTINGS.replace("RATINGS", str(self.ratings)))
        return load_config(path, [f"store={self.folder / 'store'}", f"run_id={run_id}", *sets])

    def run(self, config: Config, stages: Sequence[str], like: Run | None = None) -> Run:
        """Run stages; with `like`, what else that run has done is copied."""
        run = Run(self.spark, config.store, config.run_id)
        if like is not None:
            shutil.copytree(local(like), local(run))
            for stage in stages:
                (local(run) / "manifest" / f"{stage}.json").unlink(missing_ok=True)
        run_stages([STAGES[name] for name in stages], config, self.spark, run)
        return run


def record(run: Run, stage: str = "refit") -> dict[str, Any]:
    return run.record(stage) or {}


@pytest.fixture(scope="module")
def store(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(spark, tmp_path_factory.mktemp("refit"))


@pytest.fixture(scope="module")
def measured(store: Store) -> Run:
    return store.run(store.config("measured"), MEASURED)


@pytest.fixture(scope="module")
def refitted(store: Store, measured: Run) -> Run:
    return store.run(store.config("refitted"), ("refit", "recommend"), measured)


@pytest.fixture(scope="module")
def whole(store: Store) -> Run:
    """Return a run of the same settings that holds nothing out."""
    config = store.config("whole", "prepare.train_share=1.0")
    return store.run(config, (*MEASURED[:-1], "recommend"))


def test_it_learns_what_a_run_learns_that_holds_nothing_out(refitted: Run, whole: Run) -> None:
    assert rows(refitted, "final_item_features") == rows(whole, "item_features")
    own = "learner in ('own', 'item_offset')"
    assert rows(refitted, "final_models") == rows(whole, "models", own)
    assert len(rows(refitted, "final_models")) == 2 * 42
    assert record(refitted)["tables"] == {"final_item_features": 20, "final_models": 84}
    statuses = duckdb.sql(
        f"select distinct status, reason from '{local(refitted)}/final_models/*.parquet' "
        "where learner = 'own'"
    ).fetchall()
    assert {*statuses} >= {("learned", None), ("fallback", "too_few_ratings")}
    assert rows(refitted, "final_models", "n_test > 0") == []


def test_lists_are_those_of_a_run_that_holds_nothing_out(refitted: Run, whole: Run) -> None:
    assert rows(refitted, "recommendations") == rows(whole, "recommendations")
    assert record(refitted, "recommend")["facts"]["all_ratings"]
    assert record(refitted, "recommend")["message"].endswith("learned from all ratings")
    assert not record(whole, "recommend")["facts"]["all_ratings"]


@pytest.mark.parametrize("kind", [pytest.param("panel", marks=pytest.mark.slow), "reference"])
def test_reviewers_show_all_their_ratings(kind: str, store: Store, measured: Run) -> None:
    sets = (f"features.kind={kind}", "features.panel_size=5", "features.reference_size=5",
            "train.learners=[{name: own, params: {C: 0.1}}]")  # fmt: skip
    run = store.run(store.config(kind, *sets), ("features", "train", "refit"), measured)
    config = store.config(f"whole-{kind}", *sets, "prepare.train_share=1.0")
    whole = store.run(config, ("prepare", "features", "train"), measured)
    made = {"panel": ("panel",), "reference": ("panel", "reviewer_ratings")}[kind]
    for table in (*made, "item_features"):
        assert rows(run, f"final_{table}") == rows(whole, table)
    own = "learner in ('own', 'item_offset')"
    assert rows(run, "final_models") == rows(whole, "models", own)


@pytest.mark.slow
def test_what_was_chosen_on_a_sample_is_learned_with_again(store: Store) -> None:
    config = store.config(
        "tuned", "train.learners=[{name: own, grid: {C: [100, 0.01]}}]", "tune.users=20"
    )
    tuned = store.run(config, ("ingest", "prepare", "features", "tune", "train", "refit"))
    chosen = {
        table: duckdb.sql(
            f"select distinct hyperparameters from '{local(tuned)}/{table}/*.parquet' "
            "where learner = 'own'"
        ).fetchall()
        for table in ("models", "final_models")
    }
    assert chosen["final_models"] == chosen["models"]
    assert len(chosen["models"]) == 1


def test_lists_change_and_what_was_measured_stays(
    store: Store, measured: Run, refitted: Run
) -> None:
    config = store.config("without", "refit.in_pipeline=false")
    without = store.run(config, ("recommend",), measured)
    assert rows(without, "recommendations") != rows(refitted, "recommendations")
    again = store.run(store.config("again"), ("evaluate", "rank"), refitted)
    store.run(config, ("rank",))
    for table in ("models", "item_features", "metrics", "summary", "bounds"):
        assert rows(again, table) == rows(measured, table)
    assert rows(again, "rankings") == rows(without, "rankings")


def test_partitions_and_waves_decide_nothing(
    spark: SparkSession, store: Store, measured: Run, refitted: Run
) -> None:
    many = store.config("waves", "users_per_wave=15")
    with (
        runtime_setting(spark, "spark.sql.shuffle.partitions", "1"),
        runtime_setting(spark, "spark.sql.execution.arrow.maxRecordsPerBatch", "1000"),
    ):
        run = store.run(many, ("refit",), measured)
    assert len(record(run)["facts"]["waves"]) == 3
    for table in ("final_item_features", "final_models"):
        assert rows(run, table) == rows(refitted, table)
    # the other way to read blocks, row by row
    picked = store.run(store.config("picked", "train.targets_min=2"), ("train", "refit"), measured)
    assert rows(picked, "final_models") == rows(refitted, "final_models", "user_id <> 'few'")


@pytest.mark.parametrize("same_features", [True, False])
def test_after_a_kill_it_goes_on(
    same_features: bool, store: Store, measured: Run, refitted: Run,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    config = store.config(f"killed-{same_features}", "users_per_wave=15")
    save_wave = _Saver._save

    def killed(self: _Saver, wave: Any, *more: Any) -> Any:
        if wave.number == 2:
            raise KeyboardInterrupt
        return save_wave(self, wave, *more)

    with monkeypatch.context() as patch:
        patch.setattr(_Saver, "_save", killed)
        with pytest.raises(KeyboardInterrupt):
            store.run(config, ("refit",), measured)
    run = Run(store.spark, config.store, config.run_id)
    assert run.record("refit") is None
    assert not (local(run) / "final_models").exists()
    if not same_features:
        (note,) = (local(run) / "_drafts" / "refit").glob("waves-*/features.json")
        note.write_text(note.read_text().replace("matrix-", "matrix+"))
        note.with_name(f".{note.name}.crc").unlink(missing_ok=True)
    capsys.readouterr()
    run_stages([STAGES["refit"]], config, store.spark, run)
    said = capsys.readouterr().err
    assert bool(re.search(r"\[refit\] [12] of 3 waves are done already", said)) == same_features
    assert rows(run, "final_models") == rows(refitted, "final_models")


def test_nothing_is_learned_again_where_nothing_is_held_out(store: Store, whole: Run) -> None:
    config = store.config("whole", "prepare.train_share=1.0")
    run_stages([STAGES["refit"], STAGES["recommend"]], config, store.spark, whole)
    assert record(whole)["message"] == (
        "skipped: nothing is held out, so the models are from all ratings already"
    )
    assert record(whole)["tables"] == {}
    assert not (local(whole) / "final_models").exists()


def test_lists_without_such_models_say_so_and_follow_when_these_are_made(
    store: Store, measured: Run, refitted: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    config = store.config("late")
    run = store.run(config, ("recommend",), measured)
    assert "[recommend: warning] models from all ratings do not exist" in capsys.readouterr().err
    assert rows(run, "recommendations") != rows(refitted, "recommendations")
    run_stages([STAGES["refit"], STAGES["recommend"]], config, store.spark, run)
    assert "warning" not in capsys.readouterr().err
    assert rows(run, "recommendations") == rows(refitted, "recommendations")
    run_stages([STAGES["recommend"]], config, store.spark, run)
    assert "[recommend] already done" in capsys.readouterr().err
    other = store.config("late", "recommend.top=2")
    with pytest.raises(ConfigError, match=r"recommend.*top was 3, is 2"):
        run_stages([STAGES["recommend"]], other, store.spark, run)


def test_explain_shows_the_models_that_make_the_lists(store: Store, refitted: Run) -> None:
    config = store.config("refitted")
    found = answer(config, refitted, Question("u3"))
    assert (found["learner"], found["n_test"]) == ("own", 0)
    assert {row["part"] for row in found["own_ratings"]} == {"training"}
    listed = rows(refitted, "recommendations", "user_id = 'u3' and list = 'top'")
    assert {row["item_id"] for row in found["top"]} == {row[4] for row in listed}
    # of another learner there is what was measured
    other = answer(config, refitted, Question("u3", learner="first"))
    assert other["n_test"] > 0


def test_it_fails_where_too_many_users_fail(
    store: Store, measured: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spark_rank.stages import train

    monkeypatch.setattr(
        train, "status_counts", lambda models: {"own": {"failed: numeric_failure": 42}}
    )
    monkeypatch.setattr(train, "tell_failures", lambda *told: None)
    with pytest.raises(TooManyFailuresError, match="42 of 42 users failed"):
        store.run(store.config("failing"), ("refit",), measured)


@pytest.mark.slow
def test_models_of_unchanged_users_are_kept(store: Store, refitted: Run) -> None:
    before = store.ratings.read_text()
    try:
        store.ratings.write_text(before + "u3,novelty,1\n")
        sets = ("previous=refitted", "features.kept_from=refitted")
        next_day = store.run(store.config("next", *sets), (*MEASURED[:-1], "refit", "recommend"))
        alone = ("input.dictionaries_from=refitted", "features.kept_from=refitted")
        full = store.run(store.config("full", *alone), (*MEASURED[:-1], "refit", "recommend"))
    finally:
        store.ratings.write_text(before)
    facts = record(next_day)["facts"]["previous"]
    assert facts["all_learned_because"] is None
    assert facts["changes"]["users changed"] == 1
    assert "the models of 41 users kept" in record(next_day)["message"]
    assert "changes" not in record(next_day)["tables"]
    for table in ("final_item_features", "final_models", "recommendations"):
        assert rows(next_day, table) == rows(full, table)
    # the features of the lists are kept, not those of the training parts
    kept = {row[0]: row[2:] for row in rows(next_day, "final_item_features")}
    del kept["novelty"]
    assert kept == {row[0]: row[2:] for row in rows(refitted, "final_item_features")}


@pytest.mark.slow
def test_a_previous_run_without_such_models_is_told(
    store: Store, measured: Run, refitted: Run
) -> None:
    sets = ("previous=measured", "features.kept_from=measured")
    run = store.run(store.config("first-time", *sets), (*MEASURED[:-1], "refit"))
    facts = record(run)["facts"]["previous"]
    assert facts["all_learned_because"] == "the previous run has no models from all ratings"
    assert record(run, "train")["facts"]["previous"]["all_learned_because"] is None


def test_the_pipeline_has_it_where_lists_are_made(store: Store) -> None:
    def names(*sets: str) -> list[str]:
        return [stage.name for stage in pipeline(store.config("names", *sets))]

    found = names()
    assert found.index("evaluate") < found.index("refit") == found.index("recommend") - 1
    assert "refit" not in names("refit.in_pipeline=false")
    assert "refit" not in names("recommend.in_pipeline=false")
    letor = ("input.format=letor", "features.kind=given")
    assert "refit" not in names(*letor)


def test_an_ensemble_is_not_learned_again(store: Store, measured: Run) -> None:
    sets = ("ensemble.learners=[{name: many, n_members: 3}]", "recommend.learner=many")
    run = store.run(store.config("ensembles", *sets), ("ensemble", "refit", "recommend"), measured)
    assert record(run)["message"].startswith("skipped: the ensemble 'many' makes the lists")
    assert not record(run, "recommend")["facts"]["all_ratings"]


def test_the_report_says_what_lists_are_from(refitted: Run) -> None:
    facts = refitted.facts(RecommendFacts)
    words = str(recommendations_section([], facts).parts[0])
    assert "learned from all ratings" in words
    assert "the training part" in str(
        recommendations_section([], replace(facts, all_ratings=False)).parts[0]
    )


def test_what_is_read_for_it_has_every_rating_in_the_training_part(refitted: Run) -> None:
    from spark_rank.tables.contracts import BLOCKS, ITEM_COUNTS

    final = FinalRun(refitted)
    assert final.read(BLOCKS).where("n_train <> size(items)").count() == 0
    assert final.read(ITEM_COUNTS).where("n_train <> n").count() == 0
    assert refitted.read(BLOCKS).where("n_train <> size(items)").count() > 0
    assert (
        json.loads(json.dumps(final.record("features")))["facts"]["files"]
        != (record(refitted, "features")["facts"]["files"])
    )
