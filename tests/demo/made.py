"""Pages of made-up items, with the numbers that tests compare them with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spark_rank.demo.contents import Choices, Contents, Uncertainty
from spark_rank.demo.quantised import Quantised
from spark_rank.demo.scale import DemoScale
from spark_rank.learners import MPRank
from spark_rank.users.rank_scale import RankScale

PARAMS: dict[str, Any] = MPRank(C=1.0, ridge="fixed", growth=0.0067).get_params()
WHOLE = (1.0, 2.0, 3.0, 4.0, 5.0)
# what the page saves of a rating each: test_demo_numbers.py holds the page to it
CSV_LEVELS = (0.2, 0.4, 0.6, 0.8, 1.0)
CSV_IDS = ["plain", 'with "quotes", commas', " blanks ", "ünï", "=1+1"]
RATINGS_CSV = (
    "user,item,rating\nme,plain,0.2\n"
    'me,"with ""quotes"", commas",0.4\nme," blanks ",0.6\nme,ünï,0.8\nme,=1+1,1\n'
)
HALF = tuple(level / 2 for level in range(1, 11))


def scale_of(levels: Sequence[float]) -> DemoScale:
    """Return the scale of a run with these levels, which are stored in single precision."""
    scale = RankScale(tuple(float(np.float32(level)) for level in levels))
    return DemoScale.of_levels(scale.levels, tuple(scale.thresholds().tolist()))


def made_contents(
    size: int = 60,
    width: int = 6,
    *,
    scale: DemoScale | None = None,
    titles: Sequence[str | None] | None = None,
    with_prior: bool = True,
    seed: int = 0,
    **changes: Any,
) -> Contents:
    """Return contents of random numbers, the most rated items first."""
    rng = np.random.default_rng(seed)
    names = [f"Film {number:04d} ({1930 + number % 90})" for number in range(size)]
    contents = Contents(
        run_id="made",
        learner="mprank_linear",
        noun="films",
        item_ids=[f"i{number}" for number in rng.permutation(size)],
        titles=names if titles is None else titles,
        n_ratings=np.sort(rng.integers(1, 5000, size))[::-1].astype(np.int64),
        listed=rng.random(size) < 0.9,
        left_out=0,
        features=Quantised.of(rng.normal(0, 0.6, (size, width))),
        offset=rng.normal(0, 0.4, size),
        prior=Quantised.of(rng.normal(0, 0.1, (size, width))) if with_prior else None,
        prior_ends=rng.normal(0, 0.2, (2, width)),
        scale=scale_of(WHOLE) if scale is None else scale,
        params=PARAMS,
        min_ratings=3,
        uncertainty=Uncertainty(0.8, 1e-4, 100, 2000),
    )
    return replace(contents, **changes)


def made_choices(size: int, rank: int) -> Choices:
    """Return random numbers of choices that single precision holds."""
    rng = np.random.default_rng(11)
    decoder, encoder = (
        Quantised(
            rng.integers(-20_000, 20_000, (size, rank)).astype(np.int16), np.full(rank, 2.0**-15)
        )
        for _ in range(2)
    )
    return Choices(3.0, decoder, encoder, rng.integers(-9, 9, (2, rank)) / 16.0)


def start_of(contents: Contents, rated: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return every item's score before learning, as the table's contract has it."""
    if contents.prior is None:
        return contents.offset
    constant, logarithm = contents.prior_ends
    weights = contents.prior.numbers()[rated].sum(axis=0) / np.sqrt(len(rated))
    weights = weights + constant + logarithm * np.log(len(rated))
    return np.asarray(contents.offset + contents.features.numbers() @ weights)


def naive_variance(
    features: NDArray[np.float64], rated: Sequence[int], ridge: float
) -> NDArray[np.float64]:
    """Return the posterior variance of all scores, by the inverse of the whole precision.

    Weights have precision `ridge`, the constant has none, ratings have precision 1.
    """
    extended = np.column_stack([features, np.ones(len(features))])
    known = extended[list(rated)]
    precision = known.T @ known + ridge * np.diag([1.0] * features.shape[1] + [0.0])
    return np.asarray(np.diag(extended @ np.linalg.inv(precision) @ extended.T))
