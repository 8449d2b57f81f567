"""The runs that a configuration names: `latest` is decided once, and the others must be there."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_rank.config import Config, FeaturesConfig, InputConfig
from spark_rank.errors import ConfigError
from spark_rank.store.earlier_runs import with_earlier_runs
from spark_rank.store.needed_runs import needs_of_complete, note_needed_runs, noted_runs
from spark_rank.store.pointer import point_to, pointer_path
from spark_rank.store.run import Run


class Store:
    """A store with runs that hold nothing."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder

    def run(self, run_id: str) -> Run:
        (self.folder / "runs" / f"run_id={run_id}").mkdir(parents=True, exist_ok=True)
        return Run(self.spark, str(self.folder), run_id)

    def config(self, run_id: str, **keys: str) -> Config:
        return Config(
            store=str(self.folder), run_id=run_id, previous=keys.get("previous"),
            features=FeaturesConfig(kept_from=keys.get("kept_from")),
            input=InputConfig(dictionaries_from=keys.get("dictionaries_from")),
        )  # fmt: skip


@pytest.fixture
def store(spark: SparkSession, tmp_path: Path) -> Store:
    return Store(spark, tmp_path / "store")


def test_latest_is_the_promoted_run_in_every_key(store: Store) -> None:
    point_to(store.run("monday"), str(store.folder))
    tuesday = store.run("tuesday")
    keys = ("previous", "kept_from", "dictionaries_from")
    found = with_earlier_runs(store.config("tuesday", **dict.fromkeys(keys, "latest")), tuesday)
    assert found == store.config("tuesday", **dict.fromkeys(keys, "monday"))
    # what is named stays as it is
    store.run("sunday")
    config = store.config("tuesday", previous="latest", kept_from="sunday")
    found = with_earlier_runs(config, tuesday)
    assert (found.previous, found.features.kept_from) == ("monday", "sunday")


def test_it_is_the_same_run_however_often_work_begins(store: Store) -> None:
    point_to(store.run("monday"), str(store.folder))
    config = store.config("tuesday", previous="latest")
    tuesday = store.run("tuesday")
    assert with_earlier_runs(config, tuesday).previous == "monday"
    point_to(tuesday, str(store.folder))
    assert with_earlier_runs(config, tuesday).previous == "monday"
    note_needed_runs(tuesday, config)
    assert with_earlier_runs(config, tuesday).previous == "monday"


def test_where_nothing_is_promoted_everybody_is_learned(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    monday = store.run("monday")
    config = store.config("monday", previous="latest", kept_from="latest")
    for _ in range(2):
        assert with_earlier_runs(config, monday) == store.config("monday")
        said = capsys.readouterr().err
        assert said == (
            f"spark-rank: previous, features.kept_from: no run was promoted in {store.folder} when "
            "this one began: every user is learned\n"
        )
        # a first run stays one, also when it is the promoted one itself
        point_to(monday, str(store.folder))


def test_a_run_cannot_go_on_from_itself(store: Store) -> None:
    monday = store.run("monday")
    point_to(monday, str(store.folder))
    with pytest.raises(ConfigError, match="previous: latest is this run itself, 'monday'"):
        with_earlier_runs(store.config("monday", previous="latest"), monday)


@pytest.mark.parametrize("key", ["previous", "kept_from", "dictionaries_from"])
def test_a_run_that_is_not_there_is_said_with_those_that_are(store: Store, key: str) -> None:
    today = store.run("today")
    full = {"previous": key, "kept_from": "features.kept_from",
            "dictionaries_from": "input.dictionaries_from"}[key]  # fmt: skip
    expected = rf"^{full}: there is no run 'yesterday' in .*store: it has no other run$"
    with pytest.raises(ConfigError, match=expected):
        with_earlier_runs(store.config("today", **{key: "yesterday"}), today)
    for number in range(10):
        store.run(f"2026-03-{number:02}")
    with pytest.raises(ConfigError, match=r"it has 2026-03-02, .*, 2026-03-09 and 2 more$"):
        with_earlier_runs(store.config("today", **{key: "yesterday"}), today)


def test_a_folder_of_another_store_is_not_looked_for(store: Store) -> None:
    config = store.config("today", dictionaries_from="/elsewhere/runs/run_id=x")
    assert with_earlier_runs(config, store.run("today")) == config


def test_a_latest_run_that_is_gone_is_said(store: Store) -> None:
    monday, tuesday = store.run("monday"), store.run("tuesday")
    point_to(monday, str(store.folder))
    config = store.config("tuesday", previous="latest")
    with_earlier_runs(config, tuesday)
    monday.files.delete(monday.root)
    with pytest.raises(ConfigError, match="previous: latest means run 'monday' in this run, and"):
        with_earlier_runs(config, tuesday)


def test_a_complete_run_lets_the_latest_of_its_time_go(store: Store) -> None:
    point_to(store.run("monday"), str(store.folder))
    tuesday = store.run("tuesday")
    config = store.config("tuesday", previous="latest", kept_from="monday")
    with_earlier_runs(store.config("tuesday", previous="latest"), tuesday)
    note_needed_runs(tuesday, store.config("tuesday", previous="latest"))
    assert noted_runs(tuesday) == {"monday"}
    trained = {"train": {"facts": {"previous": {"run": "monday"}}}}
    assert needs_of_complete(tuesday, trained) == frozenset()
    # who names it keeps it
    note_needed_runs(tuesday, config)
    assert needs_of_complete(tuesday, trained) == {"monday"}
    assert pointer_path(str(store.folder)).endswith("latest.json")
