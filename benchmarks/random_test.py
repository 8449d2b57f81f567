"""The default model beside ALS on items shown at random, where every rating is known.

``python benchmarks/random_test.py jester-data-1.csv.gz u.data`` makes test beds of two kinds with
`spark_rank.data.choices`: (a) Jester's users who rated all jokes, ratings to learn from drawn with
probabilities that grow with the rating; (b) MovieLens-100K completed by a neighbour model. For
every strength of choice it prints a table in Markdown. *Chosen* are held-out ratings drawn as those
to learn from, *shown* are items at random among the others.

ALS (the objective of MLlib's, `spark_rank.experiments.alternating`) has, in every column, the best
of its grid on the test itself, which favours it: no single setting reaches the whole row. Our
models have their default settings, and see no test rating. "as shown" takes the scores through the
curve of `features.propensities: fitted`. MSD and misranking are means over users, RMSE is over all
ratings, clipped to the scale; *error* is the mean of prediction minus rating.
"""

from __future__ import annotations

import gzip
import sys
import time
from collections.abc import Iterator

import numpy as np
from threadpoolctl import threadpool_limits

from spark_rank.config.schema import FACTOR_PARAMS, FeaturesConfig
from spark_rank.data.choices import Choices, by_level, by_liking, choose, completed
from spark_rank.experiments.alternating import als_scores
from spark_rank.experiments.peers import Split
from spark_rank.features.factor_model import SampledRatings, fit_factor_model
from spark_rank.features.shown import learn_shown, propensities, shown_ratings
from spark_rank.learners import MPRank
from spark_rank.metrics import batch_metrics
from spark_rank.records.features import ShownFacts

SEED = 0
STRENGTHS, DECAYS = (0.0, 0.5, 1.0, 1.5), (1.0, 0.5, 0.25)
RANKS, RIDGES = (5, 20), (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
MOST_WEIGHT = 10.0
NAMES = ("msd", "misranking", "rmse", "error")
Values = dict[str, float]
Scores = tuple[np.ndarray, np.ndarray]


def jester(path: str) -> np.ndarray:
    """Return the ratings of the users who rated all jokes."""
    with gzip.open(path, "rt") as lines:
        rows = [[float(cell) for cell in line.split(",")] for line in lines]
    return np.array([row[1:] for row in rows if row[0] == len(row) - 1])


def beds(jokes: str, films: str) -> Iterator[tuple[str, Choices, tuple[float, float], float]]:
    """Yield a name, the choices, the scale, and the unit of ALS's ridge."""
    complete = jester(jokes)
    for strength in STRENGTHS:
        drawn = choose(
            complete, by_liking(complete, strength, 0.25), seed=SEED, shown=20, held_out=0.2
        )
        yield f"(a) Jester, strength {strength:g}", drawn, (-10.0, 10.0), 5.0
    users, items, ratings = np.loadtxt(films, dtype=np.int64, usecols=(0, 1, 2)).T
    complete = completed(users - 1, items - 1, ratings.astype(float), seed=SEED)
    for decay in DECAYS:
        drawn = choose(
            complete, by_level(complete, decay, 0.0625), seed=SEED, shown=50, held_out=0.2
        )
        yield f"(b) MovieLens-100K completed, decay {decay:g}", drawn, (1.0, 5.0), 1.0


def listed(drawn: Choices, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return items, ratings and ends; a user's items are in a random order."""
    rng = np.random.default_rng(SEED)
    items = [rng.permutation(np.flatnonzero(own)) for own in mask]
    ends = np.concatenate([[0], np.cumsum([len(own) for own in items])]).astype(np.int64)
    ratings = [drawn.ratings[user, own] for user, own in enumerate(items)]
    return np.concatenate(items).astype(np.int32), np.concatenate(ratings), ends


def splits(drawn: Choices) -> tuple[Split, Split]:
    """Return the training ratings with the chosen ones held out, and with the shown ones."""
    few = drawn.training.sum(axis=1) < 3
    masks = [np.where(few[:, None], False, mask)
             for mask in (drawn.training, drawn.chosen, drawn.shown)]  # fmt: skip
    train, chosen, shown = (listed(drawn, mask) for mask in masks)
    n_items = drawn.ratings.shape[1]
    return Split(*train, *chosen, n_items), Split(*train, *shown, n_items)


def measured(split: Split, scores: np.ndarray, scale: tuple[float, float]) -> Values:
    found = batch_metrics(
        scores, split.test_ratings, split.test_ends,
        on_rating_scale=np.ones(len(split.test_ends) - 1, bool), top=10, relevant_from=4.0,
        epsilon=0.25, levels=None,
    )  # fmt: skip
    error = np.clip(scores, *scale) - split.test_ratings
    return {
        "msd": float(np.nanmean(found["msd"])),
        "misranking": float(np.nanmean(found["misranking"])),
        "rmse": float(np.sqrt(np.mean(error**2))),
        "error": float(error.mean()),
    }


def tuned_als(split: Split, scale: tuple[float, float], unit: float) -> Values:
    """Return the best value of every metric over the grid."""
    tried = [
        measured(
            split, als_scores(split, rank=rank, ridge=ridge * unit, rounds=10, seed=SEED), scale
        )
        for rank in RANKS
        for ridge in RIDGES
    ]
    best = {name: min(values[name] for values in tried) for name in NAMES[:-1]}
    return {**best, "error": min(tried, key=lambda values: values["rmse"])["error"]}


def our_scores(
    tests: tuple[Split, Split], *, choices: bool, facts: ShownFacts | None = None
) -> Scores:
    """Return the default model's scores of both tests; `facts` give weights to learn with."""
    split = tests[0]
    settings = FeaturesConfig()
    sample = SampledRatings(split.items, split.ratings, split.ends, split.n_items)
    model = fit_factor_model(
        sample, rank=settings.rank, rounds=settings.rounds, seed=SEED, choices=choices
    )
    features, choice = model.whitened()
    found = tuple(np.empty(len(test.test_items)) for test in tests)
    for user in range(len(split.ends) - 1):
        own = slice(split.ends[user], split.ends[user + 1])
        items, ratings = split.items[own], split.ratings[own]
        if len(items) == 0:
            continue
        n = len(items)
        expected = choice[items].sum(axis=0) / np.sqrt(n) + choice[-2] + choice[-1] * np.log(n)
        offset = model.bias + features @ expected
        weights = None if facts is None else weights_of(facts, ratings)
        learner = MPRank(**FACTOR_PARAMS).fit(
            features[items], ratings, offset=offset[items], sample_weight=weights
        )
        for scores, test in zip(found, tests, strict=True):
            place = slice(test.test_ends[user], test.test_ends[user + 1])
            targets = test.test_items[place]
            if len(targets) == 0:
                continue
            scores[place] = learner.decision_function(features[targets], offset[targets])
    return found[0], found[1]


def weights_of(facts: ShownFacts, ratings: np.ndarray) -> np.ndarray:
    """Return the weights of `train.weights: propensity`."""
    weights = 1.0 / propensities(facts, ratings, 1)
    weights = np.minimum(weights, MOST_WEIGHT * np.median(weights))
    return weights / weights.mean()


def ours(tests: tuple[Split, Split], facts: dict[bool, ShownFacts]) -> Iterator[tuple[str, Scores]]:
    for choices, name in ((True, "`features.choices: prior`, the default"),
                          (False, "`features.choices: none`")):  # fmt: skip
        plain = our_scores(tests, choices=choices)
        yield name, plain
        shown = [shown_ratings(facts[choices], scores) for scores in plain]
        yield f"{name}, as shown", (shown[0], shown[1])
    yield "`train.weights: propensity`", our_scores(tests, choices=True, facts=facts[True])


def learned_facts(split: Split, choices: bool) -> ShownFacts:
    settings = FeaturesConfig()
    sample = SampledRatings(split.items, split.ratings, split.ends, split.n_items)
    return learn_shown(
        sample, rank=settings.rank, rounds=settings.rounds, seed=SEED, choices=choices
    )


def row(name: str, shown: Values, chosen: Values) -> str:
    cells = [f"{values[column]:.4g}" for values in (shown, chosen) for column in NAMES]
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    for name, drawn, scale, unit in beds(*sys.argv[1:3]):
        started = time.perf_counter()
        chosen, shown = splits(drawn)
        mean = len(chosen.items) / len(chosen.ends)
        facts = {choices: learned_facts(chosen, choices) for choices in (True, False)}
        extremes = drawn.propensities.max() / drawn.propensities.min()
        known = np.log(extremes) / np.ptp(drawn.ratings)
        print(
            f"\n{name}: {mean:.0f} ratings a user; mean rating {drawn.ratings.mean():.2f}, chosen "
            f"{chosen.ratings.mean():.2f}; log propensity a unit {known:.3f}, found "
            f"{facts[True].liking:.3f}\n"
        )
        print(
            "| | shown: MSD | misranking | RMSE | error | chosen: MSD | misranking | RMSE | error |"
        )
        print("|---|---|---|---|---|---|---|---|---|")
        best = [tuned_als(test, scale, unit) for test in (shown, chosen)]
        print(row("ALS, each figure tuned on its test", *best))
        for label, scores in ours((chosen, shown), facts):
            values = [measured(test, own, scale)
                      for test, own in ((shown, scores[1]), (chosen, scores[0]))]  # fmt: skip
            print(row(label, *values), flush=True)
        print(f"\n{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    with threadpool_limits(1, user_api="blas"):
        main()
