"""Generates ratings like Netflix's from a seed: a user's rows depend on (seed, user) alone.

Activity is log-normal (Netflix: median 96, mean 209, maximum 17,653), popularity Zipf-like, and
taste latent. Every user has thresholds that cut his or her utilities into levels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_RANK = 8
_POPULARITY_EXPONENT = 0.8
_QUALITY_SD = 0.45
_TASTE_SD = 0.65
_NOISE_SD = 0.75
# how much users prefer to rate items that they will like
_SELECTION = 0.5
_FIRST_SECOND = 941_000_000  # autumn 1999, as in the Netflix data
_SECONDS = 194_000_000

SCHEMA = pa.schema(
    [
        ("user", pa.string()),
        ("item", pa.string()),
        ("rating", pa.float64()),
        ("timestamp", pa.int64()),
    ]
)


@dataclass(frozen=True)
class Population:
    """The parameters of the generated data set."""

    seed: int
    items: int
    median_ratings: float
    activity_spread: float
    levels: int


@dataclass(frozen=True)
class Catalogue:
    """The items: log popularity, quality and latent factors."""

    log_popularity: FloatArray
    quality: FloatArray
    factors: FloatArray


@lru_cache(maxsize=2)
def catalogue(population: Population) -> Catalogue:
    """Return the items of a population; every worker generates the same ones from the seed."""
    rng = _generator(population.seed, 0)
    ranks = rng.permutation(population.items) + 1.0
    # blockbusters are a little better than the rest
    quality = rng.normal(0.0, _QUALITY_SD, population.items) - 0.15 * np.log(ranks / ranks.mean())
    factors = rng.normal(0.0, 1.0, (population.items, _RANK))
    return Catalogue(-_POPULARITY_EXPONENT * np.log(ranks), quality, factors)


def user_ratings(
    population: Population, user: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return one user's items (distinct), levels 1..levels and timestamps."""
    rng = _generator(population.seed, user + 1)
    items = catalogue(population)
    activity = population.median_ratings * np.exp(rng.normal(0.0, population.activity_spread))
    count = int(np.clip(round(activity), 1, population.items))
    taste = rng.normal(0.0, _TASTE_SD / np.sqrt(_RANK), _RANK)
    appeal = items.quality + items.factors @ taste
    # Gumbel top-k: a draw without replacement with weights exp(log popularity + selection)
    keys = items.log_popularity + _SELECTION * appeal + rng.gumbel(size=population.items)
    chosen = np.sort(np.argpartition(-keys, count - 1)[:count])
    utility = appeal[chosen] + rng.normal(0.0, _NOISE_SD, count)
    levels = np.searchsorted(_thresholds(rng, population.levels), utility) + 1
    start = _FIRST_SECOND + int(rng.integers(0, _SECONDS))
    span = max(1, _FIRST_SECOND + _SECONDS - start)
    return chosen, levels, start + rng.integers(0, span, count)


def generate_batches(
    batches: Iterator[pa.RecordBatch], population: Population
) -> Iterator[pa.RecordBatch]:
    """Turn batches of user numbers (column ``id``) into batches of ratings."""
    for batch in batches:
        for user in batch.column("id").to_pylist():
            items, levels, times = user_ratings(population, user)
            columns = [
                pa.array([str(user + 1)] * len(items), pa.string()),
                pa.array(items + 1).cast(pa.string()),
                pa.array(levels.astype(np.float64)),
                pa.array(times),
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _thresholds(rng: np.random.Generator, levels: int) -> FloatArray:
    """Return ascending cuts, shifted by the user's generosity and scaled by his or her contrast."""
    # evenly spaced from -1.6 to 1.6, so that the middle levels are the most frequent
    cuts = np.linspace(-1.6, 1.6, levels - 1) if levels > 2 else np.zeros(1)
    generosity, contrast = rng.normal(-0.45, 0.4), np.exp(rng.normal(-0.1, 0.3))
    cuts = cuts + rng.normal(0.0, 0.08, levels - 1)
    return np.asarray(np.sort(cuts) * contrast + generosity)


def _generator(seed: int, stream: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=np.array([seed, stream], dtype=np.uint64)))
