"""What a Spark worker does with models in `evaluate`: one pass, three tables."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from spark_rank.frames.distributions import PACKED, Packer
from spark_rank.tables.contracts import METRICS
from spark_rank.users.measuring import Measures, measured
from spark_rank.users.roc_sums import ROC_SUMS, RocSums

MADE = (METRICS, PACKED, ROC_SUMS)


def evaluate_batches(
    batches: Iterator[pa.RecordBatch], measures: Measures
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Turn model rows into metric rows; then yield what the task's users add to statistics."""
    packer, sums = Packer(measures.groups.names()), RocSums()
    for batch in batches:
        rows, curves = measured(batch, measures)
        yield METRICS.table, rows
        packer.add(rows)
        sums.add(rows, curves)
    for part in packer.rows():
        yield PACKED.table, part
    for part in sums.rows():
        yield ROC_SUMS.table, part
