"""Reads given feature vectors of items: checks, scales and sorts them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, NumericType

from spark_rank.errors import InputDataError
from spark_rank.features.list_columns import flat_lists
from spark_rank.session.filesystem import literal
from spark_rank.wording import count_of

_CHUNK_BYTES = 1 << 26


@dataclass(frozen=True)
class Scale:
    """The standardisation of features: ``(x − mean) / spread``."""

    mean: NDArray[np.float64]
    spread: NDArray[np.float64]

    def apply(self, features: Column) -> Column:
        """Return the scaled vector."""
        factors = F.arrays_zip(_literals(self.mean), _literals(self.spread))
        scaled = F.zip_with(features, factors, lambda x, f: (x.cast("double") - f["0"]) / f["1"])
        return F.transform(scaled, lambda x: x.cast("float"))


@dataclass(frozen=True)
class VectorFacts:
    """Facts about a table of vectors: their length, and how many items have one."""

    width: int
    matched: int
    items: int

    @property
    def missing(self) -> int:
        """Return the number of items without a vector."""
        return self.items - self.matched


def read_vectors(spark: SparkSession, files: list[str], key: str) -> DataFrame:
    """Return ``item_id, features`` of Parquet files; an `InputDataError` names the key `key`."""
    frame = spark.read.parquet(*[literal(file) for file in files])
    types = {field.name: field.dataType for field in frame.schema}
    for name in ("item_id", "features"):
        if name not in types:
            raise InputDataError(
                f"{key}: the file has no column {name!r}, only {', '.join(types)}: it needs "
                "item_id and features (an array of numbers)"
            )
    features = types["features"]
    if not isinstance(features, ArrayType) or not isinstance(features.elementType, NumericType):
        raise InputDataError(
            f"{key}: column 'features' is {features.simpleString()}: make it an array of numbers"
        )
    return frame.select(
        F.col("item_id").cast("string"), F.col("features").cast("array<float>").alias("features")
    )


def match_vectors(items: DataFrame, vectors: DataFrame, key: str) -> tuple[DataFrame, VectorFacts]:
    """Return ``item, item_id, features`` of every item (null without a vector), and the facts.

    Raises `InputDataError` if vectors differ in length, have values that are not finite, if an
    item has two vectors, or if no item has one.
    """
    finite = F.forall("features", lambda x: x.isNotNull() & ~F.isnan(x) & (F.abs(x) < np.inf))
    is_valid = F.coalesce(finite & F.col("item_id").isNotNull(), F.lit(False))
    size = F.size("features")
    shortest, longest, n_bad = vectors.agg(
        F.min(size), F.max(size), F.count_if(~is_valid)
    ).head() or (0, 0, 0)
    if n_bad:
        raise InputDataError(
            f"{key}: {count_of(n_bad, 'row')} without item_id, without features, or with a "
            "feature that is not finite: correct or remove them"
        )
    if shortest != longest or not longest:
        raise InputDataError(
            f"{key}: feature vectors have {shortest or 0} to {longest or 0} entries: all must have "
            "the same number, at least one"
        )
    repeated = vectors.groupBy("item_id").count().where("count > 1").orderBy("item_id").head()
    if repeated is not None:
        raise InputDataError(
            f"{key}: item {repeated['item_id']!r} has {repeated['count']} vectors: keep one"
        )
    matched = items.join(vectors, "item_id", "left").select("item", "item_id", "features")
    n_matched, total = matched.agg(F.count("features"), F.count("*")).head() or (0, 0)
    if n_matched == 0:
        example = vectors.orderBy("item_id").head()
        raise InputDataError(
            f"{key}: none of the {count_of(total, 'item')} has a vector: the file's ids, such as "
            f"{example['item_id'] if example else ''!r}, must be those of the ratings"
        )
    return matched, VectorFacts(longest, n_matched, total)


def standard_scale(vectors: DataFrame, facts: VectorFacts) -> Scale:
    """Return the means and standard deviations (population; 1 instead of 0) of the vectors.

    `vectors` has ``item, features``, null without a vector. It takes O(items · width) in one pass
    over chunks in the order of the items, so the bits do not depend on partitions.
    """
    count, mean, squares = 0, np.zeros(facts.width), np.zeros(facts.width)
    for _, chunk in chunks(vectors.where(F.col("features").isNotNull()), facts):
        n, part = len(chunk), chunk.astype(np.float64)
        if n == 0:
            continue
        difference = part.mean(axis=0) - mean
        squares += part.var(axis=0) * n + difference**2 * (count * n / (count + n))
        mean += difference * (n / (count + n))
        count += n
    spread = np.sqrt(squares / count)
    return Scale(mean, np.where(spread > 0.0, spread, 1.0))


def scaled(vectors: DataFrame, facts: VectorFacts, scale: Scale | None) -> DataFrame:
    """Return ``item, item_id, features`` with scaled features; without a vector, zeros."""
    features = F.col("features") if scale is None else scale.apply(F.col("features"))
    zeros = F.array_repeat(F.lit(0.0).cast("float"), facts.width)
    return vectors.withColumn("features", F.coalesce(features, zeros))


def sorted_parts(vectors: DataFrame, facts: VectorFacts) -> DataFrame:
    """Return the rows sorted by item, in partitions of about the size of a chunk."""
    parts = -(-facts.items // _chunk_rows(facts))
    return vectors.repartitionByRange(parts, "item").sortWithinPartitions("item")


def chunks(
    vectors: DataFrame, facts: VectorFacts
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
    """Yield item numbers and features of ``item, features``, in the order of the items."""
    size = _chunk_rows(facts)
    for start in range(0, facts.items, size):
        within = (F.col("item") >= start) & (F.col("item") < start + size)
        table: pa.Table = vectors.where(within).select("item", "features").orderBy("item").toArrow()
        values, _ = flat_lists(table, "features")
        yield table.column("item").to_numpy(), values.reshape(-1, facts.width)


def _chunk_rows(facts: VectorFacts) -> int:
    return max(_CHUNK_BYTES // (4 * facts.width), 1)


def _literals(values: NDArray[np.float64]) -> Column:
    return F.lit(values.tolist()).cast("array<double>")
