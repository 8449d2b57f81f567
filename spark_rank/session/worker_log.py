"""Shows on the driver what Python workers log or print.

Spark collects these lines where `spark.sql.pyspark.worker.logging.enabled` is true, as it is by
default here.
"""

from __future__ import annotations

from pyspark.sql import Row, SparkSession

from spark_rank.events import Level, emit
from spark_rank.wording import count_of

COLLECT = "spark.sql.pyspark.worker.logging.enabled"
# this many lines are shown, the others are counted
_SHOWN = 20
_LEVELS: dict[str, Level] = {"WARNING": "warning", "ERROR": "error", "CRITICAL": "error"}


def tell_worker_lines(spark: SparkSession) -> None:
    """Emit the first lines that workers of this session have logged."""
    if spark.conf.get(COLLECT, "false") != "true":
        return
    lines = spark.tvf.python_worker_logs()
    first = lines.orderBy("ts", "logger", "msg").limit(_SHOWN + 1).collect()
    for row in first[:_SHOWN]:
        emit(
            "worker_line",
            f"a worker logged: {row['msg']}{_exception(row)}",
            level=_LEVELS.get(row["level"], "info"),
            logger=row["logger"],
            worker_time=row["ts"],
        )
    if len(first) > _SHOWN:
        more = lines.count() - _SHOWN
        emit(
            "worker_lines_left_out",
            f"workers logged {count_of(more, 'more line')}, not shown",
            lines=more,
        )


def _exception(row: Row) -> str:
    """Return the exception of a log line, and where it was raised."""
    raised = row["exception"]
    if raised is None:
        return ""
    place = raised["stacktrace"][-1] if raised["stacktrace"] else None
    where = f" in {place['method']}, {place['file']}:{place['line']}" if place else ""
    return f" ({raised['class']}: {raised['msg']}{where})"
