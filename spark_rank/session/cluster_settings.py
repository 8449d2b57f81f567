"""Default settings that only a cluster needs; the configuration's own settings win."""

from __future__ import annotations

from collections.abc import Mapping

# A task that failed twice on an executor is tried on another one: a missing file or a full disk
# would make it fail again. The executor itself stays in use, for the cause may be a user's data.
EXCLUSION = {
    "spark.excludeOnFailure.taskAndStage.enabled": "true",
    "spark.excludeOnFailure.task.maxTaskAttemptsPerExecutor": "2",
    "spark.excludeOnFailure.task.maxTaskAttemptsPerNode": "3",
    "spark.excludeOnFailure.stage.maxFailedTasksPerExecutor": "100000",
    "spark.excludeOnFailure.stage.maxFailedExecutorsPerNode": "100000",
}
# Spark's number of attempts per task, which the numbers above must not exceed
_ATTEMPTS = "spark.task.maxFailures"
_EXCLUSION_PREFIX = "spark.excludeOnFailure."
# the last bits of a product depend on which kernels BLAS chooses for a processor
_NUMERIC = ("OPENBLAS_CORETYPE", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")


def cluster_defaults(settings: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return defaults for executors on other machines; `environment` is the driver's."""
    numeric = {
        f"spark.executorEnv.{name}": environment[name] for name in _NUMERIC if name in environment
    }
    if _ATTEMPTS in settings or any(name.startswith(_EXCLUSION_PREFIX) for name in settings):
        return numeric
    return numeric | EXCLUSION
