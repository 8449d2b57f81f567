"""The order of the buckets in training: the longest first.

Spark starts tasks in the order of their partitions. Long tasks begin early, so that short ones are
left for the end of a stage, when cores run out of tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_rank.config import Config
from spark_rank.config.schema import TrainConfig
from spark_rank.learners.costs import model_cost

# every bucket needs its own scan; after so many buckets, the others are short
_MOST_SCANS = 64
# seconds per user for the baselines alone
_USER = 5e-5


def user_cost(settings: TrainConfig, width: int, n_train: float) -> float:
    """Return about how many seconds a core takes for one user, with all learners."""
    kernels = {"most_kernel": settings.max_kernel_ratings, "landmarks": settings.landmarks}
    models = (model_cost(entry, n_train, width, **kernels) for entry in settings.learners)
    return _USER + sum(models)


def by_cost(config: Config, blocks: DataFrame, buckets: int) -> list[int]:
    """Return all buckets by the time to learn their users, longest first, ties by number.

    One pass over the users' numbers of training ratings.
    """
    sizes = blocks.groupBy("bucket", "n_train").agg(F.count("*").alias("users")).toArrow()
    seconds = bucket_seconds(config, sizes, buckets)
    return [int(bucket) for bucket in np.argsort(-seconds, kind="stable")]


def bucket_seconds(config: Config, sizes: pa.Table, buckets: int) -> NDArray[np.float64]:
    """Return the time for every bucket, from rows ``bucket, n_train, users`` in any order."""
    rows = sizes.sort_by([("bucket", "ascending"), ("n_train", "ascending")])
    n_train, place = np.unique(rows.column("n_train").to_numpy(), return_inverse=True)
    each = np.array([user_cost(config.train, config.features.width, float(m)) for m in n_train])
    seconds = each[place] * rows.column("users").to_numpy()
    sums = np.bincount(rows.column("bucket").to_numpy(), seconds, buckets)
    return sums.astype(np.float64)  # without rows, the sums are whole numbers


def in_order(blocks: DataFrame, buckets: Sequence[int]) -> DataFrame:
    """Return the blocks of some buckets, whose tasks begin in this order."""
    apart = [blocks.where(F.col("bucket") == bucket) for bucket in buckets[:_MOST_SCANS]]
    others = buckets[_MOST_SCANS:]
    if others:
        apart.append(blocks.where(F.col("bucket").isin(*others)))
    return reduce(DataFrame.unionByName, apart)
