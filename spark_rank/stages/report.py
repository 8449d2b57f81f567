"""report: one self-contained HTML file about the run."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import Config
from spark_rank.metrics.meaning import Evidence, enough_users
from spark_rank.records.results import EvaluateFacts, PageFacts
from spark_rank.report.accuracy import MAIN_METRICS, evidence
from spark_rank.report.learner_order import configured_order, in_order
from spark_rank.report.plots import Histogram
from spark_rank.report.recommendations import SHOWN_USERS
from spark_rank.report.run_report import RunReport
from spark_rank.session.filesystem import Filesystem
from spark_rank.stages.calibration import calibration_points
from spark_rank.stages.stage import Stage, StageResult
from spark_rank.store.run import Run
from spark_rank.tables.contracts import (
    AGGREGATE,
    BOUNDS,
    COMPARISON,
    ENSEMBLE_CURVE,
    ENSEMBLE_DIVERSITY,
    ENSEMBLE_METRICS,
    METRICS,
    RECOMMENDATIONS,
    ROC,
    SUMMARY,
    THEOREMS,
    TUNING,
)
from spark_rank.users.user_groups import ALL

FILE = "report/report.html"
_BINS = 40
# small tables that are shown where a run has them, and the stages that write the optional ones
_SHOWN = (
    SUMMARY, COMPARISON, ROC, BOUNDS, TUNING, ENSEMBLE_CURVE, ENSEMBLE_METRICS, ENSEMBLE_DIVERSITY,
    AGGREGATE, THEOREMS,
)  # fmt: skip
_OPTIONAL = ("tune", "ensemble", "rank", "aggregate", "refit", "recommend", "theorems")


def report(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Draw the distributions and write the page."""
    tables = {
        contract.table: [row.asDict() for row in run.read(contract).collect()]
        for contract in _SHOWN
        if run.has(contract)
    }
    if run.has(RECOMMENDATIONS):
        tables[RECOMMENDATIONS.table] = _sample_lists(run.read(RECOMMENDATIONS))
    records = run.records()
    overall = [row for row in tables[SUMMARY.table] if row["user_group"] == ALL]
    found = evidence(overall, run.facts(EvaluateFacts).status)
    order = in_order(configured_order(found.means, records))
    metrics = run.read(METRICS)
    histograms = {
        name: _histograms(metrics, _telling(overall, found, name), name, order)
        for name in MAIN_METRICS
    }
    points = calibration_points(run)
    html = RunReport(run.run_id, tables, histograms, records, points).html()
    write_page(html, run.draft_path(FILE), run.files)
    return StageResult(run.path(FILE), facts=PageFacts(file=FILE))


def write_page(html: str, path: str, files: Filesystem) -> None:
    """Write a page to any file system."""
    with tempfile.TemporaryDirectory(prefix="spark-rank-") as folder:
        page = Path(folder) / "report.html"
        page.write_text(html, encoding="utf-8")
        files.upload(page, path)


def _sample_lists(lists: DataFrame) -> list[dict[str, Any]]:
    """Return the lists of a few users, the first by hash."""
    heads = lists.where((F.col("list") == "top") & (F.col("position") == 1)).select("user_id")
    few = heads.orderBy(F.xxhash64("user_id"), "user_id").limit(SHOWN_USERS).collect()
    shown = lists.where(F.col("user_id").isin([row["user_id"] for row in few]))
    return [row.asDict() for row in shown.collect()]


def _telling(
    summary: list[dict[str, Any]], found: Evidence, metric: str
) -> dict[str, dict[str, Any]]:
    """Return a metric's rows by learner, where a distribution says something."""
    return {
        row["learner"]: row
        for row in summary
        if row["metric"] == metric
        and enough_users(row["users"])
        and found.nothing_because(row["learner"]) is None
    }


def _histograms(
    metrics: DataFrame,
    rows: dict[str, dict[str, Any]],
    metric: str,
    order: list[tuple[str, bool]],
) -> list[Histogram]:
    """Count users per bin in Spark; what lies beyond the last edge counts in the last bin."""
    if not rows:
        return []
    top = 1.0 if metric == "misranking" else _upper_end(list(rows.values()))
    bin_number = F.least(F.floor(F.col(metric) / F.lit(top) * _BINS), F.lit(_BINS - 1))
    counted = (
        metrics.where(F.col(metric).isNotNull() & F.col("learner").isin(list(rows)))
        .groupBy("learner", bin_number.cast("int").alias("bin"))
        .count()
        .collect()
    )
    counts: dict[str, list[int]] = {learner: [0] * _BINS for learner in rows}
    for row in counted:
        counts[row["learner"]][row["bin"]] += row["count"]
    edges = [top * i / _BINS for i in range(_BINS + 1)]
    return [
        Histogram(
            learner,
            position,
            baseline,
            rows[learner]["mean"],
            edges,
            [count / rows[learner]["users"] for count in counts[learner]],
        )
        for position, (learner, baseline) in enumerate(order)
        # a constant misranks every pair: a single bar at 1 would flatten all the others
        if learner in rows and not (metric == "misranking" and learner == "constant")
    ]


def _upper_end(rows: list[dict[str, Any]]) -> float:
    """Return where the axis ends: a little beyond the 95 % quantiles (of one user: its value)."""
    ends = [row["mean"] if row["p95"] is None else row["p95"] for row in rows]
    return 1.3 * max(ends) or 1.0


def _optional_results(config: Config, run: Run) -> dict[str, str]:
    """Return what the page shows beyond its own needs, as fingerprints."""
    found = {name: run.record(name) for name in _OPTIONAL}
    return {name: record["fingerprint"] for name, record in found.items() if record is not None}


STAGE = Stage(
    name="report",
    run=report,
    settings=lambda config: None,
    needs=lambda config: ("evaluate",),
    inputs=_optional_results,
    view=True,
)
