"""experiment as a stage: partitions decide nothing, missing data is said, the page shows it all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

from spark_rank.config import Config, load_config
from spark_rank.errors import ConfigError, ExperimentsFailedError, InputDataError
from spark_rank.experiments import EXPERIMENTS
from spark_rank.experiments.data_sets import MOVIELENS_1M
from spark_rank.experiments.rating_set import RatingSet
from spark_rank.stages import experiment, experiment_report, reproduce
from spark_rank.stages.experiment_data import find_data, read_rating_set
from spark_rank.stages.reproduce import check_configs, reproduce_with
from spark_rank.stages.runner import run_stages
from spark_rank.stages.stage import Stage
from spark_rank.store.run import Run
from tests.experiments.studies import generated_ratings, run_all, study_of

TABLES = ("experiment_results", "experiment_summary", "experiment_claims")
Make = Callable[..., Config]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Return the configuration of an experiment, with the data sets below a temporary folder."""

    def configured(name: str, run_id: str, **settings: object) -> Config:
        path = tmp_path / "one.yaml"
        path.write_text(f"experiment: {{name: {name}, settings: {settings}}}")
        sets = [f"store={tmp_path / 'store'}", f"experiment.data={tmp_path}", f"run_id={run_id}"]
        return load_config(path, sets)

    return configured


@pytest.fixture
def movielens(tmp_path: Path) -> RatingSet:
    """Write generated ratings as MovieLens-1M's file, and return them."""
    # draws know data sets by their names: the one that the reader gives
    data = replace(generated_ratings(20, 16), name=MOVIELENS_1M.name)
    (tmp_path / "ml-1m").mkdir()
    lines = [
        f"{data.user_ids[user]}::{data.item_ids[item]}::{rating:g}::978300760"
        for user in range(data.n_users)
        for item, rating in zip(*data.of_user(user), strict=True)
    ]
    (tmp_path / "ml-1m" / "ratings.dat").write_text("\n".join(lines[::-1]) + "\n")
    return data


def execute(config: Config, spark: SparkSession) -> Run:
    run = Run(spark, config.store, config.run_id)
    run_stages([experiment.STAGE, experiment_report.STAGE], config, spark, run)
    return run


def rows(run: Run, table: str) -> list[tuple]:
    files = f"{run.path(table).removeprefix('file:')}/*.parquet"
    return duckdb.sql(f"select * exclude (run_id) from read_parquet('{files}')").fetchall()


def page(run: Run) -> str:
    return Path(run.path("report/report.html").removeprefix("file:")).read_text()


def test_tasks_decide_nothing_and_data_is_read_as_it_is(
    spark: SparkSession, make: Make, movielens: RatingSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"repeats": 5, "over": 8, "rounds": 8}
    many = execute(make("prank_ratings_100", "many", **settings), spark)
    monkeypatch.setattr(experiment, "_TASKS_PER_CORE", 0)
    single = execute(make("prank_ratings_100", "single", **settings), spark)
    for table in TABLES:
        found = rows(many, table)
        assert found == rows(single, table)
        assert found
    # what the workers found is what is found without Spark and files
    study = study_of("prank_ratings_100", settings, {"ratings": movielens})
    expected = [(unit, r.method, r.x, r.value, r.target)
                for unit, results in enumerate(run_all(study)) for r in results]  # fmt: skip
    stored = [(row[1], row[5], row[7], row[8], row[3]) for row in rows(many, "experiment_results")]
    assert stored == expected
    assert "PRank ends below MCP" in page(many)
    facts = (many.record("experiment") or {})["facts"]
    assert [profile["ratings"] for profile in facts["profiles"]] == [len(movielens.ratings)]
    assert facts["seconds_by_step"]["units of work"] > 0.0
    with pytest.raises(ConfigError, match=r"settings.repeats was 5, is 6"):
        execute(make("prank_ratings_100", "many", **{**settings, "repeats": 6}), spark)


def test_thresholds_that_nobody_passes_are_said(
    spark: SparkSession, make: Make, movielens: RatingSet
) -> None:
    words = "prank_batch: nobody in MovieLens-1M passes the thresholds: lower them .*overs="
    with pytest.raises(InputDataError, match=words):
        execute(make("prank_batch", "none", overs=[900]), spark)


def test_a_pilot_runs_first_and_its_choice_is_used(
    spark: SparkSession, make: Make, movielens: RatingSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {
        "repeats": 2, "test_reviewers": 2, "test_min": 8, "test_max": 16, "references": 4,
        "group_limits": [6, 16], "held_out": 3, "Cs": [1, 30], "epsilons": [0.3], "rounds": [2],
        "movielens_gammas": [0.05],
    }  # fmt: skip
    many = execute(make("mprank_table1", "many", **settings), spark)
    monkeypatch.setattr(experiment, "_TASKS_PER_CORE", 0)
    single = execute(make("mprank_table1", "single", **settings), spark)
    for table in TABLES:
        assert rows(many, table) == rows(single, table) != []
    facts = (many.record("experiment") or {})["facts"]
    assert facts["missing"] == ["Jester: jester/jester-data-1.csv (Jester)"]
    named = replace(movielens, name="MovieLens-1M")  # its draws are those of the data set's name
    study = study_of("mprank_table1", settings, {"MovieLens": named})
    pilot = EXPERIMENTS["mprank_table1"].pilot
    assert pilot is not None
    trials = [r for unit in pilot.units(study) for r in pilot.run_unit(study, unit)]
    chosen = pilot.choose(study, trials)
    assert facts["chosen"] == chosen
    expected = [r.value for results in run_all(replace(study, chosen=chosen)) for r in results]
    assert [row[8] for row in rows(many, "experiment_results")] == expected
    assert "Settings chosen on other users" in page(many)


def test_reproduce_says_what_is_missing_and_runs_it_when_it_is_there(
    spark: SparkSession, make: Make, tmp_path: Path
) -> None:
    small = {"trials": 2, "members": 3, "train_share": 0.5}
    configs = [
        make("prank_ellipses", "ellipses", repeats=2, grid=10, passes=3),
        make("oap_judgments", "judgments", **small),
    ]
    path = Path(reproduce_with(spark, configs).removeprefix("file:"))
    assert path == tmp_path / "store" / "reproduce" / "report.html"
    text = path.read_text()
    assert "1 of 2 experiments" in text
    assert "skipped: missing cystic fibrosis: cystic-fibrosis/cfquery" in text
    assert text.count("<svg") == 1
    run = Run(spark, configs[1].store, "judgments")
    assert rows(run, "experiment_results") == []
    (tmp_path / "cystic-fibrosis").mkdir()
    documents = "\n".join(f"RD  {d} {d % 3}{(d + d % 2) % 3}{d % 3}1" for d in range(12))
    (tmp_path / "cystic-fibrosis" / "cfquery").write_text(f"QN 00001\n{documents}\n")
    before = Run(spark, configs[0].store, "ellipses").record("experiment")
    reproduce_with(spark, configs)
    assert "2 of 2 experiments" in path.read_text()
    assert {row[1] for row in rows(run, "experiment_results")} == {0, 1}
    assert Run(spark, configs[0].store, "ellipses").record("experiment") == before


def test_an_experiment_that_fails_stops_no_other(
    spark: SparkSession, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    errors = {"bad": InputDataError("ratings.dat: <bad>: mend it"), "broken": KeyError("oops")}

    def run_or_fail(stages: Sequence[Stage], config: Config, *others: Any) -> None:
        if config.run_id in errors:
            raise errors[config.run_id]
        run_stages(stages, config, *others)

    monkeypatch.setattr(reproduce, "run_stages", run_or_fail)
    configs = [
        make("mprank_table1", "bad"),
        make("prank_synthetic", "broken"),
        make("prank_ellipses", "good", repeats=2, grid=10, passes=3),
    ]
    with pytest.raises(ExperimentsFailedError, match="2 of 3 experiments failed") as raised:
        reproduce_with(spark, configs)
    assert raised.value.exit_code == InputDataError.exit_code  # the first one's
    path = tmp_path / "store" / "reproduce" / "report.html"
    assert str(path) in str(raised.value)
    text = path.read_text()
    assert "1 of 3 experiments" in text
    for words in (
        "failed: ratings.dat: &lt;bad&gt;: mend it",
        "failed: KeyError: &#x27;oops&#x27;",
    ):
        assert text.count(words) == 2  # in the summary and in its own section
    assert text.count("<svg") == 1  # of the one that ran after them
    told = capsys.readouterr().err
    assert "bad: ratings.dat: <bad>: mend it" in told
    assert "broken: KeyError: 'oops'" in told
    assert told.count("Traceback") == 1  # of the error that nobody foresaw


def test_rows_that_say_a_book_was_read_are_dropped_and_counted(
    spark: SparkSession, make: Make, tmp_path: Path
) -> None:
    lines = ['"User-ID";"ISBN";"Book-Rating"', '"1";"0155061224";"0"', '"2";"0155061224";"5"',
             '"2";"034545104X";"0"', '"10";"034545104X";"10"']  # fmt: skip
    (tmp_path / "book-crossing").mkdir()
    books = tmp_path / "book-crossing" / "BX-Book-Ratings.csv"
    books.write_text("\n".join(lines) + "\n", encoding="latin-1")
    config = make("mprank_table2", "books")
    run = Run(spark, config.store, "books")
    run = run.with_draft(run.draft("experiment", "some"))
    needs = EXPERIMENTS["mprank_table2"].needs(experiment.chosen_experiment(config)[1])
    (source,) = find_data(tuple(needs), config, run).values()
    found = read_rating_set(spark, source, run)
    assert found.implicit == 2
    ratings = found.ratings
    assert ratings.user_ids.tolist() == ["2", "10"]
    assert ratings.ratings.tolist() == [5.0, 10.0]
    books.write_text("\n".join([*lines, '"3";"034545104X";"eleven"']), encoding="latin-1")
    with pytest.raises(InputDataError, match="unreadable_rating"):
        read_rating_set(spark, source, run)


def test_configurations_that_cannot_be_run_together_are_refused(make: Make) -> None:
    one, two = make("prank_synthetic", "one"), make("prank_ellipses", "two")
    check_configs([one, two])
    with pytest.raises(ConfigError, match="several configurations have run_id 'one'"):
        check_configs([one, make("prank_ellipses", "one")])
    with pytest.raises(ConfigError, match="differ in more than run_id"):
        check_configs([one, replace(two, seed=5)])
    with pytest.raises(ConfigError, match="at least one"):
        check_configs([])
    with pytest.raises(ConfigError, match=r"names no experiment.*prank_synthetic"):
        check_configs([replace(one, experiment=replace(one.experiment, name=None))])
