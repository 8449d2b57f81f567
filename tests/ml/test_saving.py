"""A saved model is a run, and a run opens as a model with the same results."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spark_rank import Recommender
from spark_rank.config import load_config
from spark_rank.errors import ConfigError, InputDataError
from spark_rank.ml import PerUserRanker, PerUserRankerModel
from spark_rank.stages import STAGES
from spark_rank.stages.runner import run_stages
from spark_rank.store.run import Run
from spark_rank.store.verification import verify
from spark_rank.tables.contracts import BLOCKS, ITEM_FEATURES, ITEMS, MODELS, RATINGS, USERS
from tests.ml.conftest import rows_of, store_of


@pytest.fixture(scope="module")
def saved(fitted: PerUserRankerModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "model"
    fitted.write().save(str(path))
    return path


def test_a_saved_model_answers_as_before(
    saved: Path, fitted: PerUserRankerModel, rated: DataFrame
) -> None:
    loaded = PerUserRankerModel.load(str(saved))
    assert loaded.uid == fitted.uid
    assert loaded.extractParamMap() == fitted.extractParamMap()
    assert rows_of(loaded.userModels) == rows_of(fitted.userModels)
    assert rows_of(loaded.transform(rated)) == rows_of(fitted.transform(rated))
    lists = [rows_of(model.recommendForAllUsers(3)) for model in (loaded, fitted)]
    assert lists[0] == lists[1]
    own = rated.where("user = 'u3'")
    assert rows_of(loaded.foldIn(own).userModels) == rows_of(fitted.userModels)


def test_a_saved_model_is_a_whole_run(
    spark: SparkSession, saved: Path, whole: Run, rated: DataFrame
) -> None:
    run = Run(spark, str(saved), "model")
    assert verify(run).problems == ()
    for contract in (USERS, ITEMS, BLOCKS, ITEM_FEATURES, MODELS):
        own = run.read(contract)
        if contract is MODELS:
            assert rows_of(own) == rows_of(whole.read(contract).where("learner != 'constant'"))
        else:
            assert rows_of(own) == rows_of(whole.read(contract))
    assert run.read(RATINGS).count() == rated.count()
    models = f"{saved}/runs/run_id=model/models/*.parquet"
    counted = duckdb.sql(f"select count(*) from '{models}' where status = 'learned'").fetchall()
    assert counted[0][0] > 30


def test_a_saved_model_answers_without_spark(
    spark: SparkSession, saved: Path, fitted: PerUserRankerModel
) -> None:
    reader = Recommender.open(saved / "runs" / "run_id=model")
    own = spark.sql("select 'u3' as user")
    for row in fitted.recommendForUserSubset(own, 3).collect():
        listed = [(entry["item"], entry["rating"]) for entry in row["recommendations"]]
        found = [(entry["item_id"], entry["score"]) for entry in reader.recommend("u3", 3)]
        assert [item for item, _ in found] == [item for item, _ in listed]
        assert [score for _, score in found] == pytest.approx([s for _, s in listed], rel=1e-6)
    assert reader.explain("u3", "i2") == fitted.explain("u3", "i2")
    similar = fitted.similarItems(spark.sql("select 'i2' as item"), 4).collect()
    assert [[(row["item_id"], row["similarity"]) for row in reader.similar_items("i2", 4)]] == [
        [(entry["item"], entry["similarity"]) for entry in row["similar"]] for row in similar
    ]


def test_stages_of_the_command_line_go_on_from_it(
    spark: SparkSession, saved: Path, whole: Run, tmp_path: Path
) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text("recommend: {top: 5, bottom: 0}\nprepare: {buckets: 3, train_share: 1.0}\n"
                        "features: {rank: 3, rounds: 3}\n")  # fmt: skip
    config = load_config(settings, [f"store={saved}", "run_id=model"])
    run = Run(spark, str(saved), "model")
    run_stages([STAGES["recommend"]], config, spark, run)
    lists = spark.read.parquet(run.path("recommendations"))
    assert rows_of(lists) == rows_of(spark.read.parquet(whole.path("recommendations")))


def test_a_run_opens_as_a_model(whole: Run, fitted: PerUserRankerModel, rated: DataFrame) -> None:
    opened = PerUserRankerModel.fromRun(store_of(whole), "whole")
    assert rows_of(opened.transform(rated)) == rows_of(fitted.transform(rated))
    assert rows_of(opened.userModels) == rows_of(fitted.userModels)
    with pytest.raises(ConfigError, match="has no models: run .spark-rank train. first"):
        PerUserRankerModel.fromRun(store_of(whole), "nothing")
    with pytest.raises(ConfigError, match="no models of 'other'"):
        PerUserRankerModel.fromRun(store_of(whole), "whole", learner="other")


def test_what_is_there_is_replaced_only_where_asked(
    fitted: PerUserRankerModel, tmp_path: Path
) -> None:
    path = tmp_path / "model"
    path.mkdir()
    with pytest.raises(InputDataError, match=r"already exists: use write\(\)\.overwrite"):
        fitted.save(str(path))
    fitted.write().overwrite().save(str(path))
    assert PerUserRankerModel.load(str(path)).uid == fitted.uid
    with pytest.raises(PySparkException):
        PerUserRankerModel.load(str(tmp_path / "nothing"))


def test_an_estimator_is_saved_with_its_parameters(tmp_path: Path) -> None:
    ranker = PerUserRanker(rank=5, learnerGrid={"C": [0.1, 1.0]}, cuts=[2.5], userCol="who")
    ranker.save(str(tmp_path / "ranker"))
    loaded = PerUserRanker.load(str(tmp_path / "ranker"))
    assert loaded.uid == ranker.uid
    assert loaded.extractParamMap() == ranker.extractParamMap()
    assert loaded.config() == ranker.config()
