"""Learns item factors by MLlib's ALS, and a prior of users' weights on them, on the executors.

No rating comes to the driver. ALS spreads users and items over the executors. The prior is
estimated in passes over blocks (`user_prior`), which return sums only. The driver holds a row of
factors for every item.

ALS fits the factors to its users' ratings, so these seem to have less noise than the ratings of
other users. Therefore the prior is estimated from users whom ALS has not seen. The user factors of
ALS are not used: ALS shrinks all directions by the same strength, while the prior has a variance
for every direction and uses which items a user rated.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.ml.recommendation import ALS
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from threadpoolctl import threadpool_limits

from spark_rank.errors import InputDataError
from spark_rank.features.factors import Factors, drawn_users
from spark_rank.features.files import (
    MappedFile,
    distribute_local,
    open_array,
    place_of_files,
    publish_array,
)
from spark_rank.features.list_columns import flat_lists
from spark_rank.features.user_prior import UserPrior, UserSums, sums_over_users
from spark_rank.session.workers import by_workers

FloatArray = NDArray[np.float64]

# the share of the sampled users that ALS learns from; the prior is estimated from the others
_SEEN = 0.8
# passes over the other users; one more changes the noise by less than a hundredth
_PASSES = 4
# ratings per block of ALS, and the least and greatest number of blocks. The initial factors of ALS
# depend on the number of blocks, so it must not depend on the cluster
_BLOCK_RATINGS, _LEAST_BLOCKS, _MOST_BLOCKS = 5_000_000, 4, 2000
# bytes of factors that are collected in one job
_COLLECTED = 1 << 28
# items whose features are computed at once
_ROWS_AT_ONCE = 1 << 16
_RATING_ROWS, _SUM_ROWS = "user int, item int, rating float", "sums binary"


@dataclass(frozen=True)
class _Sample:
    """The sampled numbers of users and ratings, the ratings' mean, and `unit`, their deviation."""

    users: int
    ratings: int
    mean: float
    unit: float


@dataclass(frozen=True)
class _Reading:
    """What a worker needs to standardise ratings: item offsets in units, and the sample."""

    offsets: MappedFile
    sample: _Sample

    def lists(
        self, batch: pa.RecordBatch
    ) -> tuple[NDArray[np.int32], FloatArray, NDArray[np.int64]]:
        """Return items, ratings minus mean and offset in units, and the ends of the users."""
        table = pa.Table.from_batches([batch])
        items, ends = flat_lists(table, "items")
        ratings, _ = flat_lists(table, "ratings")
        above = (ratings.astype(np.float64) - self.sample.mean) / self.sample.unit
        return items, above - open_array(self.offsets, place_of_files())[items], ends


def learn_als_factors(
    blocks: DataFrame,
    offsets: FloatArray,
    *,
    rank: int,
    rounds: int,
    regularization: float,
    share: float,
    seed: int,
    progress: Callable[[int, float], None] | None = None,
) -> Factors:
    """Return factors of all items, whitened by the users' prior and in units of the noise.

    They are learned from the training ratings of a hash sample of users; items without a rating in
    the sample get zeros. `progress` is called with the number of every pass over the users and the
    noise. The values do not depend on partitions or the order of rows, except for the last digits
    of ALS's own sums, whose order may differ on a cluster.
    """
    seen = _training_lists(drawn_users(blocks, _SEEN * share, seed))
    others = _training_lists(drawn_users(blocks, share, seed, above=_SEEN * share))
    everyone = _training_lists(drawn_users(blocks, share, seed))
    sample = _sample_of(everyone)
    if seen.isEmpty() or others.isEmpty():  # too few users to split
        seen = others = everyone
    in_units = offsets / sample.unit
    reading = _Reading(_distributed(blocks, "als-offsets", in_units), sample)
    vectors = _als_vectors(
        seen, reading, len(offsets), rank=rank, rounds=rounds, regularization=regularization,
        seed=seed,
    )  # fmt: skip
    file = _distributed(blocks, "als-factors", vectors)
    prior = UserPrior.start(rank + 1)
    # sums in BLAS depend on the number of threads
    with threadpool_limits(1, user_api="blas"):
        for number in range(_PASSES):
            prior = _summed(others, file, reading, prior).prior()
            if progress is not None:
                progress(number + 1, prior.noise * sample.unit**2)
        matrix, expected = whitened_features(vectors, in_units, prior)
    expected *= np.float32(sample.unit)
    return Factors(
        matrix=matrix,
        offset=offsets,
        prior=expected,
        n_users=sample.users,
        n_ratings=sample.ratings,
        noise=prior.noise * sample.unit**2,
        spread=_spread(matrix),
    )


def whitened_features(
    vectors: NDArray[np.float32], offsets: FloatArray, prior: UserPrior
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the matrix and prior of `ItemFeatures`; `vectors` are factors without the 1.

    It goes through the items in blocks, since intermediate values are in double precision.
    """
    n_items, width = len(vectors), vectors.shape[1] + 1
    root, slopes, constants = prior.whitened()
    matrix = np.empty((n_items, width), dtype=np.float32)
    expected = np.empty((n_items + 2, width), dtype=np.float32)
    for first in range(0, n_items, _ROWS_AT_ONCE):
        part = slice(first, min(first + _ROWS_AT_ONCE, n_items))
        rows = np.ones((part.stop - first, width))
        rows[:, 1:] = vectors[part]
        matrix[part] = rows @ root
        expected[part] = rows @ slopes[:-2] + offsets[part, None] * slopes[-2]
    expected[-2], expected[-1] = constants, slopes[-1]
    return matrix, expected


def _spread(matrix: NDArray[np.float32]) -> float:
    """Return the mean squared distance of the rows from their mean, without a copy."""
    middle = matrix.mean(axis=0, dtype=np.float64)
    squares = np.einsum("ij,ij->", matrix, matrix, dtype=np.float64) / max(len(matrix), 1)
    return float(squares - middle @ middle)


def _training_lists(blocks: DataFrame) -> DataFrame:
    lists = [F.slice(name, 1, F.col("n_train")).alias(name) for name in ("items", "ratings")]
    return blocks.where("n_train > 0").select("user", *lists)


def _sample_of(users: DataFrame) -> _Sample:
    row = users.agg(
        F.count("*").alias("users"),
        F.sum(F.size("ratings")).alias("ratings"),
        F.sum(_sum_over_ratings(lambda rating: rating)).alias("total"),
        F.sum(_sum_over_ratings(lambda rating: rating * rating)).alias("squares"),
    ).head()
    if row is None or not row["ratings"]:
        raise InputDataError(
            "features: the sample of users has no training rating: raise features.user_share"
        )
    # rounded to digits that do not depend on the order of summation
    mean = float(f"{row['total'] / row['ratings']:.9g}")
    deviation = float(f"{max(row['squares'] / row['ratings'] - mean**2, 0.0) ** 0.5:.6g}")
    unit = deviation if deviation > 1e-6 * abs(mean) else 1.0
    return _Sample(row["users"], row["ratings"], mean, unit)


def _sum_over_ratings(value: Callable[[Column], Column]) -> Column:
    return F.aggregate("ratings", F.lit(0.0), lambda sum_, r: sum_ + value(r.cast("double")))


def _distributed(blocks: DataFrame, stem: str, array: NDArray[np.generic]) -> MappedFile:
    with tempfile.TemporaryDirectory(prefix="spark-rank-") as folder:
        file = publish_array(Path(folder), stem, array)
        distribute_local(blocks.sparkSession, Path(folder), [file])
    return file


def _als_vectors(
    users: DataFrame,
    reading: _Reading,
    n_items: int,
    *,
    rank: int,
    rounds: int,
    regularization: float,
    seed: int,
) -> NDArray[np.float32]:
    """Return ALS's factors of all items; columns have mean square 1 over the items with factors."""
    blocks = min(max(reading.sample.ratings // _BLOCK_RATINGS, _LEAST_BLOCKS), _MOST_BLOCKS)
    # the order of the ratings decides ALS's last digits
    arranged = users.repartition(blocks, "user").sortWithinPartitions("user")
    ratings = by_workers(arranged, partial(_ratings, reading=reading), _RATING_ROWS)
    model = ALS(
        rank=rank, maxIter=rounds, regParam=regularization, seed=seed, numUserBlocks=blocks,
        numItemBlocks=blocks, userCol="user", itemCol="item", ratingCol="rating",
    ).fit(ratings)  # fmt: skip
    vectors = np.zeros((n_items, rank), dtype=np.float32)
    n_known = 0
    step = max(_COLLECTED // (4 * rank), 1)
    for first in range(0, n_items, step):
        within = F.col("id").between(first, first + step - 1)
        part = model.itemFactors.where(within).toArrow()
        values, _ = flat_lists(part, "features")
        vectors[part.column("id").to_numpy()] = values.reshape(-1, rank)
        n_known += len(part)
    sizes = np.sqrt(np.einsum("ij,ij->j", vectors, vectors, dtype=np.float64) / max(n_known, 1))
    vectors /= np.where(sizes > 0.0, sizes, 1.0).astype(np.float32)
    return vectors


def _ratings(batches: Iterator[pa.RecordBatch], reading: _Reading) -> Iterator[pa.RecordBatch]:
    """Yield a row per rating, the input of ALS."""
    for batch in batches:
        items, targets, ends = reading.lists(batch)
        users = np.repeat(batch.column("user").to_numpy(), np.diff(ends))
        columns = [pa.array(users), pa.array(items), pa.array(targets.astype(np.float32))]
        yield pa.RecordBatch.from_arrays(columns, ["user", "item", "rating"])


def _summed(users: DataFrame, vectors: MappedFile, reading: _Reading, prior: UserPrior) -> UserSums:
    work = partial(_user_sums, file=vectors, reading=reading, prior=prior)
    width = len(prior.constants)
    rows = by_workers(users, work, _SUM_ROWS).toArrow().column("sums")
    parts = (UserSums.unpacked(content.as_py(), width) for content in rows)
    return reduce(UserSums.plus, parts, UserSums.none(width))


def _user_sums(
    batches: Iterator[pa.RecordBatch], file: MappedFile, reading: _Reading, prior: UserPrior
) -> Iterator[pa.RecordBatch]:
    """Yield the sums over the users of a partition, in one row."""
    vectors = open_array(file, place_of_files())
    offsets = open_array(reading.offsets, place_of_files())
    parts = (sums_over_users(vectors, offsets, *reading.lists(batch), prior) for batch in batches)
    total = reduce(UserSums.plus, parts, UserSums.none(len(prior.constants)))
    yield pa.RecordBatch.from_arrays([pa.array([total.packed()], pa.binary())], ["sums"])
