"""Learns item features by a factor model, from the training ratings of a sample of users."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from threadpoolctl import threadpool_limits

from spark_rank.features.factor_model import FactorModel, SampledRatings, fit_factor_model
from spark_rank.features.list_columns import flat_lists

_BUCKETS = 1 << 30


@dataclass(frozen=True)
class Factors:
    """The results of a factor model that the stage `features` keeps."""

    matrix: NDArray[np.float32]
    offset: NDArray[np.float64]
    prior: NDArray[np.float32]
    n_users: int
    n_ratings: int
    noise: float
    spread: float


def sample_users(
    blocks: DataFrame, *, n_items: int, share: float, max_ratings: int, max_users: int, seed: int
) -> SampledRatings:
    """Return the training ratings of a hash sample of users, in the order of the hash.

    The share is lowered if the sample would have more than about `max_ratings` or `max_users`.
    At a given share, whether a user is in the sample does not depend on other users or items.
    """
    blocks = blocks.where("n_train > 0")
    users, total = blocks.agg(F.count("*"), F.sum("n_train")).head() or (0, 0)
    share = min(share, max_ratings / max(total or 0, 1), max_users / max(users, 1))
    chosen = (
        drawn_users(blocks, share, seed)
        .select(
            "draw",
            "user_id",
            F.slice("items", 1, F.col("n_train")).alias("items"),
            F.slice("ratings", 1, F.col("n_train")).alias("ratings"),
        )
        .orderBy("draw", "user_id")
        .toArrow()
    )
    return _as_arrays(chosen, n_items)


def drawn_users(blocks: DataFrame, share: float, seed: int, *, above: float = 0.0) -> DataFrame:
    """Return the blocks of a hash sample of users, with the hash as ``draw``.

    The sample of share `above`, which is part of it, is left out.
    """
    draw = F.pmod(F.xxhash64(F.lit(seed), F.lit("factors"), "user_id"), F.lit(_BUCKETS))
    first, last = round(above * _BUCKETS), round(share * _BUCKETS)
    return blocks.withColumn("draw", draw).where(F.col("draw").between(first, last - 1))


def learn_factors(
    data: SampledRatings,
    *,
    rank: int,
    rounds: int,
    seed: int,
    choices: bool = True,
    progress: Callable[[int, float], None] | None = None,
) -> Factors:
    """Fit the model and return its factors whitened, with noise 1, as learners use them.

    Ridge regression on these features with ridge 1, starting from offset and prior weights, is
    then the posterior mean under the model. Kernel widths are in the same units: `spread` is the
    mean squared distance of an item from the mean of all items.
    """
    model: FactorModel = fit_factor_model(
        data, rank=rank, rounds=rounds, seed=seed, choices=choices, progress=progress
    )
    with threadpool_limits(1, user_api="blas"):
        features, prior = model.whitened()
    return Factors(
        matrix=features.astype(np.float32),
        offset=model.bias,
        prior=prior.astype(np.float32),
        n_users=data.n_users,
        n_ratings=len(data.ratings),
        noise=model.noise,
        spread=float(features.var(axis=0).sum()),
    )


def _as_arrays(chosen: pa.Table, n_items: int) -> SampledRatings:
    items, ends = flat_lists(chosen, "items")
    ratings, _ = flat_lists(chosen, "ratings")
    return SampledRatings(items.astype(np.int32), ratings.astype(np.float64), ends, n_items)
