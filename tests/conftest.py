"""One small Spark session for the whole test run, and runs in temporary stores."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hypothesis
import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession

from spark_rank.config import Config, load_config
from spark_rank.session.session import spark_session
from spark_rank.stages import pipeline
from spark_rank.stages.runner import run_stages
from spark_rank.store.run import Run
from tests.fault_table import pytest_collection_modifyitems, pytest_terminal_summary  # noqa: F401
from tests.generated import copy_kept, generated_run, keep_copy, share, shared_folder

# no deadline: the first call of a compiled kernel compiles it; in CI the same examples every time
hypothesis.settings.register_profile("tests", deadline=None, derandomize="CI" in os.environ)
hypothesis.settings.load_profile("tests")

# a JVM of a few minutes: what the second compiler costs it never earns back (for jobs that tests
# start, too)
# with one compiler the JVM has room for 48 MB of compiled code only, which a whole pipeline fills;
# collectors that work beside the program take its core
os.environ.setdefault(
    "SPARK_SUBMIT_OPTS",
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseParallelGC",
)

SETTINGS = {
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "3",
    "spark.driver.memory": "2g",
    # batches of a few users, so that every test crosses batch borders
    "spark.sql.execution.arrow.maxRecordsPerBatch": "8",
    # thousands of jobs in one session: nobody looks at those that are over
    "spark.sql.ui.retainedExecutions": "10",
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "1000",
}
SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["shared_folder"] = shared_folder()


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):  # one of several processes
        share(config.workerinput["shared_folder"])


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with spark_session("tests", SETTINGS) as session, guarded(session):
        yield session


@contextmanager
def guarded(session: SparkSession) -> Iterator[None]:
    """Refuse, in all tests, what costs Python workers more than their work."""
    frame, create = type(session.range(1)), type(session).createDataFrame
    map_in_arrow = frame.mapInArrow

    def checked_map(self: DataFrame, function: Any, *more: Any, **named: Any) -> DataFrame:
        # whatever is there comes with all stages, and plots, into every worker
        assert b"spark_rank.stages" not in cloudpickle.dumps(function), function
        return map_in_arrow(self, function, *more, **named)

    def checked_create(self: SparkSession, data: Any, *more: Any, **named: Any) -> DataFrame:
        # of rows that are no Arrow table Spark makes a frame by workers that nobody else needs
        asker = sys._getframe(1).f_globals["__name__"]
        assert isinstance(data, pa.Table) or not asker.startswith("spark_rank."), asker
        return create(self, data, *more, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frame, "mapInArrow", checked_map)
        patch.setattr(type(session), "createDataFrame", checked_create)
        yield


@pytest.fixture(scope="session")
def data_file() -> Callable[[str], Path]:
    """Find a file of real research data, or skip: such data may not be distributed."""

    def find(name: str) -> Path:
        path = SHARED_DATA / name
        if not path.exists():
            pytest.skip(f"research data {name} is not beside this checkout")
        return path

    return find


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Return a function that mounts a file system in memory, of a size as `mount` knows them."""
    place = tmp_path / "disk"

    def mount(size: str) -> Path:
        place.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
        if os.geteuid() != 0 or subprocess.call(command, stderr=subprocess.DEVNULL):
            pytest.skip("this user may not mount a file system")
        return place

    yield mount
    if place.is_mount():
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture(scope="session")
def make_config(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Config]:
    """Return a small configuration in a store of its own; keyword `sets` as on the command line."""

    def make(*sets: str, yaml: str = "") -> Config:
        folder = tmp_path_factory.mktemp("config")
        path = folder / "test.yaml"
        small = "synthesize: {users: 60, items: 80, median_ratings: 20}\n"
        # lists only where a test looks at them: every stage takes seconds
        brief = "features: {kind: panel, panel_size: 10}\nrecommend: {in_pipeline: false}\n"
        text = (yaml or small) + brief
        if "prepare:" not in text:
            text += "prepare: {buckets: 3}\n"  # each is a task of most stages
        path.write_text(text)
        return load_config(path, [f"store={folder / 'store'}", *sets])

    return make


@pytest.fixture(scope="session")
def run_pipeline(spark: SparkSession) -> Callable[..., Run]:
    """Run the stages of a configuration, but those it may do without, in the shared session."""

    def execute(config: Config, *, without: Collection[str] = ()) -> Run:
        run = generated_run(spark, config)
        stages = [stage for stage in pipeline(config) if stage.name not in without]
        run_stages(stages, config, spark, run)
        return run

    return execute


@pytest.fixture(scope="session")
def finished(
    spark: SparkSession, make_config: Callable[..., Config], run_pipeline: Callable[..., Run]
) -> Run:
    """Return a whole small run, shared by the tests that only look at it."""
    learners = "[{name: linear, params: {C: 0.1}}, {name: rbf, params: {C: 10, kernel: rbf}}]"
    config = make_config(f"train.learners={learners}", "recommend.in_pipeline=true")
    run = Run(spark, config.store, config.run_id)
    folder = Path(run.root.removeprefix("file:"))
    if not copy_kept("finished", folder):
        run_pipeline(config)
        keep_copy(folder, "finished")
    return run
