"""What settings give to a run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_rank.planning.offer import Machine, kind_of, offered, size_of, this_machine
from spark_rank.planning.shortages import as_setting

GIB = 2.0**30
MACHINE = Machine(8, 16 * GIB)


@pytest.mark.parametrize(
    ("text", "size"),
    [("1g", GIB), ("512m", GIB / 2), ("512", GIB / 2), ("2GB", 2 * GIB), ("3t", 3072 * GIB),
     ("100b", 100.0), ("1k", 1024.0), ("1.5g", None), ("much", None), ("", None), (None, None)],
)  # fmt: skip
def test_sizes_are_read_as_spark_reads_them(text: str | None, size: float | None) -> None:
    assert size_of(text) == size


@given(st.floats(1.0, 1e13))
def test_a_proposed_size_is_enough_and_not_much_more(size: float) -> None:
    found = size_of(as_setting(size))
    assert found is not None
    assert size <= found <= size + 256 * 2**20


def test_masters_are_told_apart() -> None:
    kinds = {"local": "local", "local[*]": "local", "local[4,2]": "local", "yarn": "yarn",
             "spark://a:7077": "standalone", "k8s://https://a:443": "kubernetes",
             "local-cluster[2,1,1024]": "standalone"}  # fmt: skip
    assert {master: kind_of(master) for master in kinds} == kinds


def test_a_local_run_has_what_the_machine_has() -> None:
    found = offered({"spark.master": "local[3]", "spark.driver.memory": "4g"}, MACHINE)
    assert (found.kind, found.cores, found.tasks) == ("local", 3, 3)
    assert found.heap == 4 * GIB
    assert found.beside == 12 * GIB
    assert offered({"spark.master": "local[*]"}, MACHINE).cores == 8
    assert offered({"spark.master": "local[*]", "spark.task.cpus": "2"}, MACHINE).tasks == 4


def test_executors_of_a_cluster() -> None:
    yarn = {"spark.master": "yarn", "spark.executor.memory": "8g", "spark.executor.cores": "4",
            "spark.executor.instances": "3"}  # fmt: skip
    found = offered(yarn, MACHINE)
    assert (found.cores, found.tasks, found.heap) == (12, 4, 8 * GIB)
    assert found.beside == pytest.approx(0.8 * GIB)
    assert offered({**yarn, "spark.dynamicAllocation.enabled": "true"}, MACHINE).cores is None


@pytest.mark.parametrize(
    ("settings", "beside"),
    [
        ({}, 384 * 2**20),
        ({"spark.executor.memoryOverhead": "3g"}, 3 * GIB),
        ({"spark.executor.memoryOverhead": "300"}, 300 * 2**20),
        ({"spark.executor.memory": "10g"}, GIB),
        ({"spark.executor.memoryOverheadFactor": "0.5", "spark.executor.memory": "10g"}, 5 * GIB),
        ({"spark.executor.minMemoryOverhead": "1g"}, GIB),
        ({"spark.executor.memoryOverhead": "1g", "spark.executor.pyspark.memory": "2g"}, 3 * GIB),
    ],
)
def test_memory_beside_the_heap(settings: dict[str, str], beside: float) -> None:
    for master in ("yarn", "k8s://https://a:443"):
        assert offered({"spark.master": master, **settings}, MACHINE).beside == pytest.approx(
            beside
        )
    assert offered({"spark.master": "spark://a:1", **settings}, MACHINE).beside is None


def test_a_pod_of_a_python_job_gets_more() -> None:
    pods = {"spark.master": "k8s://https://a:443", "spark.executor.memory": "10g"}
    in_cluster = offered({**pods, "spark.submit.deployMode": "cluster"}, MACHINE)
    assert in_cluster.beside == 4 * GIB
    assert offered(pods, MACHINE).beside == GIB


def test_a_standalone_worker_gives_all_its_cores() -> None:
    found = offered({"spark.master": "spark://a:1", "spark.cores.max": "8"}, MACHINE)
    assert (found.cores, found.tasks) == (8, None)


def test_this_machine_is_one() -> None:
    found = this_machine()
    assert found.cores >= 1
    assert 1e8 < found.memory < 1e14
