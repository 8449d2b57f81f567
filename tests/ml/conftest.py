"""A run of the command line and a model of the same ratings, shared by the tests of the room."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_rank.config import load_config
from spark_rank.ml import PerUserRanker, PerUserRankerModel
from spark_rank.stages import STAGES
from spark_rank.stages.runner import run_stages
from spark_rank.store.run import Run
from tests.stages.test_incremental import ratings, save

SMALL = {"rank": 3, "rounds": 3, "numBuckets": 3}
SETTINGS = """
input: {path: RATINGS, format: csv}
prepare: {buckets: 3}
features: {rank: 3, rounds: 3}
recommend: {top: 5, bottom: 0}
"""
Given = dict[tuple[str, str], int]


@pytest.fixture(scope="session")
def given() -> Given:
    """Return generated ratings, one user with a single one and one who gives nothing but fours."""
    equal = {("equal", f"i{item}"): 4 for item in range(4)}
    return ratings(30, 16) | {("few", "i1"): 3} | equal


def frame_of(spark: SparkSession, given: Given) -> DataFrame:
    columns = {"user": [user for user, _ in given], "item": [item for _, item in given],
               "rating": [float(rating) for rating in given.values()]}  # fmt: skip
    return spark.createDataFrame(pa.table(columns))


@pytest.fixture(scope="session")
def rated(spark: SparkSession, given: Given) -> DataFrame:
    return frame_of(spark, given)


@pytest.fixture(scope="session")
def run_of(
    spark: SparkSession, given: Given, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Run]:
    """Return a function that runs stages of the command line on the ratings."""
    folder = tmp_path_factory.mktemp("runs")
    path = folder / "settings.yaml"
    path.write_text(SETTINGS.replace("RATINGS", str(save(folder / "ratings.csv", given))))

    def run(run_id: str, stages: tuple[str, ...], *sets: str) -> Run:
        config = load_config(path, [f"store={folder / 'store'}", f"run_id={run_id}", *sets])
        made = Run(spark, config.store, run_id)
        run_stages([STAGES[name] for name in stages], config, spark, made)
        return made

    return run


STEPS = ("ingest", "prepare", "features", "train")


@pytest.fixture(scope="session")
def whole(run_of: Callable[..., Run]) -> Run:
    """Return a run of the command line that holds nothing out."""
    return run_of("whole", (*STEPS, "recommend"), "prepare.train_share=1.0")


@pytest.fixture(scope="session")
def fitted(rated: DataFrame) -> PerUserRankerModel:
    return PerUserRanker(**SMALL).fit(rated)


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    """Return rows as plain values, in an order of their own."""
    names = [name for name in frame.columns if name != "schema_version"]
    found = frame.select(*names).toArrow().to_pylist()
    return sorted(found, key=repr)


def store_of(run: Run) -> str:
    return str(Path(run.root.removeprefix("file:")).parents[1])


def kept(spark: SparkSession) -> set[int]:
    """Return what executors keep."""
    return set(spark.sparkContext._jsc.getPersistentRDDs())


@pytest.fixture
def nothing_left(spark: SparkSession) -> Callable[[], AbstractContextManager[None]]:
    """Return a context that fails if executors cache more after it than before."""

    @contextmanager
    def check() -> Iterator[None]:
        gc.collect()
        time.sleep(0.5)  # models of other tests may just be let go
        before = kept(spark)
        yield
        for _ in range(100):
            gc.collect()
            if kept(spark) <= before:
                return
            time.sleep(0.1)
        pytest.fail(f"still kept: {kept(spark) - before}")

    return check
