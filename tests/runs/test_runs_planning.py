"""``spark-rank plan``: where its counts and rates come from, what it prints, what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_rank.config import Config, load_config
from spark_rank.stages import STAGES, pipeline
from spark_rank.stages.runner import plain
from spark_rank.store.run import Run
from tests.records.counts import prepared_record

Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ask(asking: Callable[[str], Ask]) -> Ask:
    return asking("plan")


def found(ask: Ask, *words: str) -> dict[str, Any]:
    code, out, _ = ask(*words, "--format", "json")
    assert code == 0
    plan: dict[str, Any] = json.loads(out)
    return plan


def record(stage: str, config: Config, seconds: float, **more: Any) -> dict[str, Any]:
    return {
        "stage": stage, "fingerprint": "f", "tables": {}, "facts": {}, "message": "", "files": {},
        "seed": 0, "started": "2026-01-01T00:00:00+00:00", "seconds": seconds,
        "settings": plain(STAGES[stage].settings(config)), "spark": {"parallelism": "2"}, **more,
    }  # fmt: skip


def finish(spark: SparkSession, config: Config, seconds: dict[str, float]) -> Run:
    """Write the records of a run with twenty million ratings."""
    run = Run(spark, config.store, config.run_id)
    more = {
        "prepare": prepared_record(200_000, 3000, 20_000_000, 2000),
        "ingest": {"tables": {"users": 200_000, "items": 3000, "ratings": 20_000_000}},
    }
    for stage, took in seconds.items():
        run.write_record(stage, record(stage, config, took, **more.get(stage, {})))
    return run


def test_it_counts_what_will_be_generated(ask: Ask) -> None:
    plan = found(ask)
    assert plan["sizes"]["users"] == 3000
    assert plan["sizes"]["source"] == "expected from synthesize"
    assert {stage["reckoned_from"] for stage in plan["stages"]} == {"usual costs"}
    names = [stage["need"]["stage"] for stage in plan["stages"]]
    assert names == [s.name for s in pipeline(Config())]
    assert 0.0 < plan["time"]["low"] < plan["time"]["high"]


def test_sizes_by_hand_and_cores(ask: Ask) -> None:
    by_hand = ("--ratings", "100000000", "--users", "480000", "--items", "17770",
               "--set", "prepare.buckets=16")  # fmt: skip
    two, eight = found(ask, *by_hand), found(ask, *by_hand, "--cores", "8")
    assert two["sizes"]["ratings"] == 100_000_000
    assert two["layout"] == {"cores": 2, "executors": 1, "executor_cores": 2, "buckets": 16,
                             "waves": 8}  # fmt: skip
    assert eight["layout"]["waves"] == 2
    assert eight["time"]["high"] < two["time"]["high"]


def whole(spark: SparkSession, settings: Config, **seconds: float) -> None:
    """Finish all stages of a pipeline, in a second each but for some."""
    finish(spark, settings, {s.name: 1.0 for s in pipeline(settings)} | seconds)


def stages_of(plan: dict[str, Any]) -> dict[str, Any]:
    return {stage["need"]["stage"]: stage for stage in plan["stages"]}


def test_a_finished_run_of_the_store_says_how_long_it_takes(
    ask: Ask, config: Path, spark: SparkSession
) -> None:
    whole(spark, load_config(config, ["run_id=old"]), train=500.0)
    same = found(ask, "--set", "run_id=old")
    assert same["sizes"]["source"] == "counted by prepare in run old"
    train = stages_of(same)["train"]
    assert train["reckoned_from"] == "run old"
    assert train["time"]["low"] < 500.0 < train["time"]["high"]
    # another run with half of the ratings
    less = stages_of(found(ask, "--ratings", "10000000", "--users", "100000"))["train"]
    assert less["reckoned_from"] == "run old"
    assert less["time"]["low"] < 251.0 < less["time"]["high"] < 500.0
    other = found(ask, "--set", "run_id=old", "features.rank=16")
    assert stages_of(other)["train"]["reckoned_from"] == "usual costs"


def test_a_run_that_kept_models_or_is_of_another_version_says_nothing(
    ask: Ask, config: Path, spark: SparkSession
) -> None:
    settings = load_config(config, ["run_id=odd"])
    whole(spark, settings)
    run = Run(spark, settings.store, "odd")
    for facts in ({"previous": {"run": "monday"}}, {"previous": "monday"}):
        run.write_record("train", {**(run.record("train") or {}), "facts": facts}, renew=True)
        told = stages_of(found(ask, "--set", "run_id=new"))
        assert {stage["reckoned_from"] for stage in told.values()} == {"usual costs"}


def test_a_damaged_run_is_no_obstacle_but_to_itself(ask: Ask, tmp_path: Path) -> None:
    folder = tmp_path / "store" / "runs" / "run_id=bad" / "manifest"
    folder.mkdir(parents=True)
    (folder / "train.json").write_text("{")
    assert found(ask)["sizes"]["users"] == 3000
    code, _, err = ask("--set", "run_id=bad")
    assert code == 3
    assert "not a valid stage record" in err


def test_bytes_of_the_input_are_a_guess(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "ratings.csv").write_bytes(b"x" * 250_000)
    words = ("--set", f"input.path={tmp_path / 'ratings.csv'}", "input.format=csv")
    guessed = found(ask, *words)
    assert guessed["sizes"]["ratings"] == 10_000
    assert "guessed" in guessed["sizes"]["source"]
    assert "synthesize" not in stages_of(guessed)


def test_it_is_printed_for_people(ask: Ask) -> None:
    code, out, _ = ask("--cores", "8", "--spark", "spark.master=yarn", "spark.executor.cores=4",
                       "--set", "prepare.buckets=16")  # fmt: skip
    assert code == 0
    assert "8 cores in 2 executors, 16 buckets, 1 wave" in out
    assert "spark.executor.memoryOverhead: " in out
    assert "4 Python workers of" in out
    assert "half to twice the estimate" in out
    assert all(len(line) <= 140 or line.startswith("Usual") for line in out.splitlines())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--spark", "spark.master=spark://a:7077"], "give --cores N"),
        (["--users", "10", "--items", "10", "--ratings", "101"], "10 users can have 10 to 100"),
        (["--set", "input.path=/nowhere/x.csv", "input.format=csv"], "give --ratings or --users"),
        (["--set", "sed=1"], "did you mean 'seed'?"),
    ],
)
def test_what_cannot_be_reckoned_is_one_line(ask: Ask, words: list[str], said: str) -> None:
    code, _, err = ask(*words)
    assert code == 2
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("words", [["--cores", "0"], ["--users", "-1"], ["--items", "many"]])
def test_wrong_numbers_are_refused(ask: Ask, words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        ask(*words)
    assert ended.value.code == 2
