"""aggregate: one order of the most rated items that contradicts the users' ratings least."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rank.config import Config
from spark_rank.frames.majority_counts import rating_majorities
from spark_rank.preference import Aggregation, aggregate_majorities, kemeny_score
from spark_rank.records.results import AggregateFacts
from spark_rank.stages.stage import Stage, StageResult
from spark_rank.store.run import Run
from spark_rank.tables.contract import arrow_schema
from spark_rank.tables.contracts import AGGREGATE, BLOCKS, ITEMS, MAJORITIES, TITLES
from spark_rank.wording import count_of

Row = dict[str, Any]

# sums of integers do not depend on the order of addition, unlike those of floats
_FIXED_POINT = 1 << 24


def aggregate(config: Config, spark: SparkSession, run: Run) -> StageResult:
    """Count pairwise majorities in Spark, then order the few items on the driver."""
    settings = config.aggregate
    items = _most_rated(run, settings.items)
    dense = np.array([item["item"] for item in items], dtype=np.int64)
    majorities = rating_majorities(run.read(BLOCKS), dense)
    aggregation = aggregate_majorities(
        majorities, settings.method, seed=config.seed, time_limit=settings.time_limit
    )
    by_mean = sorted(range(len(items)), key=lambda row: (-items[row]["mean_rating"], row))
    tables = {
        AGGREGATE.table: run.write(
            AGGREGATE, spark.createDataFrame(_order_table(items, aggregation, by_mean)).coalesce(1)
        ),
        MAJORITIES.table: run.write(
            MAJORITIES, spark.createDataFrame(_majority_table(items, majorities)).coalesce(1)
        ),
    }
    facts = _facts(aggregation, by_mean, majorities)
    return StageResult(
        f"{count_of(len(items), 'item')} by {aggregation.method}: "
        f"{aggregation.score:,.0f} pairwise opinions contradicted, "
        f"at least {aggregation.proven_bound:,.0f} by any order (by mean rating: "
        f"{facts.mean_rating_score:,.0f})",
        tables,
        facts,
    )


def _most_rated(run: Run, limit: int) -> list[Row]:
    """Return the most rated items of the blocks, ties by id; this order breaks later ties too."""
    zipped = F.arrays_zip(F.col("items").alias("item"), F.col("ratings").alias("rating"))
    entries = run.read(BLOCKS).select(F.explode(zipped).alias("entry")).select("entry.*")
    total = F.sum(F.round(F.col("rating").cast("double") * _FIXED_POINT).cast("bigint"))
    counted = entries.groupBy("item").agg(F.count("*").alias("ratings"), total.alias("total"))
    most_rated = (
        counted.join(_named_items(run), "item")
        .orderBy(F.desc("ratings"), "item_id")
        .limit(limit)
        .collect()
    )
    return [
        {**row.asDict(), "mean_rating": row["total"] / _FIXED_POINT / row["ratings"]}
        for row in most_rated
    ]


def _named_items(run: Run) -> DataFrame:
    items = run.read(ITEMS).select("item", "item_id")
    if not run.has(TITLES):
        return items.withColumn("title", F.lit(None).cast("string"))
    return items.join(run.read(TITLES).select("item_id", "title"), "item_id", "left")


def _order_table(items: list[Row], aggregation: Aggregation, by_mean: list[int]) -> pa.Table:
    mean_position = {row: position for position, row in enumerate(by_mean, start=1)}
    rows = [
        {**items[row], "position": position, "mean_position": mean_position[row]}
        for position, row in enumerate(aggregation.order, start=1)
    ]
    return pa.Table.from_pylist(rows, schema=arrow_schema(AGGREGATE.columns))


def _majority_table(items: list[Row], majorities: NDArray[np.int64]) -> pa.Table:
    ids = np.array([item["item_id"] for item in items], dtype=object)
    first, second = np.nonzero(~np.eye(len(ids), dtype=bool))
    columns = {"item_id": ids[first], "over_item_id": ids[second],
               "users": majorities[first, second]}  # fmt: skip
    return pa.table(columns, schema=arrow_schema(MAJORITIES.columns))


def _facts(
    aggregation: Aggregation, by_mean: list[int], majorities: NDArray[np.int64]
) -> AggregateFacts:
    return AggregateFacts(
        method=aggregation.method,
        score=aggregation.score,
        lower_bound=aggregation.lower_bound,
        proven_bound=aggregation.proven_bound,
        gap=aggregation.gap,
        optimal=aggregation.optimal,
        misranked=aggregation.misranked,
        mean_rating_score=kemeny_score(by_mean, majorities),
    )


STAGE = Stage(
    name="aggregate",
    run=aggregate,
    settings=lambda config: config.aggregate,
    needs=lambda config: ("ingest", "prepare"),
)
