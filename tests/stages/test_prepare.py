"""prepare as a stage: facts, filters, splits by time, given features, the same files every time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import Config, load_config
from spark_rank.data.blocks import user_blocks
from spark_rank.errors import ConfigError, InputDataError
from spark_rank.session.session import runtime_setting
from spark_rank.stages import STAGES, pipeline
from spark_rank.stages.runner import run_stages
from spark_rank.store.run import Run
from spark_rank.tables.contracts import (
    BLOCKS,
    GIVEN_FEATURES,
    ITEM_COUNTS,
    ITEMS,
    METRICS,
    MODELS,
    RATINGS,
    USERS,
)
from spark_rank.tables.user_buckets import bucket_of
from tests.generated import generated_run

MakeConfig = Callable[..., Config]
Prepared = Callable[..., Run]


@pytest.fixture
def prepared(spark: SparkSession, make_config: MakeConfig) -> Prepared:
    """Run the stages up to `last`, with settings as on the command line."""

    def make(*sets: str, last: str = "prepare") -> Run:
        config = make_config(*sets)
        run = generated_run(spark, config, last="ingest")
        stages = pipeline(config)
        names = [stage.name for stage in stages]
        run_stages(stages[: names.index(last) + 1], config, spark, run)
        return run

    return make


def record(run: Run) -> dict[str, Any]:
    found = run.record("prepare")
    assert found is not None
    return found


def ratings_file(folder: Path, lines: list[str]) -> list[str]:
    path = folder / "ratings.csv"
    path.write_text("user,item,rating,timestamp\n" + "\n".join(lines) + "\n")
    return [f"input.path={path}", "input.format=csv"]


def test_the_facts_are_those_of_the_tables(prepared: Prepared) -> None:
    run = prepared()
    rows, facts = run.read(BLOCKS).collect(), record(run)["facts"]
    ratings = run.read(RATINGS).collect()
    assert facts["train_ratings"] == sum(row["n_train"] for row in rows)
    assert facts["train_ratings"] + facts["test_ratings"] == len(ratings)
    assert facts["most_ratings_of_a_user"] == max(len(row["items"]) for row in rows)
    nothing = sum(row["n_train"] == len(row["items"]) for row in rows)
    assert facts["users_with_nothing_held_out"] == nothing
    profile = facts["profile"]
    levels = {entry["rating"]: entry["ratings"] for entry in profile["histogram"]}
    assert levels == Counter(row["rating"] for row in ratings)
    assert sum(count for _, count in profile["user_activity"]) == len(rows) == profile["users"]
    items = {row["item"] for row in ratings}
    assert sum(count for _, count in profile["item_popularity"]) == len(items) == profile["items"]
    assert profile["density"] == len(ratings) / len(rows) / len(items)
    assert (facts["filters"], facts["filters_settled"]) == ([], True)
    assert not run.files.exists(run.path("scratch/prepare"))


def test_the_ratings_of_items_are_counted(prepared: Prepared) -> None:
    run = prepared("prepare.filters=[{item_min: 20}]")
    every, train = Counter[int](), Counter[int]()
    for row in run.read(BLOCKS).collect():
        every.update(row["items"])
        train.update(row["items"][: row["n_train"]])
    ids = {row["item"]: row["item_id"] for row in run.read(ITEMS).collect()}
    assert 0 < len(every) < len(ids), "some items were dropped"
    found = [tuple(row)[:4] for row in run.read(ITEM_COUNTS).collect()]
    assert found == [(ids[item], item, train[item], every[item]) for item in sorted(every)]
    assert record(run)["tables"]["item_counts"] == len(every)


@pytest.mark.slow
def test_a_file_has_the_same_rows_in_the_same_order_every_time(
    spark: SparkSession, prepared: Prepared
) -> None:
    found = []
    for partitions in (1, 5):
        with ExitStack() as settings:
            for name in ("spark.sql.shuffle.partitions", "spark.sql.files.minPartitionNum"):
                settings.enter_context(runtime_setting(spark, name, str(partitions)))
            run = prepared("prepare.filters=[{user_min: 8, item_min: 5}]", "prepare.buckets=3")
        folder = Path(run.path(BLOCKS.table).removeprefix("file:"))
        files = {bucket: sorted(folder.glob(f"bucket={bucket}/*.parquet")) for bucket in range(3)}
        assert [len(names) for names in files.values()] == [1, 1, 1]
        found.append({bucket: pq.ParquetFile(names[0]).read() for bucket, names in files.items()})
    assert found[0] == found[1]
    for table in found[0].values():
        users = table.column("user").to_pylist()
        assert users == sorted(users)
        assert len(users) > 3


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return, for each time that blocks are made, whether the ratings stay where they are."""
    found: list[bool] = []

    def seen(*inputs: Any, by_bucket: bool) -> DataFrame:
        found.append(by_bucket)
        return user_blocks(*inputs, by_bucket=by_bucket)

    monkeypatch.setattr("spark_rank.stages.prepare.user_blocks", seen)
    return found


MANY = [f"u{user},i{item},{1 + (user * item) % 5}," for user in range(40) for item in range(9)]


@pytest.mark.slow
def test_ratings_are_shuffled_again_only_where_buckets_are_not_whole(
    spark: SparkSession,
    prepared: Prepared,
    tmp_path: Path,
    ways: list[bool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = ratings_file(tmp_path, MANY)
    left = prepared(*source, "prepare.buckets=3").read(BLOCKS)
    assert ways == [True]
    # ingested for other buckets
    run = prepared(*source, "prepare.buckets=5", last="ingest")
    config = make_again(run, *source, "prepare.buckets=3")
    run_stages([STAGES["prepare"]], config, spark, run)
    assert ways == [True, False]
    assert_df_equality(run.read(BLOCKS), left, ignore_row_order=True)
    # files that Spark does not read as a whole

    def torn(ratings: DataFrame, *inputs: Any, by_bucket: bool) -> DataFrame:
        ways.append(by_bucket)
        return user_blocks(ratings.repartition(4), *inputs, by_bucket=by_bucket)

    monkeypatch.setattr("spark_rank.stages.prepare.user_blocks", torn)
    run = prepared(*source, "prepare.buckets=3")
    assert ways == [True, False, True, False]
    assert_df_equality(run.read(BLOCKS), left, ignore_row_order=True)
    assert all(row["bucket"] == bucket_of(row["user_id"], 3) for row in left.collect())


def make_again(run: Run, *sets: str) -> Config:
    """Return a configuration for a run that is there already."""
    store, _, run_id = run.root.rpartition("/runs/run_id=")
    return load_config(None, [f"store={store}", f"run_id={run_id}", *sets])


def test_filters_are_told_on_the_console_and_in_the_manifest(prepared: Prepared) -> None:
    run = prepared("prepare.filters=[{user_min: 10}, {item_min: 8}]", "prepare.filter_rounds=30")
    found = record(run)
    facts, blocks = found["facts"], run.read(BLOCKS)
    assert blocks.agg(F.min(F.size("items"))).head()[0] >= 10  # type: ignore[index]
    popularity = blocks.select(F.explode("items").alias("item")).groupBy("item").count()
    assert popularity.agg(F.min("count")).head()[0] >= 8  # type: ignore[index]
    assert facts["filters_settled"]
    steps = facts["filters"]
    ratings = run.read(RATINGS).count()
    assert steps[0]["ratings"] + steps[0]["ratings_dropped"] == ratings
    assert f"filters kept {steps[-1]['ratings']:,} of {ratings:,} ratings" in found["message"]
    assert "settled" not in found["message"]
    assert facts["train_ratings"] + facts["test_ratings"] == steps[-1]["ratings"]


def test_an_empty_result_is_bad_input(prepared: Prepared) -> None:
    with pytest.raises(InputDataError, match=r"prepare.filters\[0\] \(user_min: 500\)") as caught:
        prepared("prepare.filters=[{user_min: 500}]")
    assert caught.value.exit_code == 3


def test_a_split_by_time_needs_every_time(prepared: Prepared, tmp_path: Path) -> None:
    lines = ["a,x,1,100", "a,y,2,50", "a,z,3,", "b,x,1,7"]
    source = ratings_file(tmp_path, lines)
    with pytest.raises(InputDataError, match="every rating, and 1 of 4 have none: give") as caught:
        prepared(*source, "prepare.split=temporal")
    assert caught.value.exit_code == 3
    # what a filter drops needs none; of the others the latest is held out
    run = prepared(*source, "prepare.split=leave_last", "prepare.filters=[{item_min: 2}]")
    assert {row["user_id"]: row["n_train"] for row in run.read(BLOCKS).collect()} == {
        "a": 1,
        "b": 1,
    }


def test_the_latest_ratings_are_held_out(prepared: Prepared, tmp_path: Path) -> None:
    lines = [f"a,i{n},3,{(7 * n) % 10 * 1000}" for n in range(10)] + ["b,i1,2,5"]
    source = ratings_file(tmp_path, lines)
    run = prepared(*source, "prepare.split=leave_last", "prepare.leave_last=3")
    items = {row["item"]: row["item_id"] for row in run.read(ITEMS).collect()}
    rows = {row["user_id"]: row for row in run.read(BLOCKS).collect()}
    assert rows["a"]["n_train"] == 7
    assert [items[i] for i in rows["a"]["items"]] == [f"i{(3 * t) % 10}" for t in range(10)]
    assert (rows["b"]["n_train"], len(rows["b"]["items"])) == (1, 1)


@pytest.mark.parametrize(
    ("sets", "named"),
    [
        (["prepare.split=k_fold", "prepare.fold=6"], "prepare.fold: 6"),
        (["prepare.filters=[{}]"], r"prepare.filters\[0\]: sets no bound"),
        (["prepare.filters=[{user_min: 9, user_max: 8}]"], "user_min 9"),
        (["prepare.filters=[{user_mni: 9}]"], "user_min"),
        (["prepare.split=kfold"], "k_fold"),
        (["prepare.user_share=0"], "prepare.user_share"),
    ],
)
def test_bad_settings_are_named(make_config: MakeConfig, sets: list[str], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        make_config(*sets)


def test_given_features_are_found_by_the_ids_of_the_blocks(
    prepared: Prepared, tmp_path: Path
) -> None:
    path = tmp_path / "train.txt"
    path.write_text(
        "".join(
            f"{document % 3} qid:{query} 1:{document} 2:{query} #docid = d{document}\n"
            for query in range(10, 16)
            for document in range(query - 8)
        )
    )
    source = (f"input.path={path}", "input.format=letor", "features.kind=given")
    run = prepared(*source, "prepare.filters=[{user_min: 4}]")
    blocks = run.read(BLOCKS).join(run.read(USERS).select("user", "user_id"), ["user", "user_id"])
    assert {row["user_id"]: len(row["items"]) for row in blocks.collect()} == {
        str(query): query - 8 for query in range(12, 16)
    }
    entries = blocks.select("user_id", F.posexplode("items").alias("place", "item"))
    named = entries.join(run.read(ITEMS), "item")
    found = named.join(run.read(GIVEN_FEATURES), ["user_id", "item_id"]).collect()
    assert len(found) == sum(range(4, 8))
    for row in found:
        document = float(row["item_id"].removeprefix(f"{row['user_id']}/d"))
        assert row["features"] == [document, float(row["user_id"])]


@pytest.mark.parametrize(
    ("split", "reason", "n_test"),
    [
        ("prepare.train_share=1.0", None, 0),
        pytest.param(
            "prepare.split=leave_last prepare.leave_last=100000",
            "too_few_ratings",
            None,
            marks=pytest.mark.slow,
        ),
    ],
)
def test_blocks_with_nothing_held_out_or_one_rating_to_learn_from_work(
    prepared: Prepared, split: str, reason: str | None, n_test: int | None
) -> None:
    run = prepared(*split.split(), last="evaluate")
    users = record(run)["tables"]["blocks"]
    models = run.read(MODELS).where("learner = 'mprank_linear'").collect()
    assert len(models) == users
    if reason is not None:
        assert {(row["status"], row["reason"]) for row in models} == {("fallback", reason)}
        assert {row["n_train"] for row in models} == {1}
    else:
        assert sum(row["status"] == "learned" for row in models) > users / 2
        metrics = run.read(METRICS).collect()
        assert {(row["n_test"], row["msd"]) for row in metrics} == {(n_test, None)}
