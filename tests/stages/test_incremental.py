"""Runs that go on from others: waves after a kill, and models kept from a previous run."""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_rank.config import Config, load_config
from spark_rank.errors import ConfigError
from spark_rank.stages import STAGES
from spark_rank.stages.runner import run_stages
from spark_rank.store.run import Run
from spark_rank.tables.contracts import MODELS

SETTINGS = """
input: {path: FIRST, format: csv}
prepare: {buckets: 6}
features: {rank: 3, rounds: 3}
train:
  learners:
    - {name: linear, params: {C: 0.1}}
    - {name: own, params: {kernel: rbf}, grid: {C: [0.1, 10]}, selection: k_fold}
recommend: {top: 3, bottom: 1}
"""
BEFORE = ("ingest", "prepare", "features", "tune")


def ratings(users: int, items: int) -> dict[tuple[str, str], int]:
    draw = random.Random(3)
    return {
        (f"u{user}", f"i{item}"): draw.randint(1, 5)
        for user in range(users)
        for item in draw.sample(range(items), draw.randint(6, 12))
    }


def save(path: Path, rows: dict[tuple[str, str], int]) -> Path:
    lines = [f"{user},{item},{rating}" for (user, item), rating in rows.items()]
    path.write_text("\n".join(["user,item,rating", *lines]) + "\n")
    return path


class Store:
    """A store with two days of ratings: of the second, three users' differ."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        first = ratings(40, 20)
        second = {key: rating for key, rating in first.items() if key[0] != "u7"}
        second["u3", "i0"] = 6 - first.get(("u3", "i0"), 1)
        second |= {("newcomer", f"i{item}"): 1 + item % 5 for item in range(9)}
        second["newcomer", "novelty"] = 5
        self.days = {"FIRST": save(folder / "first.csv", first),
                     "SECOND": save(folder / "second.csv", second)}  # fmt: skip

    def config(self, run_id: str, *sets: str, day: str = "FIRST") -> Config:
        path = self.folder / f"{run_id}.yaml"
        path.write_text(SETTINGS.replace("FIRST", str(self.days[day])))
        return load_config(path, [f"store={self.folder / 'store'}", f"run_id={run_id}", *sets])

    def run(self, config: Config, stages: Sequence[str], copied_from: Run | None = None) -> Run:
        """Run stages; what comes before them is another run's."""
        run = Run(self.spark, config.store, config.run_id)
        if copied_from is not None:
            shutil.copytree(local(copied_from), local(run))
            for stage in stages:
                (local(run) / "manifest" / f"{stage}.json").unlink(missing_ok=True)
        run_stages([STAGES[name] for name in stages], config, self.spark, run)
        return run


def local(run: Run) -> Path:
    return Path(run.root.removeprefix("file:"))


def rows(run: Run, table: str, where: str = "true") -> list[tuple[Any, ...]]:
    found = duckdb.sql(
        f"select * exclude (run_id) from '{local(run)}/{table}/**/*.parquet' where {where}"
    )
    return sorted(found.fetchall(), key=repr)


@pytest.fixture(scope="module")
def store(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(spark, tmp_path_factory.mktemp("incremental"))


@pytest.fixture(scope="module")
def first(store: Store) -> Run:
    return store.run(store.config("first"), (*BEFORE, "train"))


@pytest.fixture(scope="module")
def second(store: Store, first: Run) -> Run:
    """Return the second day, with the first day's features and, where it can be, models."""
    sets = ("previous=first", "features.kept_from=first", "users_per_wave=15")
    return store.run(store.config("second", *sets, day="SECOND"), (*BEFORE, "train"))


def test_waves_leave_what_one_pass_leaves(store: Store, first: Run) -> None:
    stages = ("train", "recommend")
    one = store.run(store.config("one"), stages, first)
    many = store.run(store.config("many", "users_per_wave=15"), stages, first)
    waves = {run.run_id: len((run.record("train") or {})["facts"]["waves"]) for run in (one, many)}
    assert waves == {"one": 1, "many": 3}
    for table, least in (("models", 160), ("recommendations", 150)):
        assert rows(one, table) == rows(many, table)
        assert len(rows(many, table)) >= least
    files = [path for wave in (many.record("train") or {})["facts"]["waves"]
             for path in wave["files"]]  # fmt: skip
    assert sorted(files) == sorted(path.name for path in (local(many) / "models").glob("*.parquet"))


def test_a_run_with_a_previous_one_has_the_models_of_a_full_run(store: Store, second: Run) -> None:
    sets = ("input.dictionaries_from=first", "features.kept_from=first")
    full = store.run(store.config("full", *sets, day="SECOND"), ("train",), second)
    assert rows(second, "models") == rows(full, "models")
    assert (full.record("train") or {})["facts"].get("previous") is None
    assert len(rows(second, "models")) == 40 * 4


def test_changes_are_counted_and_listed(second: Run) -> None:
    assert rows(second, "changes") == [
        ("item", "novelty", "new", 1), ("user", "newcomer", "new", 1), ("user", "u3", "changed", 1),
        ("user", "u7", "vanished", 1),
    ]  # fmt: skip
    record = second.record("train") or {}
    assert record["facts"]["previous"]["changes"] == {
        "users new": 1, "users changed": 1, "users vanished": 1,
        "items new": 1, "items vanished": 0,
    }  # fmt: skip
    assert record["facts"]["previous"]["all_learned_because"] is None
    said = "since first: 1 user new, 1 user changed, 1 user vanished, 1 item new; the models of"
    assert f"{said} 38 users kept" in record["message"]


def test_kept_models_are_not_learned_again(store: Store, first: Run, second: Run) -> None:
    # what the previous run holds is taken as it is: mark it, and the marks are seen again
    marked = Run(store.spark, str(store.folder / "store"), "marked")
    shutil.copytree(local(first), local(marked))
    for path in (local(marked) / "models").glob("*.parquet"):
        table = pq.read_table(path, partitioning=None)
        place = table.schema.get_field_index("detail")
        seen = pa.array(["seen"] * len(table))
        pq.write_table(table.set_column(place, table.schema.field(place), seen), path)
        path.with_name(f".{path.name}.crc").unlink()
    sets = ("previous=marked", "input.dictionaries_from=first", "features.kept_from=first")
    run = store.run(store.config("seen", *sets, day="SECOND"), ("train",), second)
    learned = {row[0] for row in rows(run, "models", "detail is distinct from 'seen'")}
    assert learned == {"u3", "newcomer"}


def test_models_of_an_older_version_are_learned_anew(store: Store, first: Run, second: Run) -> None:
    older = Run(store.spark, str(store.folder / "store"), "older")
    shutil.copytree(local(first), local(older))
    for path in (local(older) / "models").glob("*.parquet"):
        table = pq.read_table(path, partitioning=None).drop_columns(["bucket"])
        place = table.schema.get_field_index("schema_version")
        version = pa.array([MODELS.version - 1] * len(table), pa.int32())
        pq.write_table(table.set_column(place, "schema_version", version), path)
        path.with_name(f".{path.name}.crc").unlink()
    sets = ("previous=older", "input.dictionaries_from=first", "features.kept_from=first")
    run = store.run(store.config("newer", *sets, day="SECOND"), ("train",), second)
    facts = (run.record("train") or {})["facts"]["previous"]
    assert (
        facts["all_learned_because"]
        == "the previous models have other columns than those of this version"
    )
    assert rows(run, "models") == rows(second, "models")


@pytest.mark.slow
def test_all_are_learned_where_a_model_depends_on_something_else(store: Store, second: Run) -> None:
    sets = ("previous=first", "features.kept_from=first", "train.margin=2.0")
    other = store.run(store.config("other", *sets, day="SECOND"), ("train",), second)
    facts = (other.record("train") or {})["facts"]["previous"]
    assert facts["all_learned_because"] == "other learners or settings"
    anew = store.run(
        store.config("anew", "previous=first", day="SECOND"), ("features", "tune", "train"), second
    )
    facts = (anew.record("train") or {})["facts"]["previous"]
    assert facts["all_learned_because"].startswith("the features are new (features.kept_from")
    assert (anew.record("train") or {})["tables"]["models"] == 160


def test_kept_factors_are_those_of_the_run_and_zero_elsewhere(first: Run, second: Run) -> None:
    old = {row[0]: row[2:4] for row in rows(first, "item_features")}
    new = {row[0]: row[2:4] for row in rows(second, "item_features")}
    assert new.pop("novelty") == (0.0, [0.0] * 4)
    assert new == old
    for run in (first, second):
        assert " items × 3 factors " in (run.record("features") or {})["message"]


def test_what_cannot_be_gone_on_from_is_told(store: Store, first: Run, second: Run) -> None:
    with pytest.raises(ConfigError, match="cannot go on from itself"):
        store.config("first", "previous=first")
    with pytest.raises(ConfigError, match=r"previous: '\.\./x' must be 1 to 100"):
        store.config("x", "previous=../x")
    with pytest.raises(ConfigError, match=r"features\.kept_from: keeps learned factors"):
        store.config("x", "features.kept_from=first", "features.kind=panel")
    with pytest.raises(ConfigError, match="previous: run 'nothing' in .* has not finished 'train'"):
        store.run(store.config("no", "previous=nothing"), ("train",), first)
    with pytest.raises(ConfigError, match=r"features\.kept_from: run 'nothing' .* has no factors"):
        store.run(store.config("no2", "features.kept_from=nothing"), ("features",), first)
