"""The page of an experiment, made from the tables and facts of its stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import Config
from spark_rank.records.results import ExperimentFacts, PageFacts
from spark_rank.report.experiments import PICTURES, Outcome, experiment_page
from spark_rank.report.spreads import SHARES, Spread
from spark_rank.stages.report import FILE, write_page
from spark_rank.stages.stage import Stage, StageResult
from spark_rank.store.run import Run
from spark_rank.tables.contract import Contract
from spark_rank.tables.contracts import EXPERIMENT_CLAIMS, EXPERIMENT_RESULTS, EXPERIMENT_SUMMARY

_FEWEST_USERS = 10


def experiment_report(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Write the page of the run's experiment."""
    write_page(experiment_page(run.run_id, outcome_of(run)), run.draft_path(FILE), run.files)
    return StageResult(run.path(FILE), facts=PageFacts(file=FILE))


def outcome_of(run: Run) -> Outcome:
    """Return the outcome of a run's experiment."""
    record = run.record("experiment") or {}
    summary, claims = (_rows(contract, run) for contract in (EXPERIMENT_SUMMARY, EXPERIMENT_CLAIMS))
    # most pages show means only, so that half a million results need not be in memory
    drawn = record["settings"]["name"] in PICTURES
    results = _rows(EXPERIMENT_RESULTS, run) if drawn else []
    spreads = user_spreads(run.read(EXPERIMENT_RESULTS), summary)
    return Outcome(record, run.facts(ExperimentFacts), results, summary, claims, spreads)


def user_spreads(results: DataFrame, summary: Sequence[Mapping[str, Any]]) -> list[Spread]:
    """Return how numbers spread over test users, in the order of the summary.

    A user counts with the mean over his or her units; fewer than ten users are left out.
    """
    of_users = results.where(
        F.col("target").isNotNull() & F.col("x").isNull() & F.col("value").isNotNull()
    )
    key = ["part", "metric", "method"]
    users = of_users.groupBy(*key, "target").agg(_mean("value").alias("value"))
    shares = F.array(*[F.lit(share) for share in SHARES])
    spreads = users.groupBy(*key).agg(
        F.count("*").alias("users"),
        _mean("value").alias("mean"),
        F.percentile("value", shares).alias("quantiles"),
    )
    by_key = {
        tuple(row[name] for name in key): Spread(
            **{**row.asDict(), "quantiles": tuple(row["quantiles"])}
        )
        for row in spreads.where(F.col("users") >= _FEWEST_USERS).collect()
    }
    order = [tuple(row[name] for name in key) for row in summary if row["x"] is None]
    return [by_key[place] for place in dict.fromkeys(order) if place in by_key]


def _mean(name: str) -> Column:
    """Return the mean of a group, summed in the order of the values, whatever the partitions."""
    values = F.array_sort(F.collect_list(name))
    return F.aggregate(values, F.lit(0.0), lambda total, value: total + value) / F.size(values)


def _rows(contract: Contract, run: Run) -> list[dict[str, Any]]:
    return run.read(contract).toArrow().to_pylist()


STAGE = Stage(
    name="experiment_report",
    run=experiment_report,
    settings=lambda config: None,
    needs=lambda config: ("experiment",),
    view=True,
)
