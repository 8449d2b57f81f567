"""report: one self-contained HTML file about the run."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from spark_rank.config import Config
from spark_rank.metrics.meaning import Evidence, enough_users
from spark_rank.records.results import EvaluateFacts, PageFacts
from spark_rank.report.accuracy import MAIN_METRICS, evidence_of
from spark_rank.report.learner_order import configured_order, in_order
from spark_rank.report.plots import Histogram
from spark_rank.report.recommendations import SHOWN_RATINGS, SHOWN_USERS
from spark_rank.report.run_report import RunReport
from spark_rank.session.filesystem import Filesystem
from spark_rank.stages.calibration import calibration_points
from spark_rank.stages.stage import Stage, StageResult
from spark_rank.store.run import Run
from spark_rank.tables.contracts import (
    AGGREGATE,
    BLOCKS,
    BOUNDS,
    COMPARISON,
    ENSEMBLE_CURVE,
    ENSEMBLE_DIVERSITY,
    ENSEMBLE_METRICS,
    ITEMS,
    LIST_METRICS,
    METRICS,
    RECOMMENDATIONS,
    ROC,
    SUMMARY,
    THEOREMS,
    TITLES,
    TUNING,
)
from spark_rank.users.user_groups import ALL

FILE = "report/report.html"
_BINS = 40
# the small tables that the page shows if the run has them, and the stages behind optional ones
_SHOWN = (
    SUMMARY, COMPARISON, ROC, BOUNDS, TUNING, ENSEMBLE_CURVE, ENSEMBLE_METRICS, ENSEMBLE_DIVERSITY,
    AGGREGATE, THEOREMS, LIST_METRICS,
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
        lists = run.read(RECOMMENDATIONS)
        tables[RECOMMENDATIONS.table] = sample = _sample_lists(lists)
        tables["liked"] = _liked(run, {row["user_id"] for row in sample})
        tables["exposures"] = _exposures(lists)
    records = run.records()
    overall = [row for row in tables[SUMMARY.table] if row["user_group"] == ALL]
    evidence = evidence_of(overall, run.facts(EvaluateFacts).status)
    order = in_order(configured_order(evidence.means, records))
    shown_rows = {name: _rows_with_results(overall, evidence, name) for name in MAIN_METRICS}
    counts = _users_per_bin(run.read(METRICS), shown_rows)
    histograms = {name: _histograms(counts, shown_rows[name], name, order) for name in MAIN_METRICS}
    points = calibration_points(run)
    html = RunReport(run.run_id, tables, histograms, records, points).html()
    write_page(html, run.draft_path(FILE), run.files)
    return StageResult(run.path(FILE), facts=PageFacts(file=FILE))


def write_page(html: str, path: str, files: Filesystem) -> None:
    """Write the page to a path on any file system."""
    with tempfile.TemporaryDirectory(prefix="spark-rank-") as folder:
        page = Path(folder) / "report.html"
        page.write_text(html, encoding="utf-8")
        files.upload(page, path)


def _sample_lists(lists: DataFrame) -> list[dict[str, Any]]:
    """Return the lists of a few users, chosen by hash."""
    heads = lists.where((F.col("list") == "top") & (F.col("position") == 1)).select("user_id")
    few = heads.orderBy(F.xxhash64("user_id"), "user_id").limit(SHOWN_USERS).collect()
    shown = lists.where(F.col("user_id").isin([row["user_id"] for row in few]))
    return [row.asDict() for row in shown.collect()]


def _liked(run: Run, users: set[str]) -> list[dict[str, Any]]:
    """Return what some users rated highest: ``user_id, item_id, title, rating``, best first."""
    pairs = F.explode(F.arrays_zip("items", "ratings")).alias("pair")
    ratings = run.read(BLOCKS).where(F.col("user_id").isin(*users)).select("user_id", pairs)
    rated = ratings.select("user_id", F.col("pair.items").alias("item"), "pair.ratings")
    named = rated.join(run.read(ITEMS).select("item", "item_id"), "item")
    if run.has(TITLES):
        named = named.join(run.read(TITLES).select("item_id", "title"), "item_id", "left")
    else:
        named = named.withColumn("title", F.lit(None).cast("string"))
    order = Window.partitionBy("user_id").orderBy(F.col("ratings").desc(), "item_id")
    best = named.withColumn("place", F.row_number().over(order))
    shown = best.where(F.col("place") <= SHOWN_RATINGS).orderBy("user_id", "place")
    columns = ("user_id", "item_id", "title", F.col("ratings").alias("rating"))
    return [row.asDict() for row in shown.select(*columns).collect()]


def _exposures(lists: DataFrame) -> list[dict[str, Any]]:
    """Return every item in the top of a list, with the number of lists and of its ratings."""
    top = lists.where(F.col("list") == "top")
    counts = [F.count("*").alias("lists"), F.max("item_ratings").alias("item_ratings")]
    return top.groupBy("item_id", "title").agg(*counts).toArrow().to_pylist()


def _rows_with_results(
    summary: list[dict[str, Any]], evidence: Evidence, metric: str
) -> dict[str, dict[str, Any]]:
    """Return a metric's rows by learner, for learners with results and enough users."""
    return {
        row["learner"]: row
        for row in summary
        if row["metric"] == metric
        and enough_users(row["users"])
        and evidence.nothing_because(row["learner"]) is None
    }


def _users_per_bin(
    metrics: DataFrame, shown_rows: dict[str, dict[str, dict[str, Any]]]
) -> dict[tuple[str, str], list[int]]:
    """Count users per metric, learner and bin; values beyond the last edge are in the last bin.

    One query for all metrics.
    """
    binned = []
    for metric, rows in shown_rows.items():
        share = F.col(metric) / F.lit(_top(metric, rows)) if rows else F.lit(None).cast("double")
        shown_share = F.when(F.col("learner").isin(list(rows)), share)
        binned.append(F.struct(
            F.lit(metric).alias("metric"),
            F.least(F.floor(shown_share * _BINS), F.lit(_BINS - 1)).cast("int").alias("bin"),
        ))  # fmt: skip
    entries = metrics.select("learner", F.explode(F.array(*binned)).alias("entry"))
    counted = (
        entries.select("learner", "entry.*").where(F.col("bin").isNotNull())
        .groupBy("metric", "learner", "bin").count().collect()
    )  # fmt: skip
    counts: dict[tuple[str, str], list[int]] = {}
    for row in counted:
        bins = counts.setdefault((row["metric"], row["learner"]), [0] * _BINS)
        bins[row["bin"]] += row["count"]
    return counts


def _histograms(
    counts: dict[tuple[str, str], list[int]],
    rows: dict[str, dict[str, Any]],
    metric: str,
    order: list[tuple[str, bool]],
) -> list[Histogram]:
    """Return the share of users in every bin, learner by learner."""
    if not rows:
        return []
    top = _top(metric, rows)
    edges = [top * i / _BINS for i in range(_BINS + 1)]
    return [
        Histogram(
            learner,
            position,
            baseline,
            rows[learner]["mean"],
            edges,
            [count / rows[learner]["users"] for count in counts.get((metric, learner), [])],
        )
        for position, (learner, baseline) in enumerate(order)
        # a constant misranks every pair: a single bar at 1 would flatten all the others
        if learner in rows and not (metric == "misranking" and learner == "constant")
    ]


def _top(metric: str, rows: dict[str, dict[str, Any]]) -> float:
    """Return where a metric's axis ends."""
    return 1.0 if metric == "misranking" else _upper_end(list(rows.values()))


def _upper_end(rows: list[dict[str, Any]]) -> float:
    """Return where the axis ends: a little beyond the 95 % quantiles (of one user: its value)."""
    ends = [row["mean"] if row["p95"] is None else row["p95"] for row in rows]
    return 1.3 * max(ends) or 1.0


def _optional_results(config: Config, run: Run) -> dict[str, str]:
    """Return the fingerprints of the optional stages whose results the page shows."""
    records = {name: run.record(name) for name in _OPTIONAL}
    return {name: record["fingerprint"] for name, record in records.items() if record is not None}


STAGE = Stage(
    name="report",
    run=report,
    settings=lambda config: None,
    needs=lambda config: ("evaluate",),
    inputs=_optional_results,
    view=True,
)
