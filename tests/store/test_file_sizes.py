"""Tables come in few files of sensible size, the same bytes every time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_rank.config import Config
from spark_rank.stages.runner import run_stage
from spark_rank.stages.stage import Stage, StageResult
from spark_rank.store.file_sizes import FEW, SENSIBLE, joined_groups
from spark_rank.store.run import Run
from spark_rank.store.waves import Wave, write_in_waves
from spark_rank.tables.contracts import ITEM_FEATURES, RATING_SCALE, USERS
from tests.outputs import parquet_bytes

MB = 2**20
USERS_COUNT = 4_000
TASKS = 3 * FEW


@given(st.lists(st.integers(0, 400 * MB), max_size=300))
def test_every_file_is_in_one_group_in_its_place(sizes: list[int]) -> None:
    groups = joined_groups(sizes)
    assert [place for group in groups for place in group] == list(range(len(sizes)))
    total, largest = sum(sizes), max(sizes, default=0)
    assert len(groups) <= max(FEW, total // SENSIBLE + 1)
    assert all(len(group) == 1 or sum(sizes[place] for place in group) <= SENSIBLE + largest
               for group in groups)  # fmt: skip


def test_a_table_is_hundreds_of_megabytes_a_file_or_few_files() -> None:
    """Default run, ratings of 2 GB of text, of 100 GB of text."""
    for files, size, most, least in ((16, 50_000, 16, 16), (125, 5 * MB, 16, 16),
                                     (6_400, 5 * MB, 250, 250)):  # fmt: skip
        groups = joined_groups([size] * files)
        assert least <= len(groups) <= most
    joined = [5 * MB * len(group) for group in joined_groups([5 * MB] * 6_400)]
    assert min(joined) > 100 * MB
    assert max(joined) < 140 * MB


def written(run: Run, table: str = "users") -> list[Path]:
    return sorted(Path(run.path(table).removeprefix("file:")).glob("*.parquet"))


def rows(paths: list[Path]) -> list[tuple[Any, ...]]:
    """Return the rows in the order of the files, of which each is read from its beginning."""
    names = ", ".join(f"'{path}'" for path in paths)
    return duckdb.sql(f"select user from read_parquet([{names}])").fetchall()


def make(spark: SparkSession, store: Path, run_id: str, *, in_waves: bool) -> Run:
    users = spark.range(0, USERS_COUNT, 1, TASKS).select(
        F.concat(F.lit("u"), "id").alias("user_id"), F.col("id").cast("int").alias("user")
    )

    def work(config: Config, spark: SparkSession, run: Run) -> StageResult:
        if not in_waves:
            return StageResult("wrote", {"users": run.write(USERS, users)})

        def part(wave: Wave) -> Any:
            return users.where(F.col("user") % 2 == wave.number)

        waves = write_in_waves(run, USERS, [(0,), (1,)], part, users=USERS_COUNT)
        return StageResult("waved", {"users": sum(wave.rows for wave in waves)})

    run = Run(spark, str(store), run_id)
    run_stage(Stage("writing", work, settings=lambda config: None), Config(), spark, run)
    return run


@pytest.mark.parametrize(("in_waves", "files"), [(False, FEW), (True, 2 * FEW)])
@pytest.mark.slow
def test_what_many_tasks_write_is_few_files_with_the_same_bytes(
    spark: SparkSession, tmp_path: Path, in_waves: bool, files: int
) -> None:
    runs = [make(spark, tmp_path / "store", f"r{i}", in_waves=in_waves) for i in range(2)]
    first, second = (written(run) for run in runs)
    assert len(first) == len(second) == files
    assert sorted(rows(first)) == [(number,) for number in range(USERS_COUNT)]
    if not in_waves:  # in the order in which the tasks had them
        assert rows(first) == sorted(rows(first))
        assert [parquet_bytes(path) for path in first] == [parquet_bytes(path) for path in second]
    # a reader can still take a file in the parts that the tasks had written
    assert pq.read_metadata(first[0]).num_row_groups == TASKS // FEW
    assert runs[0].read(USERS).count() == USERS_COUNT


def test_tables_that_are_made_at_once_are_one_file(finished: Run) -> None:
    for contract in (ITEM_FEATURES, RATING_SCALE):
        assert len(written(finished, contract.table)) == 1
    tables = {path.parent for path in Path(finished.root.removeprefix("file:")).rglob("*.parquet")}
    assert all(len(list(table.glob("*.parquet"))) <= FEW for table in tables)
