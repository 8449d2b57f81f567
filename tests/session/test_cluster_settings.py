"""What executors on other machines are told."""

from __future__ import annotations

import pytest

from spark_rank.session.cluster_settings import EXCLUSION, cluster_defaults
from spark_rank.session.session import session_settings

MASTER = {"spark.master": "spark://host:7077"}


def test_a_task_that_fails_twice_on_an_executor_is_tried_elsewhere() -> None:
    assert EXCLUSION.items() <= session_settings({}, MASTER).items()
    assert not EXCLUSION.keys() & session_settings({}, {}).keys()


@pytest.mark.parametrize(
    "name", ["spark.task.maxFailures", "spark.excludeOnFailure.application.enabled"]
)
def test_who_has_an_opinion_of_failures_is_not_contradicted(name: str) -> None:
    """Spark refuses attempts on a node that are not fewer than all attempts."""
    found = session_settings({}, {**MASTER, name: "2"})
    assert not EXCLUSION.keys() & found.keys()
    assert found[name] == "2"


def test_executors_compute_with_the_kernels_of_the_driver() -> None:
    driver = {"OPENBLAS_CORETYPE": "Haswell", "NUMBA_CPU_NAME": "haswell", "PATH": "/bin"}
    found = cluster_defaults({"spark.task.maxFailures": "1"}, driver)
    assert found == {
        "spark.executorEnv.OPENBLAS_CORETYPE": "Haswell",
        "spark.executorEnv.NUMBA_CPU_NAME": "haswell",
    }
