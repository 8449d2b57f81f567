"""The plan as a whole: times add up, more cores are no slower, what it proposes is enough."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_rank.config.schema import Config, InputConfig, PrepareConfig
from spark_rank.planning.memory import demand
from spark_rank.planning.offer import Machine, offered
from spark_rank.planning.plan import Layout, Measured, Plan, layout_of, make_plan, stage_time
from spark_rank.planning.rendering import as_json, as_text, span
from spark_rank.planning.shortages import shortages
from spark_rank.planning.sizes import Sizes, spread
from spark_rank.planning.times import SESSION, Range

STAGES = ["ingest", "prepare", "features", "train", "evaluate", "recommend", "report"]
CONFIG = Config(input=InputConfig(path="x", format="netflix"), prepare=PrepareConfig(buckets=16))
SIZES = spread(480_000, 17_770, 100_000_000, "by hand")
MACHINE = Machine(4, 64e9)
YARN = {"spark.master": "yarn", "spark.executor.instances": "2", "spark.executor.cores": "4"}


def plan(settings: dict[str, str], cores: int, sizes: Sizes = SIZES, **measured: Measured) -> Plan:
    offer = offered(settings, MACHINE)
    return make_plan(CONFIG, STAGES, sizes, layout_of(CONFIG, cores, offer, 2), offer, measured)


def test_the_whole_is_the_sum_and_the_start() -> None:
    found = plan(YARN, 8)
    assert found.time.low == pytest.approx(SESSION + sum(s.time.low for s in found.stages))
    assert found.time.high == pytest.approx(SESSION + sum(s.time.high for s in found.stages))


def test_no_more_cores_are_busy_than_there_are_buckets() -> None:
    offer = offered(YARN, MACHINE)
    times = [stage_time("train", CONFIG, SIZES, Layout(n, 1, 4, 16, 1), offer) for n in (16, 999)]
    assert times[0] == times[1]


def test_two_waves_are_under_way() -> None:
    offer = offered(YARN, MACHINE)
    few, many = (
        stage_time("train", CONFIG, SIZES, Layout(100, 25, 4, 64, waves), offer) for waves in (8, 2)
    )
    assert many.high < few.high


def test_a_measured_stage_takes_what_it_took() -> None:
    found = plan(YARN, 8, train=Measured("monday", Range(1.0, 2.0)))
    of_train = next(stage for stage in found.stages if stage.need.stage == "train")
    assert (of_train.time, of_train.reckoned_from) == (Range(1.0, 2.0), "run monday")
    assert {s.reckoned_from for s in found.stages if s is not of_train} == {"usual costs"}


@given(st.integers(1, 200), st.integers(1, 200), st.integers(10, 10**7))
def test_more_cores_are_no_slower(few: int, more: int, users: int) -> None:
    sizes = spread(users, 17_770, users * 100, "x")
    assert plan(YARN, few + more, sizes).time.high <= plan(YARN, few, sizes).time.high + 1e-9


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


def test_it_is_json_and_text() -> None:
    found = plan(YARN, 8)
    tree = json.loads(json.dumps(as_json(found)))
    assert tree["time"] == {"low": found.time.low, "high": found.time.high}
    assert [stage["need"]["stage"] for stage in tree["stages"]] == STAGES
    text = as_text(found)
    for advice in found.settings:
        assert f"{advice.setting}: {advice.value}" in text
    assert "half to twice the estimate" in text


def test_a_model_too_large_for_the_driver_is_a_warning_in_text_and_json() -> None:
    found = plan(YARN, 8, spread(10**6, 10**7, 10**8, "x"))
    lines = [line for line in as_text(found).splitlines() if line.startswith("warning: ")]
    assert len(lines) == 1
    assert "features.kind=als" in lines[0]
    assert as_json(found)["warnings"] == (lines[0].removeprefix("warning: "),)
    assert "warning" not in as_text(plan(YARN, 8))


def test_times_are_told_in_the_unit_that_people_use() -> None:
    spans = [span(Range(*ends)) for ends in ((1.2, 3.4), (20, 119), (30, 120), (1800, 7200))]
    assert spans == ["1 to 3 s", "20 to 119 s", "0 to 2 min", "0.5 to 2.0 h"]
