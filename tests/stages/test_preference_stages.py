"""rank, aggregate and theorems as stages of a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pytest
from pyspark.sql import SparkSession

from spark_rank.config import Config
from spark_rank.errors import ConfigError
from spark_rank.metrics import pairwise_misranking
from spark_rank.preference import aggregate, kemeny_score
from spark_rank.stages import STAGES
from spark_rank.stages.runner import run_stage
from spark_rank.store.run import Run
from tests.generated import generated_run
from tests.predicted import predicted

MakeConfig = Callable[..., Config]
LEARNERS = "train.learners=[{name: one, params: {C: 0.1}}, {name: two, params: {C: 1}}]"


def files(run: Run, table: str) -> str:
    return f"'{run.path(table).removeprefix('file:')}/**/*.parquet'"


def test_rankings_follow_the_scores_of_the_first_learner(finished: Run) -> None:
    blocks = duckdb.sql(
        f"""select user_id, list_transform(b.items[n_train + 1:], lambda i: d.ids[i + 1]),
                   b.ratings[n_train + 1:]
            from {files(finished, "blocks")} b,
                 (select list(item_id order by item) ids from {files(finished, "items")}) d"""
    ).fetchall()
    scores = {
        user: own.scores for (user, learner), own in predicted(finished).items()
        if learner == "linear"
    }  # fmt: skip
    rankings = {
        row[0]: row[1:]
        for row in duckdb.sql(
            "select user_id, items, calls, n_items, ranking_loss, preference_loss "
            f"from {files(finished, 'rankings')}"
        ).fetchall()
    }
    assert rankings.keys() == scores.keys()
    checked = 0
    for user, items, ratings in blocks:
        order, calls, n_items, ranking_loss, preference_loss = rankings[user]
        by_item = dict(zip(items, scores[user], strict=True))
        assert sorted(order) == sorted(items)
        assert [by_item[i] for i in order] == sorted(by_item.values(), reverse=True)
        assert n_items == len(items)
        assert calls >= len(items) - 1
        distinct = len(set(scores[user])) == len(items) == len(set(ratings)) and len(items) > 1
        if distinct:  # then every pair counts in both
            expected = pairwise_misranking(scores[user], ratings)
            assert ranking_loss == pytest.approx(expected)
            assert preference_loss == pytest.approx(expected)
            checked += 1
    assert checked >= 1


def test_votes_of_all_learners_and_the_first_few(
    spark: SparkSession, make_config: MakeConfig, run_pipeline: Callable[..., Run]
) -> None:
    config = make_config(LEARNERS, "rank={preference: votes, top: 2}")
    run = run_pipeline(config, without=("evaluate", "aggregate", "report"))
    record = run.record("rank") or {}
    assert record["facts"]["learners"] == ["one", "two"]
    rows = duckdb.sql(f"select items, n_items, calls from {files(run, 'rankings')}").fetchall()
    assert sum(calls for _, _, calls in rows) == record["facts"]["calls"] > 0
    assert all(len(items) == min(2, n) for items, n, _ in rows)


def test_an_unknown_learner_is_named(make_config: MakeConfig) -> None:
    with pytest.raises(ConfigError, match=r"rank\.learners\[0\].*'three'.*known: one, two"):
        make_config(LEARNERS, "rank.learners=[three]")
    with pytest.raises(ConfigError, match=r"rank\.top.*degree"):
        make_config(LEARNERS, "rank={method: degree, top: 3}")
    with pytest.raises(ConfigError, match=r"rank\.learners: preference 'scores' asks one"):
        make_config(LEARNERS, "rank.learners=[one, two]")
    with pytest.raises(ConfigError, match=r"evaluate\.activity"):
        make_config("evaluate.activity=[5, 3]")


def test_the_aggregate_is_that_of_all_voters(finished: Run) -> None:
    order = duckdb.sql(
        f"select item_id, ratings, mean_rating, mean_position from {files(finished, 'aggregate')} "
        "order by position"
    ).fetchall()
    items = [row[0] for row in order]
    rows = duckdb.sql(
        f"""select user, item_id, rating from {files(finished, "ratings")}
            join {files(finished, "items")} using (item)"""
    ).fetchall()
    counts = duckdb.sql(
        f"""select item_id, count(*), avg(rating) from {files(finished, "ratings")}
            join {files(finished, "items")} using (item) group by 1"""
    ).fetchall()
    most = {i: (n, mean) for i, n, mean in sorted(counts, key=lambda r: (-r[1], r[0]))[:100]}
    assert set(items) == most.keys()
    for item, ratings, mean_rating, _ in order:
        assert (ratings, mean_rating) == pytest.approx(most[item])
    by_mean = [row[0] for row in sorted(order, key=lambda row: row[3])]
    means = [most[item][1] for item in by_mean]
    assert means == sorted(means, reverse=True)
    voters: dict[int, dict[str, float]] = {}
    for user, item, rating in rows:
        if item in most:
            voters.setdefault(user, {})[item] = rating
    ranked = sorted(most, key=lambda i: (-most[i][0], i))
    expected = aggregate(list(voters.values()), "local_search", items=ranked)
    facts = (finished.record("aggregate") or {})["facts"]
    assert items == expected.order
    assert facts["score"] == expected.score
    assert facts["lower_bound"] == expected.lower_bound <= facts["score"]
    majorities = duckdb.sql(f"select * from {files(finished, 'majorities')}").fetchall()
    place = {item: row for row, item in enumerate(ranked)}
    matrix = np.zeros((len(place), len(place)))
    for first, second, users, *_ in majorities:
        matrix[place[first], place[second]] = users
    assert kemeny_score([place[i] for i in items], matrix) == facts["score"]
    assert kemeny_score([place[i] for i in by_mean], matrix) == facts["mean_rating_score"]


@pytest.mark.slow
def test_theorems_are_a_table_and_then_a_section_of_the_report(
    spark: SparkSession, make_config: MakeConfig, run_pipeline: Callable[..., Run]
) -> None:
    config = make_config("theorems.trials=20")
    run = run_pipeline(config, without=("rank", "aggregate"))
    page = Path(run.path("report/report.html").removeprefix("file:"))
    assert "Theorems" not in page.read_text()
    record = run_stage(STAGES["theorems"], config, spark, run)
    rows = duckdb.sql(f"select distinct theorem from {files(run, 'theorems')}").fetchall()
    assert record["tables"]["theorems"] >= len(rows) >= 6
    run_stage(STAGES["report"], config, spark, run)
    text = page.read_text()
    assert "Theorems of preference-based ranking" in text
    assert "QuickSort" in text or "quicksort" in text
    before = page.stat().st_mtime_ns
    run_stage(STAGES["report"], config, spark, run)
    assert page.stat().st_mtime_ns == before


def test_filtered_users_have_no_say_in_the_aggregate(
    tmp_path: Path, make_config: MakeConfig, run_pipeline: Callable[..., Run]
) -> None:
    lines = [f"many{u},p{i},{(u * i) % 5 + 1}" for u in range(30) for i in range(10)]
    lines += [f"few{u},q{i},{(u + i) % 5 + 1}" for u in range(8) for i in range(6)]
    path = tmp_path / "in.csv"
    path.write_text("\n".join(["user,item,rating", *lines]) + "\n")
    run = run_pipeline(
        make_config(
            f"input.path={path}", "input.format=csv", "aggregate.items=8",
            "prepare.filters=[{user_min: 2, user_max: 8}]",
        ),
        without=("features", "train", "evaluate", "rank", "report"),
    )  # fmt: skip
    items = duckdb.sql(f"select item_id, ratings from {files(run, 'aggregate')}").fetchall()
    assert sorted(items) == [(f"q{i}", 8) for i in range(6)]


@pytest.mark.slow
def test_a_single_item_is_in_order_as_it_is(
    tmp_path: Path, make_config: MakeConfig, run_pipeline: Callable[..., Run]
) -> None:
    path = tmp_path / "in.csv"
    path.write_text("user,item,rating\n" + "".join(f"u{u},x,{u % 5 + 1}\n" for u in range(6)))
    run = run_pipeline(make_config(f"input.path={path}", "input.format=csv"))
    rows = duckdb.sql(f"select item_id, position from {files(run, 'aggregate')}").fetchall()
    assert rows == [("x", 1)]
    assert Path(run.path("report/report.html").removeprefix("file:")).exists()


def test_later_stages_go_by_what_was_trained(
    spark: SparkSession, make_config: MakeConfig, run_pipeline: Callable[..., Run]
) -> None:
    config = make_config(LEARNERS)
    run = generated_run(spark, config)
    for name in ("features", "train"):
        run_stage(STAGES[name], config, spark, run)
    other = make_config(
        f"store={config.store}", "features.kind=factors", "train.min_ratings=9",
        "train.learners=[{name: other}]",
    )  # fmt: skip
    run_stage(STAGES["evaluate"], other, spark, run)
    groups = duckdb.sql(f"select distinct user_group from {files(run, 'summary')}").fetchall()
    assert ("3-19",) in groups
    bounded = duckdb.sql(
        f"select count(*) from {files(run, 'metrics')} where stability_bound is not null"
    ).fetchall()
    assert bounded[0][0] > 0
    run_stage(STAGES["rank"], other, spark, run)
    assert (run.record("rank") or {})["facts"]["learners"] == ["one"]
