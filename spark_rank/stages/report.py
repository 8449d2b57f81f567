"""report: one self-contained HTML file about the run."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import Config
from spark_rank.data.tables import METRICS, SUMMARY
from spark_rank.engine.scoring import METRIC_NAMES
from spark_rank.engine.stage import Stage, StageResult
from spark_rank.engine.store import Run
from spark_rank.learners import BASELINES
from spark_rank.report.plots import Histogram
from spark_rank.report.run_report import RunReport

FILE = "report/report.html"
_BINS = 40


def report(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Draw the distributions and write the page."""
    metrics = run.read(METRICS)
    summary = [row.asDict() for row in run.read(SUMMARY).collect()]
    histograms = {name: _histograms(metrics, summary, name) for name in METRIC_NAMES}
    html = RunReport(run.run_id, summary, histograms, run.records()).html()
    with tempfile.TemporaryDirectory(prefix="spark-rank-") as folder:
        page = Path(folder) / "report.html"
        page.write_text(html, encoding="utf-8")
        run.files.upload(page, run.path(FILE))
    return StageResult(run.path(FILE), facts={"file": FILE})


def _histograms(metrics: DataFrame, summary: list[dict[str, Any]], metric: str) -> list[Histogram]:
    """Count users per bin in Spark; what lies beyond the last edge counts in the last bin."""
    rows = {row["learner"]: row for row in summary if row["metric"] == metric and row["users"]}
    if not rows:
        return []
    top = 1.0 if metric == "misranking" else 1.3 * max(row["p95"] for row in rows.values()) or 1.0
    bin_number = F.least(F.floor(F.col(metric) / F.lit(top) * _BINS), F.lit(_BINS - 1))
    counted = (
        metrics.where(F.col(metric).isNotNull())
        .groupBy("learner", bin_number.cast("int").alias("bin"))
        .count()
        .collect()
    )
    counts: dict[str, list[int]] = {learner: [0] * _BINS for learner in rows}
    for row in counted:
        counts[row["learner"]][row["bin"]] += row["count"]
    edges = [top * i / _BINS for i in range(_BINS + 1)]
    learners = {row["learner"] for row in summary}
    order = [b for b in BASELINES if b in learners] + sorted(learners - BASELINES.keys())
    return [
        Histogram(
            learner,
            position,
            learner in BASELINES,
            rows[learner]["mean"],
            edges,
            [count / rows[learner]["users"] for count in counts[learner]],
        )
        for position, learner in enumerate(order)
        # a constant misranks every pair: a single bar at 1 would flatten all the others
        if learner in rows and not (metric == "misranking" and learner == "constant")
    ]


STAGE = Stage(
    name="report",
    run=report,
    settings=lambda config: None,
    needs=lambda config: ("evaluate",),
)
