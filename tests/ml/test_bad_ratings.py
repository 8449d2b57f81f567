"""What `fit` refuses, its messages, and that a failed fit leaves no caches behind."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_rank.errors import ConfigError, InputDataError
from spark_rank.ml import PerUserRanker, training
from tests.ml.conftest import SMALL, rows_of

NothingLeft = Callable[[], AbstractContextManager[None]]
COLUMNS = pa.schema([("user", pa.string()), ("item", pa.string()), ("rating", pa.float64())])


def frame(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    names = COLUMNS.names
    return spark.createDataFrame(
        pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], COLUMNS)
    )


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], "holds no rows"),
        (
            [("u", "i", 1.0), (None, "i", 1.0), ("u", None, 1.0), ("u", "j", None),
             ("u", "k", float("nan"))],
            r"4 of 5 rows are not valid ratings \(1 missing_item, 1 missing_user, "
            r"1 rating_not_finite, 1 unreadable_rating\)",
        ),
    ],
    ids=["empty", "nulls"],
)  # fmt: skip
def test_rows_that_are_no_ratings_are_named(
    spark: SparkSession, rows: list[tuple[Any, ...]], words: str, nothing_left: NothingLeft
) -> None:
    with nothing_left(), pytest.raises(InputDataError, match=words):
        PerUserRanker(**SMALL).fit(frame(spark, *rows))


def test_columns_and_settings_that_do_not_fit_are_named(
    spark: SparkSession, rated: DataFrame, tmp_path: Path
) -> None:
    ranker = PerUserRanker(**SMALL)
    with pytest.raises(InputDataError, match="no column 'user_id', only user, item, rating"):
        PerUserRanker(userCol="user_id").fit(rated)
    with pytest.raises(InputDataError, match="column 'user' is array<string>: cast it to a string"):
        ranker.fit(rated.selectExpr("array(user) as user", "item", "rating"))
    with pytest.raises(InputDataError, match="is a stream: write it to a table first"):
        ranker.fit(spark.readStream.schema(rated.schema).parquet(str(tmp_path)))
    with pytest.raises(ConfigError, match=r"PerUserRanker: .*C=-1.* is not allowed"):
        PerUserRanker(learnerParams={"C": -1}).fit(rated)
    with pytest.raises(ConfigError, match="unknown learner 'nearest'"):
        PerUserRanker(learner="nearest").fit(rated)
    with pytest.raises(ConfigError, match=r"features\.rank"):
        PerUserRanker(rank=0).fit(rated)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("mean", 3.5),
        pytest.param("latest", 2.0, marks=pytest.mark.slow),
        pytest.param("first", 5.0, marks=pytest.mark.slow),
        pytest.param("reject", None, marks=pytest.mark.slow),
    ],
)
def test_of_several_ratings_the_policy_chooses(
    spark: SparkSession, rated: DataFrame, policy: str, expected: float | None
) -> None:
    twice = spark.sql(
        "select 'two' as user, 'i1' as item, double(r) as rating, t as time "
        "from values (5, 10), (2, 20) as given(r, t)"
    )
    once = rated.where("user in ('u1', 'u2', 'u3')").selectExpr("*", "null as time")
    ranker = PerUserRanker(**SMALL, duplicates=policy, timestampCol="time")
    blocks = ranker.fit(once.unionByName(twice)).trained.blocks
    own = [row["ratings"] for row in rows_of(blocks) if row["user_id"] == "two"]
    assert own == ([] if expected is None else [[expected]])


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt, pytest.param(RuntimeError, marks=pytest.mark.slow)]
)
def test_a_fit_that_ends_early_frees_what_it_kept(
    rated: DataFrame, monkeypatch: pytest.MonkeyPatch, nothing_left: NothingLeft,
    error: type[BaseException],
) -> None:  # fmt: skip
    def interrupted(*args: Any) -> None:
        raise error("in the middle")

    monkeypatch.setattr(training, "_check_failures", interrupted)
    with nothing_left(), pytest.raises(error):
        PerUserRanker(**SMALL).fit(rated)


@pytest.mark.slow
def test_a_model_that_nobody_needs_is_freed(rated: DataFrame, nothing_left: NothingLeft) -> None:
    with nothing_left():
        model = PerUserRanker(**SMALL).fit(rated)
        folded = model.foldIn(rated.limit(30))
        del model
        assert folded.userModels.count() > 0
        del folded


@pytest.mark.slow
def test_a_user_with_very_many_ratings_is_one_among_others(spark: SparkSession) -> None:
    many = spark.sql(
        "select u.id as user, i.id as item, double(1 + pmod(hash(u.id, i.id), 5)) as rating "
        "from range(40) u cross join range(17000) i "
        "where u.id = 0 or pmod(hash(i.id, u.id), 500) = 0"
    )
    model = PerUserRanker(**SMALL).fit(many)
    found = {row["user_id"]: row for row in rows_of(model.userModels)
             if row["learner"] == "mprank_linear"}  # fmt: skip
    assert len(found) == 40
    assert found["0"]["n_train"] == 17_000
    assert {row["status"] for row in found.values()} == {"learned"}
