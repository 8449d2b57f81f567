"""Feature vectors of items that came with the data: checked, scaled, in the order of the items."""

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
    """How features are shifted and stretched: ``(x − mean) / spread``."""

    mean: NDArray[np.float64]
    spread: NDArray[np.float64]

    def apply(self, features: Column) -> Column:
        """Return a vector scaled."""
        factors = F.arrays_zip(_literals(self.mean), _literals(self.spread))
        scaled = F.zip_with(features, factors, lambda x, f: (x.cast("double") - f["0"]) / f["1"])
        return F.transform(scaled, lambda x: x.cast("float"))


@dataclass(frozen=True)
class VectorFacts:
    """What a table of vectors is: how long they are, and how many items have one."""

    width: int
    matched: int
    items: int

    @property
    def missing(self) -> int:
        """Return the number of items without a vector."""
        return self.items - self.matched


def read_vectors(spark: SparkSession, files: list[str], key: str) -> DataFrame:
    """Return ``item_id, features`` of Parquet files, or raise `InputDataError` naming `key`."""
    frame = spark.read.parquet(*[literal(file) for file in files])
    kinds = {field.name: field.dataType for field in frame.schema}
    for name in ("item_id", "features"):
        if name not in kinds:
            raise InputDataError(
                f"{key}: there is no column {name!r}, only {', '.join(kinds)}: the file needs "
                "item_id and features (an array of numbers)"
            )
    features = kinds["features"]
    if not isinstance(features, ArrayType) or not isinstance(features.elementType, NumericType):
        raise InputDataError(
            f"{key}: column 'features' is {features.simpleString()}: it must be an array of numbers"
        )
    return frame.select(
        F.col("item_id").cast("string"), F.col("features").cast("array<float>").alias("features")
    )


def match_vectors(items: DataFrame, given: DataFrame, key: str) -> tuple[DataFrame, VectorFacts]:
    """Return ``item, item_id, features`` for every item (null without a vector), and its facts.

    Raises `InputDataError` for vectors that cannot be features: of several lengths, with values
    that are no finite numbers, two of one item, or none for any item.
    """
    finite = F.forall("features", lambda x: x.isNotNull() & ~F.isnan(x) & (F.abs(x) < np.inf))
    sound = F.coalesce(finite & F.col("item_id").isNotNull(), F.lit(False))
    size = F.size("features")
    least, most, bad = given.agg(F.min(size), F.max(size), F.count_if(~sound)).head() or (0, 0, 0)
    if bad:
        raise InputDataError(
            f"{key}: {count_of(bad, 'row')} without item_id, without features, or with a "
            "feature that is no finite number: mend or remove them"
        )
    if least != most or not most:
        raise InputDataError(
            f"{key}: feature vectors have {least or 0} to {most or 0} entries: all need as many, "
            "at least one"
        )
    twice = given.groupBy("item_id").count().where("count > 1").orderBy("item_id").head()
    if twice is not None:
        raise InputDataError(f"{key}: item {twice['item_id']!r} has {twice['count']} vectors")
    matched = items.join(given, "item_id", "left").select("item", "item_id", "features")
    found, total = matched.agg(F.count("features"), F.count("*")).head() or (0, 0)
    if found == 0:
        example = given.orderBy("item_id").head()
        raise InputDataError(
            f"{key}: none of the {count_of(total, 'item')} has a vector; the file's ids are like "
            f"{example['item_id'] if example else ''!r}: are they those of the ratings?"
        )
    return matched, VectorFacts(most, found, total)


def standard_scale(vectors: DataFrame, facts: VectorFacts) -> Scale:
    """Return the means and standard deviations (population; 1 where it is 0) of the vectors.

    `vectors` has ``item, features``, null where there is none. O(items · width) in one pass, a
    chunk at a time in the order of the items: the same bits however they are partitioned.
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
    """Return ``item, item_id, features`` scaled; items without a vector get zeros."""
    features = F.col("features") if scale is None else scale.apply(F.col("features"))
    zeros = F.array_repeat(F.lit(0.0).cast("float"), facts.width)
    return vectors.withColumn("features", F.coalesce(features, zeros))


def sorted_parts(vectors: DataFrame, facts: VectorFacts) -> DataFrame:
    """Return the rows in the order of the items, in parts of about the size of a chunk."""
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
