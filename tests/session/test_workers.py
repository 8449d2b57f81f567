"""What surrounds the work of Spark's Python workers."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from spark_rank.session.workers import by_workers


def test_a_worker_settles_and_its_work_is_what_it_was(spark: SparkSession) -> None:
    def frozen(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Tell the process, what its collector passes over, and what becomes of a broken pipe."""
        import gc
        import os
        import signal

        import spark_rank.users.learning  # noqa: F401 - many objects

        for _ in batches:
            told = [os.getpid(), gc.get_freeze_count(), signal.getsignal(signal.SIGPIPE)]
            names = ["process", "frozen", "pipe"]
            yield pa.record_batch([pa.array([int(value)], pa.int64()) for value in told], names)

    made = by_workers(spark.range(0, 4, 1, 4), frozen, "process long, frozen long, pipe long")
    rows = made.collect() + made.collect()
    assert len(rows) == 8
    assert {row["pipe"] for row in rows} == {signal.SIG_DFL}
    by_process: dict[int, list[int]] = {}
    for row in rows:
        by_process.setdefault(row["process"], []).append(row["frozen"])
    # from a worker's second task on, whatever it has done before
    later = [count for counts in by_process.values() for count in counts[1:]]
    assert later
    assert min(later) > 20_000


HUNG_UP = """
import os, socket
from spark_rank.session.workers import at_work
ours, theirs = socket.socketpair()
assert list(at_work(iter([1, 2]), lambda rows: (row + 1 for row in rows))) == [2, 3]
theirs.close()
os.write(ours.fileno(), b"anybody there?")
"""


def test_a_worker_that_is_hung_up_on_ends_without_a_word() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", HUNG_UP], capture_output=True, text=True, timeout=120, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGPIPE, "", "")
