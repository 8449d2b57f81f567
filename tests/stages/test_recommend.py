"""recommend as a stage of a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import duckdb
import pytest
from pyspark.sql import SparkSession

from spark_rank.config import Config, LearnerConfig, TrainConfig
from spark_rank.errors import ConfigError
from spark_rank.records.models import JobFacts, TrainFacts, WaveFacts
from spark_rank.stages import STAGES
from spark_rank.stages.recommend import waves_of_lists
from spark_rank.stages.runner import plain, run_stage
from spark_rank.store.run import Run

MakeConfig = Callable[..., Config]


def files(run: Run, table: str) -> str:
    return f"'{run.path(table).removeprefix('file:')}/**/*.parquet'"


def test_lists_are_what_anyone_finds_in_the_tables(finished: Run) -> None:
    # the formula of docs/guide/read-tables.md; features of this run are a panel's ratings
    expected = duckdb.sql(
        f"""with scored as (
              select m.user_id, f.item_id, b.bucket,
                     m.intercept + m.offset_weight * f."offset"
                       + coalesce(list_dot_product(m.weights::double[], f.features::double[]), 0)
                     as score
              from {files(finished, "final_models")} m
                   join {files(finished, "blocks")} b using (user_id),
                   {files(finished, "final_item_features")} f
              where m.learner = 'linear' and not list_contains(b.items, f.item)),
            placed as (
              select *, row_number() over (partition by user_id order by score desc, item_id) as up
              from scored),
            others as (
              select *, row_number() over (partition by user_id order by score, item_id) as down
              from placed where up > 10)
            select user_id, 'top', up, item_id, score, bucket from placed where up <= 10
            union all
            select user_id, 'bottom', down, item_id, score, bucket from others where down <= 3"""
    ).fetchall()
    found = duckdb.sql(
        f"""select user_id, list, position, item_id, score, bucket
            from {files(finished, "recommendations")}"""
    ).fetchall()
    by_place = {row[:3]: row[3:] for row in expected}
    assert len(found) == len(by_place) > 500
    for *place, item, score, bucket in found:
        other, expected_score, expected_bucket = by_place[tuple(place)]
        assert score == pytest.approx(expected_score, rel=1e-9, abs=1e-9)
        assert item == other or score == pytest.approx(expected_score, rel=1e-12)
        assert bucket == expected_bucket


def test_rows_tell_source_title_and_what_is_known_of_the_item(finished: Run) -> None:
    checked = duckdb.sql(
        f"""with known as (
              select item_id, count(*) as n from (
                select unnest(items) as item from {files(finished, "blocks")})
              join {files(finished, "items")} using (item) group by 1)
            select count(*), count_if(r.item_ratings = coalesce(k.n, 0)),
                   count_if(r.source = case when m.status = 'fallback' then 'fallback'
                                            when k.n is null then 'new_item' else 'learned' end),
                   count_if(r.predicted_rank between 1 and 5
                            and r.predicted_rating between 1 and 5 and r.title is null)
            from {files(finished, "recommendations")} r
            join {files(finished, "final_models")} m using (user_id)
            left join known k using (item_id) where m.learner = r.learner"""
    ).fetchall()[0]
    assert len(set(checked)) == 1
    record = finished.record("recommend") or {}
    assert record["tables"]["recommendations"] == checked[0]
    lists = files(finished, "recommendations")
    counted = duckdb.sql(
        f"""select concat_ws(': ', source, reason), count(*) from {lists} group by all"""
    ).fetchall()
    assert record["facts"]["places"] == dict(counted)
    users = duckdb.sql(f"select count(distinct user_id) from {lists} where list = 'top'").fetchall()
    assert [(record["facts"]["users"],)] == users
    assert record["facts"]["learner"] == "linear"


class OfNineWaves:
    """A run of which some learners' models were made in nine waves of two buckets."""

    def __init__(self, kind: str = "factors") -> None:
        self.kind = kind

    def record(self, stage: str) -> dict[str, Any]:
        if stage == "features":
            return {"settings": {"kind": self.kind}}
        assert stage == "train"
        learners = [{"name": "straight"}, {"name": "curved", "params": {"kernel": "rbf"}},
                    {"name": "boosted", "learner": "rankboost"}]  # fmt: skip
        settings = plain(TrainConfig(learners=[LearnerConfig(**entry) for entry in learners]))
        return {"settings": settings}

    def facts(self, kind: type[TrainFacts]) -> TrainFacts:
        waves = tuple(WaveFacts((2 * wave, 2 * wave + 1), ()) for wave in range(9))
        job = JobFacts(specs=(), panel=(), min_ratings=1, margin=0.5, limits={})
        return kind(status={}, failed_users={}, waves=waves, job=job)


@pytest.mark.parametrize(
    ("label", "sizes"),
    [("straight", [8, 8, 2]), ("item_offset", [8, 8, 2]), ("curved", [2] * 9), ("oap", [2] * 9),
     ("boosted", [2] * 9)],
)  # fmt: skip
def test_waves_are_longer_where_lists_are_quick(label: str, sizes: list[int]) -> None:
    found = waves_of_lists(label, cast(Run, OfNineWaves()))
    assert [len(buckets) for buckets in found] == sizes
    assert [bucket for buckets in found for bucket in buckets] == [*range(18)]


def test_with_reviewers_of_their_own_users_are_scored_one_by_one() -> None:
    assert len(waves_of_lists("straight", cast(Run, OfNineWaves("reference")))) == 9


@pytest.mark.slow
def test_lists_of_another_learner_with_titles_and_filters(
    spark: SparkSession, tmp_path: Path, make_config: MakeConfig
) -> None:
    lines = [f"u{u},p{i},{(u * i) % 5 + 1}" for u in range(30) for i in range(u % 3, 12, 2)]
    data, titles, wanted = tmp_path / "in.csv", tmp_path / "movies.csv", tmp_path / "wanted.txt"
    # a film that a filter drops is in no list: who has rated it is not known any more
    data.write_text("\n".join(["user,item,rating", "u0,p99,5", *lines]) + "\n")
    titles.write_text("movieId,title,genres\n" + "".join(f"p{i},Film {i},x\n" for i in range(12)))
    wanted.write_text("\ufeffp1\n\n p2 \nunheard of\np99\n")
    sets = [
        f"input.path={data}", "input.format=csv", f"input.titles={titles}",
        "input.titles_format=movielens-csv", "prepare.filters=[{item_min: 2}]",
        "train.learners=[{name: one}, {name: boosted, learner: rankboost}]",
        "recommend={learner: boosted, top: 4, bottom: 0, include: ['p3', 'p5'], exclude: ['p5']}",
        f"recommend.include_from={wanted}",
    ]  # fmt: skip
    config = make_config(*sets)
    run = Run(spark, config.store, config.run_id)
    for stage in ("ingest", "prepare", "features", "train", "recommend"):
        run_stage(STAGES[stage], config, spark, run)
    rows = duckdb.sql(
        f"select distinct list, item_id, title, learner from {files(run, 'recommendations')}"
    ).fetchall()
    assert {item for _, item, _, _ in rows} == {"p1", "p2", "p3"}
    assert all(title == f"Film {item[1:]}" for _, item, title, _ in rows)
    assert {(row[0], row[3]) for row in rows} == {("top", "boosted")}
    # the files that were read count, not their names
    wanted.write_text("p4\n")
    with pytest.raises(ConfigError, match="recommend"):
        run_stage(STAGES["recommend"], config, spark, run)


def test_nothing_to_recommend_is_told(
    spark: SparkSession, finished: Run, make_config: MakeConfig, tmp_path: Path
) -> None:
    from spark_rank.stages.recommend import facts_of_items

    missing = make_config("recommend.exclude_from=/nowhere.txt")
    with pytest.raises(ConfigError, match=r"recommend\.exclude_from: /nowhere.txt: no such file"):
        facts_of_items(missing.recommend, finished)
    (tmp_path / "latin").write_bytes(b"caf\xe9\n")
    for path, named in ((tmp_path, "cannot be read"), (tmp_path / "latin", "not UTF-8")):
        unreadable = make_config(f"recommend.exclude_from={path}")
        with pytest.raises(ConfigError, match=rf"recommend\.exclude_from: .*{named}"):
            facts_of_items(unreadable.recommend, finished)
    unknown = make_config("recommend.include=['nothing']")
    with pytest.raises(ConfigError, match=r"recommend\.include: the run has none"):
        facts_of_items(unknown.recommend, finished)
    rare = facts_of_items(make_config("recommend.min_ratings=1000000").recommend, finished)
    assert set(rare.column("candidate").to_pylist()) == {False}
    with pytest.raises(ConfigError, match=r"recommend\.learner.*'three'.*known: mprank"):
        make_config("recommend.learner=three")


def test_ids_that_are_no_items_are_told(
    finished: Run, make_config: MakeConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from spark_rank.stages.recommend import facts_of_items

    def told(*sets: str) -> tuple[set[str], list[str]]:
        """Return the candidates, and what is said of the lists of ids."""
        facts = facts_of_items(make_config(*sets).recommend, finished).to_pylist()
        said = capsys.readouterr().err.splitlines()
        return {row["item_id"] for row in facts if row["candidate"]}, said

    everything, nothing = told()
    assert nothing == []
    with_header = tmp_path / "unwanted.csv"
    with_header.write_text("item,why\n1,old\n2,old\n2,old\n9,dull\n")
    left, said = told(f"recommend.exclude_from={with_header}")
    assert left == everything
    assert said == [
        "[recommend: warning] recommend.exclude: 4 of 4 ids are not items of the run: "
        "'item,why', '1,old', '2,old', …"
    ]
    some = tmp_path / "some.txt"
    some.write_text("1\nI2\nnosuch\n")
    left, said = told("recommend.exclude=['typo', '1']", f"recommend.exclude_from={some}")
    assert left == everything - {"1"} != everything
    assert said == [
        "[recommend: warning] recommend.exclude: 3 of 4 ids are not items of the run: "
        "'typo', 'I2', 'nosuch'"
    ]
    left, said = told("recommend.include=['1', 'no item']", "recommend.exclude=['2']")
    assert left == {"1"}
    assert said == [
        "[recommend: warning] recommend.include: 1 of 2 ids are not items of the run: 'no item'"
    ]
