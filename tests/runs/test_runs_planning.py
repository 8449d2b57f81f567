"""``spark-rank plan``: where its counts and rates come from, what it prints, what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_rank.config import Config, load_config
from spark_rank.planning.plan import Layout, expected_seconds
from spark_rank.planning.rates import rate
from spark_rank.planning.sizes import of_records
from spark_rank.stages import STAGES, pipeline
from spark_rank.stages.runner import plain
from spark_rank.store.run import Run

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
    profile = {"users": 200_000, "items": 3000, "ratings": 20_000_000, "user_activity": []}
    counts = {"profile": profile, "most_ratings_of_a_user": 2000}
    more = {
        "prepare": {"tables": {"blocks": 200_000}, "facts": counts},
        "ingest": {"tables": {"users": 200_000, "items": 3000, "ratings": 20_000_000}},
    }
    for stage, took in seconds.items():
        run.write_record(stage, record(stage, config, took, **more.get(stage, {})))
    return run


def test_it_counts_what_will_be_generated(ask: Ask) -> None:
    plan = found(ask)
    assert plan["sizes"]["users"] == 3000
    assert plan["sizes"]["source"] == "expected of synthesize"
    assert {stage["rate"] for stage in plan["stages"]} == {"table"}
    assert [stage["stage"] for stage in plan["stages"]] == [s.name for s in pipeline(Config())]
    assert plan["seconds"] > sum(stage["seconds"] for stage in plan["stages"])
    assert plan["uncertainty"] == 2.0


def test_sizes_by_hand_and_cores(ask: Ask) -> None:
    by_hand = ("--ratings", "100000000", "--users", "480000", "--items", "17770",
               "--set", "prepare.buckets=16")  # fmt: skip
    two, eight = found(ask, *by_hand), found(ask, *by_hand, "--cores", "8")
    assert two["sizes"]["ratings"] == 100_000_000
    assert two["layout"] == {"cores": 2, "executors": 1, "executor_cores": 2, "buckets": 16,
                             "waves": 8}  # fmt: skip
    assert eight["layout"]["waves"] == 2
    assert eight["seconds"] < two["seconds"]


def test_a_finished_run_of_the_store_gives_its_own_rates(
    ask: Ask, config: Path, spark: SparkSession
) -> None:
    settings = load_config(config, ["run_id=old"])
    layout = Layout(2, 1, 2, 16, 4)
    sizes = of_records(finish(spark, settings, {"prepare": 9.0, "features": 1.0}).records(), "old")
    assert sizes is not None
    expected = expected_seconds("train", settings, sizes, layout, 2) - rate("stage")
    assert expected > rate("stage")
    finish(spark, settings, {"train": rate("stage") + 2.0 * expected})
    same = found(ask, "--set", "run_id=old")
    assert same["sizes"]["source"] == "counted by prepare in run old"
    train = {stage["stage"]: stage for stage in same["stages"]}["train"]
    assert train["rate"] == "run old"
    assert train["seconds"] == pytest.approx(rate("stage") + 2.0 * expected)
    other = found(ask, "--set", "run_id=old", "features.rank=16")
    assert {stage["stage"]: stage["rate"] for stage in other["stages"]}["train"] == "table"


def test_a_run_that_starting_took_most_of_says_nothing(
    ask: Ask, config: Path, spark: SparkSession
) -> None:
    settings = load_config(config, ["run_id=odd"])
    finish(spark, settings, {"prepare": 1.0, "features": 1.0, "train": 10_000.0})
    plan = found(ask, "--set", "run_id=odd")
    assert {stage["rate"] for stage in plan["stages"]} == {"table"}


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
    assert "synthesize" not in [stage["stage"] for stage in guessed["stages"]]


def test_it_is_printed_for_people(ask: Ask) -> None:
    code, out, _ = ask("--cores", "8", "--spark", "spark.master=yarn", "spark.executor.cores=4",
                       "--set", "prepare.buckets=16")  # fmt: skip
    assert code == 0
    assert "8 cores in 2 executors, 16 buckets, 1 wave" in out
    assert "spark.executor.memoryOverhead: " in out
    assert "4 Python workers of" in out
    assert "expect 0.5 to 2 times as much" in out
    assert all(len(line) <= 140 for line in out.splitlines())


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
