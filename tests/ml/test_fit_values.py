"""Fit, lists and predictions are those of the command line on the same ratings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.ml.recommendation import ALS
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.ml import PerUserRanker, PerUserRankerModel
from spark_rank.store.run import Run
from spark_rank.tables.contracts import ITEM_FEATURES, METRICS, MODELS, RECOMMENDATIONS
from tests.ml.conftest import SMALL, STEPS, Given, frame_of, rows_of, store_of

OURS = "learner in ('mprank_linear', 'item_offset')"


def test_fit_learns_what_the_command_line_learns(fitted: PerUserRankerModel, whole: Run) -> None:
    models = rows_of(fitted.userModels)
    assert models == rows_of(whole.read(MODELS).where(OURS))
    assert len(models) == 2 * 32
    assert {row["status"] for row in models} == {"learned", "fallback"}
    assert rows_of(fitted.itemFeatures) == rows_of(whole.read(ITEM_FEATURES))


@pytest.mark.parametrize(
    ("params", "sets"),
    [
        (
            {"featureKind": "panel", "panelSize": 4, "learner": "prank", "learnerName": "own"},
            ("features={kind: panel, panel_size: 4}",
             "train.learners=[{name: own, learner: prank}]"),
        ),
        pytest.param(
            {"featureKind": "reference", "referenceSize": 4, "learnerName": "own",
             "learnerGrid": {"C": [0.01, 1.0]}, "learnerParams": {"kernel": "rbf"}},
            ("features={kind: reference, reference_size: 4}",
             "train.learners=[{name: own, params: {kernel: rbf}, grid: {C: [0.01, 1.0]}}]"),
            marks=pytest.mark.slow,
        ),
        (
            {"learnerName": "own", "learnerGrid": {"C": [0.01, 1.0]}, "rank": 2, "rounds": 2,
             "gridSelection": "leave_pair_out", "seed": 7},
            ("features={rank: 2, rounds: 2}", "seed=7",
             "train.learners=[{name: own, grid: {C: [0.01, 1.0]}, selection: leave_pair_out}]"),
        ),
    ],
    ids=["panel", "reference", "chosen"],
)  # fmt: skip
@pytest.mark.slow
def test_every_kind_learns_what_the_command_line_learns(
    params: dict[str, object], sets: tuple[str, ...], rated: DataFrame,
    run_of: Callable[..., Run], request: pytest.FixtureRequest,
) -> None:  # fmt: skip
    stages = tuple(name for name in (*STEPS[:3], "tune", "train")
                   if name != "tune" or "learnerGrid" in params)  # fmt: skip
    run = run_of(f"kind-{request.node.callspec.id}", stages, "prepare.train_share=1.0", *sets)
    model = PerUserRanker(**{"numBuckets": 3, **params}).fit(rated)
    own = F.col("learner").isin("own", "item_offset")
    assert rows_of(model.userModels) == rows_of(run.read(MODELS).where(own))
    pairs = rated.limit(40)
    assert model.transform(pairs).where("prediction is null or isnan(prediction)").count() == 0


@pytest.mark.slow
def test_given_vectors_are_those_of_the_command_line(
    rated: DataFrame, run_of: Callable[..., Run], tmp_path: Path
) -> None:
    vectors = np.random.default_rng(0).normal(size=(15, 3))  # one item has none
    ids = [f"i{item}" for item in range(15)]
    pq.write_table(pa.table({"item_id": ids, "features": list(vectors)}), tmp_path / "v.parquet")
    path = str(tmp_path / "v.parquet")
    run = run_of("given", STEPS, "prepare.train_share=1.0", f"features={{given: {path}}}")
    model = PerUserRanker(numBuckets=3, featureKind="given", given=path).fit(rated)
    assert rows_of(model.itemFeatures) == rows_of(run.read(ITEM_FEATURES))
    assert rows_of(model.userModels) == rows_of(run.read(MODELS).where(OURS))


def test_lists_are_those_of_the_command_line(fitted: PerUserRankerModel, whole: Run) -> None:
    found = {row["user"]: [(entry["item"], entry["rating"]) for entry in row["recommendations"]]
             for row in fitted.recommendForAllUsers(5).collect()}  # fmt: skip
    expected: dict[str, list[tuple[str, float]]] = {}
    for row in whole.read(RECOMMENDATIONS).orderBy("user_id", "position").collect():
        expected.setdefault(row["user_id"], []).append((row["item_id"], row["score"]))
    assert found.keys() == expected.keys()
    for user, listed in found.items():
        assert [item for item, _ in listed] == [item for item, _ in expected[user]]
        np.testing.assert_allclose(
            [rating for _, rating in listed], [score for _, score in expected[user]], rtol=1e-6
        )


def test_a_list_holds_what_is_rated_only_where_asked(
    spark: SparkSession, fitted: PerUserRankerModel, given: Given
) -> None:
    asked = spark.sql("select explode(array('u1', 'u2', 'u1', 'nobody')) as user")
    for rated in (False, True):
        found = fitted.recommendForUserSubset(asked, 16, rated=rated).collect()
        assert sorted(row["user"] for row in found) == ["u1", "u2"]
        for row in found:
            own = {item for user, item in given if user == row["user"]}
            listed = {entry["item"] for entry in row["recommendations"]}
            assert bool(own & listed) == rated
            assert len(listed) == 16 - (0 if rated else len(own))


def test_lists_are_what_transform_predicts(
    spark: SparkSession, fitted: PerUserRankerModel, given: Given
) -> None:
    users = sorted({user for user, _ in given})
    pairs = {(user, item): 0 for user in users for item in ("i0", "i3")}
    predicted = {(row["user"], row["item"]): row["prediction"]
                 for row in fitted.transform(frame_of(spark, pairs)).collect()}  # fmt: skip
    asked = spark.sql("select explode(array('i0', 'i3', 'nothing')) as item")
    for rated in (False, True):
        found = fitted.recommendForItemSubset(asked, 4, rated=rated).collect()
        assert sorted(row["item"] for row in found) == ["i0", "i3"]
        for row in found:
            item = row["item"]
            free = [user for user in users if rated or (user, item) not in given]
            best = sorted(free, key=lambda user: (-predicted[user, item], user))[:4]
            assert [entry["user"] for entry in row["recommendations"]] == best
            np.testing.assert_allclose(
                [entry["rating"] for entry in row["recommendations"]],
                [predicted[user, item] for user in best], rtol=1e-6,
            )  # fmt: skip


@pytest.mark.slow
def test_held_out_ratings_are_measured_as_evaluate_does(
    spark: SparkSession, run_of: Callable[..., Run]
) -> None:
    run = run_of("measured", (*STEPS, "evaluate"))
    model = PerUserRankerModel.fromRun(store_of(run), "measured")
    blocks = spark.read.parquet(run.path("blocks"))
    held_out = blocks.select(
        F.col("user_id").alias("user"),
        F.explode(F.expr("slice(arrays_zip(items, ratings), n_train + 1, 99)")).alias("pair"),
    ).select("user", F.col("pair.items").alias("number"), "pair.ratings")
    names = spark.read.parquet(run.path("items"))
    renamed = held_out.join(names, F.col("number") == names["item"]).select(
        "user", F.col("item_id").alias("item"), F.col("ratings").alias("rating")
    )
    ours = {row["user_id"]: row for row in rows_of(model.evaluate(renamed))}
    compared = 0
    for expected in rows_of(run.read(METRICS).where("learner = 'mprank_linear' and n_test > 0")):
        found = ours.pop(expected["user_id"])
        for name, value in expected.items():
            if isinstance(value, float):
                assert found[name] == pytest.approx(value, rel=1e-6), name
                compared += 1
            else:
                assert found[name] == value, name
    assert compared > 300
    assert not ours


def test_ids_keep_their_types_and_lists_the_schema_of_als(spark: SparkSession) -> None:
    rows = spark.sql(
        "select u.id + 5000000000 as user, concat('0f8fad5b-d9cb-469f-a165-70867728950', i.id) as "
        "item, cast(1 + pmod(u.id * 3 + i.id, 5) as double) as rating "
        "from range(12) u cross join range(9) i where pmod(u.id + i.id, 3) != 0"
    )
    model = PerUserRanker(**SMALL).fit(rows)
    lists = model.recommendForAllUsers(2)
    numbers = rows.selectExpr("int(user - 5000000000) user", "int(right(item, 1)) item", "rating")
    als = ALS(rank=2, maxIter=1).fit(numbers).recommendForAllUsers(2)
    kind = "struct<user:%s,recommendations:array<struct<item:%s,rating:float>>>"
    assert lists.schema.simpleString() == kind % ("bigint", "string")
    assert als.schema.simpleString() == kind % ("int", "int")
    assert {row["user"] for row in lists.collect()} == set(range(5000000000, 5000000012))
    assert model.transform(rows).where("prediction is not null").count() == rows.count()
