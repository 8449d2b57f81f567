"""What is too small is named, with the setting that mends it; what is enough is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_rank.config.schema import Config, FeaturesConfig
from spark_rank.planning.memory import Demand
from spark_rank.planning.offer import Machine, offered, size_of
from spark_rank.planning.shortages import driver_model, idle_cores, shortages
from spark_rank.planning.sizes import spread

MACHINE = Machine(4, 16e9)
TRAIN = Demand("train", tasks=2, worker=1.2e9, driver=0.4e9, heap=2e9)
YARN = {"spark.master": "yarn", "spark.executor.cores": "2", "spark.executor.memory": "4g"}
POD = {**YARN, "spark.master": "k8s://https://a:443"}
ALONE = {**YARN, "spark.master": "spark://a:7077"}


def messages(settings: dict[str, str], demand: Demand = TRAIN, machine: Machine = MACHINE) -> str:
    found = shortages(demand, offered(settings, machine), settings)
    return "\n".join(shortage.message for shortage in found)


@pytest.mark.parametrize("settings", [YARN, POD])
def test_too_little_overhead_is_told_in_words(settings: dict[str, str]) -> None:
    assert messages(settings) == (
        "train needs about 2.9 GB beside the JVM's heap (2 Python workers of 1.2 GB, 0.5 GB of "
        "the JVM's own); the executor has 0.4 GB of overhead: set "
        "spark.executor.memoryOverhead=2816m"
    )


def test_too_small_a_heap_is_told_in_words() -> None:
    small = {**ALONE, "spark.executor.memory": "1g"}
    assert messages(small) == (
        "train needs about 2.0 GB of heap for 2 tasks at a time; the executor has 1.1 GB: set "
        "spark.executor.memory=2g"
    )


def test_a_sensible_cluster_is_no_news() -> None:
    enough = {"spark.executor.memoryOverhead": "3g"}
    assert messages({**YARN, **enough}) == ""
    assert messages({**POD, **enough}) == ""
    assert messages(ALONE) == ""
    assert messages({"spark.master": "local[2]", "spark.driver.memory": "4g"}) == ""


def test_a_machine_too_small_for_its_cores() -> None:
    local = {"spark.master": "local[4]", "spark.driver.memory": "2g"}
    demand = Demand("train", 4, 1.2e9, 0.4e9, 2e9)
    text = messages(local, demand, Machine(4, 6e9))
    assert "4 Python workers of 1.2 GB" in text
    assert "this machine has 3.9 GB beside it" in text
    assert text.endswith("take fewer cores, --spark 'spark.master=local[2]'")
    fewer = {**local, "spark.master": "local[2]"}
    assert messages(fewer, Demand("train", 2, 1.2e9, 0.4e9, 2e9), Machine(4, 6e9)) == ""


def test_a_machine_too_small_for_anything() -> None:
    local = {"spark.master": "local[1]", "spark.driver.memory": "2g"}
    text = messages(local, Demand("train", 1, 9e9, 0.4e9, 2e9), Machine(4, 6e9))
    assert text.endswith("take a larger machine, or fewer users")


def test_the_drivers_python_counts_on_every_cluster() -> None:
    enough = {**YARN, "spark.executor.memoryOverhead": "3g"}
    text = messages(enough, Demand("features", 2, 0.4e9, 3e9, 2e9), Machine(2, 3e9))
    assert "3.0 GB for the driver's Python" in text
    assert "spark.driver.memoryOverhead=3g" in text
    assert "features.max_ratings" in text


def test_a_limit_of_the_address_space_is_named() -> None:
    text = messages({**YARN, "spark.executor.memoryOverhead": "3g",
                     "spark.executor.pyspark.memory": "2g"})  # fmt: skip
    assert text.startswith("spark.executor.pyspark.memory limits the address space")


def test_only_tasks_that_there_are_need_memory() -> None:
    wide = {**YARN, "spark.executor.cores": "32", "spark.executor.memoryOverhead": "3g"}
    assert messages(wide) == ""


@given(st.floats(1e8, 1e11), st.floats(1e8, 1e11), st.integers(1, 64))
def test_what_a_message_proposes_is_enough(worker: float, heap: float, cores: int) -> None:
    settings = {**YARN, "spark.executor.cores": str(cores), "spark.executor.memory": "1g"}
    demand = Demand("train", cores, worker, 0.4e9, heap)
    for _ in range(2):
        for shortage in shortages(demand, offered(settings, MACHINE), settings):
            value = shortage.message.rsplit("=", 1)[1]
            assert size_of(value) is not None
            settings[shortage.setting] = value
    assert shortages(demand, offered(settings, MACHINE), settings) == []


def test_cores_without_a_bucket_are_told_before_the_blocks_are_made() -> None:
    assert idle_cores(16, 16) == []
    (found,) = idle_cores(64, 16)
    assert found.message == (
        "train, rank and recommend have a task per bucket, and 48 of 64 cores will have none: set "
        "prepare.buckets=128 in a new run"
    )


def test_a_factor_model_beyond_the_driver_names_the_way_out() -> None:
    yarn, local = offered(YARN, MACHINE), offered({"spark.master": "local[2]"}, MACHINE)
    many = spread(10**6, 10**7, 10**8, "x")
    assert driver_model(Config(), many, yarn) == (
        "features: the driver's factor model of 10,000,000 items needs about 114.0 GB of Python "
        "beside 1.0 GB of heap; the driver's machine has 16.0 GB: set features.kind=als, which "
        "learns factors on the executors"
    )
    assert "set features.kind=als" in (driver_model(Config(), many, local) or "")
    assert driver_model(Config(), many, offered(YARN, Machine(4, 200e9))) is None
    assert driver_model(Config(), spread(10**6, 10**5, 10**8, "x"), yarn) is None
    for other in (FeaturesConfig(kind="als"), FeaturesConfig(kept_from="monday")):
        assert driver_model(Config(features=other), many, yarn) is None
