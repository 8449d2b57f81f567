"""The plan as a whole: times add up, more cores are no slower, what it proposes is enough."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_rank.config.schema import Config, InputConfig, PrepareConfig
from spark_rank.planning.offer import Machine, Offer, offered
from spark_rank.planning.plan import Layout, Measured, Plan, demand, layout_of, make_plan
from spark_rank.planning.rates import rate, starting
from spark_rank.planning.rendering import as_json, as_text, duration
from spark_rank.planning.shortages import shortages
from spark_rank.planning.sizes import Sizes, spread
from spark_rank.planning.work import stage_work

STAGES = ["ingest", "prepare", "features", "train", "evaluate", "recommend", "report"]
CONFIG = Config(input=InputConfig(path="x", format="netflix"), prepare=PrepareConfig(buckets=16))
SIZES = spread(480_000, 17_770, 100_000_000, "by hand")
MACHINE = Machine(4, 64e9)
YARN = {"spark.master": "yarn", "spark.executor.instances": "2", "spark.executor.cores": "4"}


def plan(settings: dict[str, str], cores: int, sizes: Sizes = SIZES, **measured: Measured) -> Plan:
    offer = offered(settings, MACHINE)
    return make_plan(CONFIG, STAGES, sizes, layout_of(CONFIG, cores, offer, 2), offer, measured)


def test_a_stage_takes_its_start_and_its_share_of_the_cores() -> None:
    found = {stage.stage: stage.seconds for stage in plan(YARN, 8).stages}
    for stage in ("ingest", "prepare", "train", "report"):
        work = stage_work(stage, CONFIG, SIZES)
        assert found[stage] == pytest.approx(starting(stage) + work.executors / 8)
    # the factors are the driver's work, on its own four cores
    work = stage_work("features", CONFIG, SIZES)
    expected = starting("features") + work.executors / 8 + work.driver / 4
    assert found["features"] == pytest.approx(expected)


def test_the_whole_is_the_sum_and_the_start() -> None:
    found = plan(YARN, 8)
    assert found.seconds == pytest.approx(rate("start") + sum(s.seconds for s in found.stages))


def test_no_more_cores_are_busy_than_there_are_buckets() -> None:
    by_stage = {stage.stage: stage for stage in plan(YARN, 1000).stages}
    work = stage_work("train", CONFIG, SIZES)
    assert by_stage["train"].tasks == CONFIG.prepare.buckets == 16
    assert by_stage["train"].seconds == pytest.approx(starting("train") + work.executors / 16)


def test_two_waves_are_under_way() -> None:
    config = replace(CONFIG, prepare=PrepareConfig(buckets=64))
    offer = Offer("yarn", 100, 4, 4e9, 4e9, MACHINE)
    found = make_plan(config, ["train"], SIZES, Layout(100, 25, 4, 64, 8), offer, {})
    assert found.stages[0].tasks == 16


def test_a_measured_stage_is_as_much_slower_as_it_was() -> None:
    table, own = plan(YARN, 8), plan(YARN, 8, train=Measured("monday", 3.0))
    before, after = (
        next(stage for stage in found.stages if stage.stage == "train") for found in (table, own)
    )
    start = starting("train")
    assert after.seconds - start == pytest.approx(3.0 * (before.seconds - start))
    assert (before.rate, after.rate) == ("table", "run monday")


@given(st.integers(1, 200), st.integers(1, 200), st.integers(10, 10**7))
def test_more_cores_are_no_slower(few: int, more: int, users: int) -> None:
    sizes = spread(users, 17_770, users * 100, "x")
    assert plan(YARN, few + more, sizes).seconds <= plan(YARN, few, sizes).seconds + 1e-9


@pytest.mark.parametrize("users", [1000, 480_000, 20_000_000])
@pytest.mark.parametrize("master", ["yarn", "k8s://https://a:443", "spark://a:7077"])
def test_what_it_proposes_is_enough_at_the_start(users: int, master: str) -> None:
    sizes = spread(users, 17_770, users * 200, "x")
    settings = {**YARN, "spark.master": master}
    found = plan(settings, 8, sizes)
    settings |= {advice.setting: advice.value for advice in found.settings}
    offer = offered(settings, MACHINE)
    for stage in STAGES:
        assert shortages(demand(stage, CONFIG, sizes, 4, 8), offer, settings) == []


def test_what_it_proposes_for_one_machine_is_enough_there() -> None:
    settings = {"spark.master": "local[4]"}
    proposed = {advice.setting: advice.value for advice in plan(settings, 4).settings}
    offer = offered({**settings, **proposed}, Machine(4, 12e9))
    for stage in STAGES:
        assert shortages(demand(stage, CONFIG, SIZES, 4, 4), offer, settings) == []


def test_the_layout_follows_the_executors() -> None:
    assert layout_of(CONFIG, 10, offered(YARN, MACHINE), 1) == Layout(10, 3, 4, 16, 1)
    local = offered({"spark.master": "local[2]"}, MACHINE)
    assert layout_of(CONFIG, 6, local, 1) == Layout(6, 1, 6, 16, 1)
    alone = offered({"spark.master": "spark://a:7077"}, MACHINE)
    assert layout_of(CONFIG, 2, alone, 1) == Layout(2, 1, 2, 16, 1)


def test_notes_say_what_is_not_reckoned() -> None:
    assert "expect 0.5 to 2 times" in plan(YARN, 8).notes[0]
    alone = {**YARN, "spark.master": "spark://a:7077"}
    assert any("standalone worker reserves no memory" in note for note in plan(alone, 8).notes)


def test_it_is_json_and_text() -> None:
    found = plan(YARN, 8)
    tree = json.loads(json.dumps(as_json(found)))
    assert tree["seconds"] == found.seconds
    assert [stage["stage"] for stage in tree["stages"]] == STAGES
    assert "groups" not in tree["sizes"]
    text = as_text(found)
    for advice in found.settings:
        assert f"{advice.setting}: {advice.value}" in text


def test_times_are_told_in_the_unit_that_people_use() -> None:
    times = {3.4: "3 s", 119: "119 s", 120: "2 min", 7199: "120 min", 9000: "2.5 h"}
    assert {seconds: duration(seconds) for seconds in times} == times
