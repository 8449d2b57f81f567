"""Time, memory and counts of each stage, in files beside the tables, for schedulers and Prometheus.

No stage reads these files; no table has the durations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from spark_rank.events import emit
from spark_rank.records.facts import read_facts
from spark_rank.records.models import FailureFacts
from spark_rank.session.filesystem import java_reason
from spark_rank.store.failures import failed_users
from spark_rank.store.run import Run
from spark_rank.store.self_checked import checked_text, checksum, read_checked

FOLDER = "run_metrics"
_COMMENT = "# checksum "  # Prometheus ignores it
DONE, FAILED = "done", "failed"
# Spark's names for the memory metrics of driver and executors, polled with every heartbeat
_MEMORY = {
    "jvm_heap": "JVMHeapMemory",
    "jvm_process": "ProcessTreeJVMRSSMemory",
    "python_processes": "ProcessTreePythonRSSMemory",
}
_GAUGES = {
    "spark_rank_stage_success": "Whether the stage's last attempt was done (1) or failed (0).",
    "spark_rank_stage_end_time_seconds": "When the attempt ended, in seconds since 1970.",
    "spark_rank_stage_seconds": "How long the attempt took.",
    "spark_rank_stage_users": "Users that the stage processed.",
    "spark_rank_stage_users_per_second": "Users per second, over the whole stage.",
    "spark_rank_stage_rows": "Rows of the tables that the stage wrote.",
    "spark_rank_stage_failed_users": "Users without a model, by learner and reason.",
    "spark_rank_peak_memory_bytes": "Greatest memory of a driver or executor since its start.",
}

Metrics = dict[str, Any]


def stage_metrics(
    run_id: str, stage: str, seconds: float, outcome: Mapping[str, Any], spark: SparkSession
) -> Metrics:
    """Return an attempt's metrics; `outcome` is the stage's record, or names the error."""
    failed = _failed(read_facts(FailureFacts, outcome, run_id)) if "facts" in outcome else {}
    users = outcome.get("users")
    return {
        "run": run_id,
        "stage": stage,
        "status": FAILED if "error" in outcome else DONE,
        "error": outcome.get("error"),
        "ended": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
        "users": users,
        "users_per_second": round(users / seconds, 3) if users and seconds else None,
        "rows": outcome.get("tables", {}),
        "failed_users": failed,
        "peak_memory_bytes": peak_memory(spark),
    }


def _failed(facts: FailureFacts) -> dict[str, dict[str, int]]:
    """Return the failures of a stage that learns; later stages only repeat its counts."""
    return {} if facts.failed_users is None else failed_users(facts.status)


def write_metrics(run: Run, metrics: Metrics) -> None:
    """Write both files; if that fails, warn and go on."""
    path = run.path(f"{FOLDER}/{metrics['stage']}")
    try:
        run.files.write_text(f"{path}.json", checked_text(metrics))
        text = prometheus(metrics)
        run.files.write_text(f"{path}.prom", f"{text}{_COMMENT}{checksum(text)}\n")
    except (OSError, Py4JError) as error:
        emit(
            "metrics_not_written",
            f"{path}.json could not be written: {java_reason(error)}",
            stage=metrics["stage"],
            level="warning",
        )


def is_intact(text: str) -> bool:
    """Tell whether one of these files is unchanged, by the checksum that it contains."""
    if not text.startswith("{"):
        body, _, written = text.rpartition(_COMMENT)
        return written == f"{checksum(body)}\n"
    return read_checked(text) is not None


def peak_memory(spark: SparkSession) -> dict[str, dict[str, int]] | None:
    """Return the greatest memory of each driver and executor; None before the first heartbeat."""
    context: Any = spark.sparkContext
    try:
        listed = context._jsc.sc().statusStore().executorList(False)
        executors = [listed.apply(i) for i in range(listed.size())]
        peaks = {
            str(executor.id()): {
                name: int(executor.peakMemoryMetrics().get().getMetricValue(metric))
                for name, metric in _MEMORY.items()
            }
            for executor in executors
            if executor.peakMemoryMetrics().isDefined()
        }
    except Py4JJavaError:  # Spark only remembers the latest executors
        return None
    return peaks or None


def prometheus(metrics: Metrics) -> str:
    """Return the metrics in Prometheus' text format, as the textfile collector reads it."""
    lines: list[str] = []
    values = list(_samples(metrics))
    for name, meaning in _GAUGES.items():
        samples = [f"{name}{{{labels}}} {value}" for of, labels, value in values if of == name]
        if samples:
            lines += [f"# HELP {name} {meaning}", f"# TYPE {name} gauge", *samples]
    return "\n".join(lines) + "\n"


def _samples(metrics: Metrics) -> Iterator[tuple[str, str, Any]]:
    stage = {"stage": metrics["stage"]}
    ended = datetime.fromisoformat(metrics["ended"]).timestamp()
    yield "spark_rank_stage_success", _labels(stage), int(metrics["status"] == DONE)
    yield "spark_rank_stage_end_time_seconds", _labels(stage), int(ended)
    for name in ("seconds", "users", "users_per_second"):
        if metrics[name] is not None:
            yield f"spark_rank_stage_{name}", _labels(stage), metrics[name]
    for table, rows in metrics["rows"].items():
        yield "spark_rank_stage_rows", _labels({**stage, "table": table}), rows
    for learner, reasons in metrics["failed_users"].items():
        for reason, users in reasons.items():
            labels = _labels({**stage, "learner": learner, "reason": reason})
            yield "spark_rank_stage_failed_users", labels, users
    for executor, peaks in (metrics["peak_memory_bytes"] or {}).items():
        for kind, size in peaks.items():
            labels = _labels({**stage, "executor": executor, "kind": kind})
            yield "spark_rank_peak_memory_bytes", labels, size


def _labels(values: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in values.items())


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
