"""What only a cluster needs to be told, unless the settings say it themselves."""

from __future__ import annotations

from collections.abc import Mapping

# A task that failed twice on an executor is tried elsewhere: a file that is gone there, or a disk
# that is full, stays so. The executor itself is not given up, for what is wrong may be a user.
EXCLUSION = {
    "spark.excludeOnFailure.taskAndStage.enabled": "true",
    "spark.excludeOnFailure.task.maxTaskAttemptsPerExecutor": "2",
    "spark.excludeOnFailure.task.maxTaskAttemptsPerNode": "3",
    "spark.excludeOnFailure.stage.maxFailedTasksPerExecutor": "100000",
    "spark.excludeOnFailure.stage.maxFailedExecutorsPerNode": "100000",
}
# Spark's own number of attempts, within which those above must lie
_ATTEMPTS = "spark.task.maxFailures"
_OWN_WORD = "spark.excludeOnFailure."
# the last bits of a product depend on which kernels BLAS takes for a processor
_NUMERIC = ("OPENBLAS_CORETYPE", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")


def cluster_defaults(settings: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return defaults for executors on other machines; `environment` is the driver's."""
    found = {
        f"spark.executorEnv.{name}": environment[name] for name in _NUMERIC if name in environment
    }
    if _ATTEMPTS in settings or any(name.startswith(_OWN_WORD) for name in settings):
        return found
    return found | EXCLUSION
