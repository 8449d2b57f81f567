"""Numbers original ids with dense integers, which do not depend on partitions."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

# never change it: the dense numbers depend on it
_BUCKETS = 256


def number_ids(
    ids: DataFrame,
    id_column: str,
    number_column: str,
    known: DataFrame | None = None,
    *,
    few: bool = False,
) -> DataFrame:
    """Return one row per distinct id with its dense number from 0.

    Ids are spread over a fixed number of hash buckets and numbered bucket by bucket, in the order
    of the ids within a bucket. So a task holds only its bucket, and the numbers depend on the set
    of ids alone. Ids in `known`, an earlier result of this function, keep their numbers, whether
    they occur or not; new ids follow after its last number. With `few` ids the driver numbers
    them: the same numbers, in fewer jobs.
    """
    bucket = F.pmod(F.xxhash64(F.col(id_column)), F.lit(_BUCKETS)).cast("int")
    if few and known is None:
        return _numbered_by_driver(ids.select(id_column, bucket.alias("id_bucket")), number_column)
    distinct = ids.select(id_column).distinct()
    first = 0
    if known is not None:
        known = known.select(id_column, number_column)
        distinct = distinct.join(known, id_column, "left_anti")
        first = known.count()
    distinct = distinct.withColumn("id_bucket", bucket)
    counted = distinct.groupBy("id_bucket").count().collect()
    counts = {row["id_bucket"]: row["count"] for row in counted}
    sizes = [counts.get(number, 0) for number in range(_BUCKETS)]
    starts = F.array(*[F.lit(start) for start in accumulate(sizes[:-1], initial=first)])
    within = F.row_number().over(Window.partitionBy("id_bucket").orderBy(id_column))
    number = F.get(starts, F.col("id_bucket")) + within - 1
    numbered = distinct.select(id_column, number.cast("int").alias(number_column))
    return numbered if known is None else known.unionByName(numbered)


def _numbered_by_driver(ids: DataFrame, number_column: str) -> DataFrame:
    table = ids.toArrow()
    id_column = table.column_names[0]
    # Spark orders strings by their bytes
    keys = {
        (bucket, text.encode(), text)
        for text, bucket in zip(*(column.to_pylist() for column in table.columns), strict=True)
    }
    texts = pa.array([text for *_, text in sorted(keys)], pa.string())
    numbers = pa.array(np.arange(len(texts)), pa.int32())
    return ids.sparkSession.createDataFrame(
        pa.table({id_column: texts, number_column: numbers})
    ).coalesce(1)
