"""The small tables of ensembles: online curves, metrics over trials, diversity."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_rank.config.schema import EnsembleLearnerConfig
from spark_rank.metrics import describe, t_interval_of
from spark_rank.store.run import Run
from spark_rank.tables.contract import Contract, arrow_schema
from spark_rank.users.ensembles import CURVE_ROUNDS

Row = dict[str, Any]

# sums of integers do not depend on the order of addition, unlike those of floats
_FIXED_POINT = 1 << 30
TRIAL_METRICS = ("rank_loss", "exact_rank", "misranking", "online_loss")


def write_rows(run: Run, contract: Contract, rows: Sequence[Row]) -> int:
    """Write a small table as one file."""
    table = pa.Table.from_pylist(list(rows), schema=arrow_schema(contract.columns))
    return run.write(contract, run.spark.createDataFrame(table).coalesce(1))


def user_curve(models: DataFrame, confidence: float) -> list[Row]:
    """Return the mean curve of every ensemble over its users, from sums of whole numbers."""
    exploded = models.select("learner", F.posexplode("curve").alias("point", "loss"))
    loss = F.col("loss").cast("decimal(19,0)")
    sums = exploded.groupBy("learner", "point").agg(
        F.count("*").alias("n"), F.sum("loss").alias("total"), F.sum(loss * loss).alias("squares")
    )
    return [
        curve_point(
            row["learner"], int(CURVE_ROUNDS[row["point"]]), row["n"], row["total"],
            int(row["squares"]), confidence,
        )
        for row in sorted(sums.collect(), key=lambda row: (row["learner"], row["point"]))
    ]  # fmt: skip


def trial_curves(curves: Mapping[str, Iterable[Row]], confidence: float) -> list[Row]:
    """Return the mean curve of every learner over its trials.

    `curves` has a row per trial, with ``rounds`` and the ``losses`` up to each of them.
    """
    rows = []
    for learner, trials in curves.items():
        by_round: dict[int, list[int]] = {}
        for trial in trials:
            for number, loss in zip(trial["rounds"], trial["losses"], strict=True):
                by_round.setdefault(number, []).append(loss)
        for number, losses in sorted(by_round.items()):
            squares = sum(loss * loss for loss in losses)
            rows.append(curve_point(learner, number, len(losses), sum(losses), squares, confidence))
    return rows


def curve_point(
    learner: str, number: int, n: int, total: int, squares: int, confidence: float
) -> Row:
    """Return a point of the curve, from the sum and the sum of squares of `n` losses."""
    mean = total / (n * number)
    row: Row = {"learner": learner, "round": number, "samples": n, "online_loss": mean}
    if n < 2:
        return row
    variance = (Fraction(squares) - Fraction(total * total, n)) / ((n - 1) * number**2)
    interval = t_interval_of(mean, math.sqrt(variance), n, confidence)
    return row | {"ci_low": interval.low, "ci_high": interval.high}


def trial_metrics(outcomes: Mapping[str, Sequence[Row]], confidence: float) -> list[Row]:
    """Return the distribution over trials of every learner's metrics."""
    rows = []
    for learner, trials in outcomes.items():
        for metric in TRIAL_METRICS:
            values = np.array([trial[metric] for trial in trials], dtype=np.float64)
            summary, defined = describe(values, level=confidence), values[~np.isnan(values)]
            row: Row = {"learner": learner, "metric": metric, "trials": summary.users,
                        "mean": summary.mean, "sd": summary.sd}  # fmt: skip
            if summary.users:
                row |= {"least": float(defined.min()), "greatest": float(defined.max())}
            if summary.t_interval is not None:
                row |= {"ci_low": summary.t_interval.low, "ci_high": summary.t_interval.high}
            rows.append(row)
    return rows


def diversity(models: DataFrame, entries: Sequence[EnsembleLearnerConfig]) -> list[Row]:
    """Return how much members differ, as means over users or trials, in the order of `entries`."""
    learned = models.where("status = 'learned'").groupBy("learner")
    counts = ("presented", "correct", "updates")
    means = [F.avg(_to_fixed_point(name)).alias(name) for name in ("angle", "disagreement")]
    sums = [F.sum(_array_sum(f"member_{name}")).alias(name) for name in counts]
    by_learner = {
        row["learner"]: row
        for row in learned.agg(F.count("*").alias("samples"), *means, *sums).collect()
    }
    rows = []
    for entry in entries:
        if entry.label in by_learner:
            totals, n_members = by_learner[entry.label], entry.n_members
            member_runs = totals["samples"] * n_members
            rows.append({
                "learner": entry.label, "combine": entry.combine, "sampling": entry.sampling,
                "tau": entry.tau if entry.sampling == "bernoulli" else None,
                "n_members": n_members, "samples": totals["samples"], "prank_passes": n_members,
                **{name: _from_fixed_point(totals[name]) for name in ("angle", "disagreement")},
                **{name: totals[name] / member_runs for name in counts},
            })  # fmt: skip
    return rows


def _to_fixed_point(name: str) -> Column:
    """Return a column as whole numbers, so that sums do not depend on the order of rows."""
    return F.round(F.col(name) * _FIXED_POINT).cast("decimal(38,0)")


def _from_fixed_point(value: Any) -> float | None:
    return None if value is None else float(value) / _FIXED_POINT


def _array_sum(name: str) -> Column:
    return F.aggregate(name, F.lit(0).cast("bigint"), lambda total, n: total + n)
