"""OAP, figure 3 and table 2: predicts one rating of every item from the item's other ratings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spark_rank.config.schema import setting
from spark_rank.experiments.data_sets import CYSTIC_FIBROSIS, EACHMOVIE, MOVIELENS_1M, OHSUMED
from spark_rank.experiments.frame import Claim, Curve, Experiment, Need, Result, Study, Unit
from spark_rank.experiments.perceptrons import (
    ONLINE_LOSS,
    PerceptronSettings,
    Place,
    Problem,
    best_is_bpm,
    run_perceptrons,
)
from spark_rank.experiments.rating_set import RatingSet
from spark_rank.experiments.unit_length import to_unit_length

_SOURCE = "Harrington 2003, section 4.2, figure 3 and table 2"
_SHOWN = ("PRank", "PRank averaged")
_JUDGES, _VIEWERS = (CYSTIC_FIBROSIS.name, OHSUMED.name), "ratings"
CENTRED, AS_GIVEN = "centred", "ranks as given"

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class OAPJudgments(PerceptronSettings):
    """Settings of `oap_judgments`."""

    trials: int = setting(500, "draws of the targets and of the test set", at_least=1)
    train_share: float = setting(0.8, "share of the items to learn from", above=0.0, at_most=0.99)
    taus: list[float] = setting([0.3], "probabilities that a member sees an example")


@dataclass(frozen=True)
class OAPRatings(OAPJudgments):
    """Settings of `oap_ratings`."""

    over: int = setting(200, "viewers are those with more ratings than this", at_least=1)


class Examples(NamedTuple):
    """Items in random order: ranks by rater, 0 where missing or drawn as the target."""

    ranks: IntArray
    targets: IntArray


def judgment_units(study: Study) -> Sequence[Unit]:
    """Return a unit per trial and existing data set."""
    return [
        (place, trial)
        for place, name in enumerate(_JUDGES)
        if name in study.data
        for trial in range(study.settings.trials)
    ]


def run_judgments(study: Study, unit: Unit) -> list[Result]:
    """Draw a judge per document; the other judges, in their order, are the features."""
    name, trial = _JUDGES[unit[0]], unit[1]
    data = study.data[name]
    ranks = rank_matrix(data, np.arange(data.n_users))
    judged_by_all = ranks[(ranks > 0).all(axis=1)]
    examples = draw_targets(judged_by_all, study.generator(name, trial))
    others = _close_gaps(examples.ranks).astype(np.float64)
    n_ranks = len(data.levels)
    forms = {CENTRED: others - (1.0 + n_ranks) / 2.0, AS_GIVEN: others}
    return [
        result
        for form, features in forms.items()
        for result in _run(study, features, examples.targets, n_ranks, f"{name}, {form}", unit)
    ]


def rating_units(study: Study) -> Sequence[Unit]:
    """Return a unit per trial; none if no film has two viewers with enough ratings."""
    data = study.data[_VIEWERS]
    viewers = np.flatnonzero(data.n_ratings > study.settings.over)
    if len(rank_matrix(data, viewers)) < 2:
        return []
    return [(0, trial) for trial in range(study.settings.trials)]


def run_ratings(study: Study, unit: Unit) -> list[Result]:
    """Draw a viewer per film; the ratings of all the other viewers are the features."""
    data, (_, trial) = study.data[_VIEWERS], unit
    viewers = np.flatnonzero(data.n_ratings > study.settings.over)
    examples = draw_targets(rank_matrix(data, viewers), study.generator("targets", trial))
    n_ranks = len(data.levels)
    centred = np.where(examples.ranks > 0, examples.ranks - (1.0 + n_ranks) / 2.0, 0.0)
    return _run(study, to_unit_length(centred), examples.targets, n_ranks, "all", unit)


def rank_matrix(data: RatingSet, raters: IntArray) -> IntArray:
    """Return items × raters: the rank, 0 if missing; items with a single rater are left out."""
    missing = np.full(len(raters), np.nan)
    ratings = data.columns_of(raters, np.arange(data.n_items), missing)
    is_rated = ~np.isnan(ratings)
    ranks = np.where(is_rated, 1 + np.searchsorted(data.levels, np.nan_to_num(ratings)), 0)
    return np.asarray(ranks[is_rated.sum(axis=1) > 1], dtype=np.int64)


def draw_targets(ranks: IntArray, rng: np.random.Generator) -> Examples:
    """Shuffle the items and draw one rank of each as its target, with equal probabilities."""
    shuffled = ranks[rng.permutation(len(ranks))]
    drawn = rng.random(len(shuffled))
    is_rated = shuffled > 0
    positions = np.floor(drawn * is_rated.sum(axis=1)).astype(np.int64)
    # the column of the item's rater at this position
    is_drawn = (np.cumsum(is_rated, axis=1) - 1 == positions[:, None]) & is_rated
    columns = is_drawn.argmax(axis=1)
    rows = np.arange(len(shuffled))
    targets = shuffled[rows, columns].copy()
    shuffled[rows, columns] = 0
    return Examples(shuffled, targets)


def _close_gaps(ranks: IntArray) -> IntArray:
    """Return the ranks without the target's column of each row, in the raters' order."""
    return ranks[ranks > 0].reshape(len(ranks), -1)


def _run(
    study: Study, features: FloatArray, ranks: IntArray, n_ranks: int, part: str, unit: Unit
) -> list[Result]:
    n_train = int(study.settings.train_share * len(ranks))
    train, test = slice(None, n_train), slice(n_train, None)
    # without a constant feature Widrow-Hoff has no threshold of its own
    problem = Problem(
        n_ranks, features[train], ranks[train], features[test], ranks[test], with_constant=True
    )
    place = Place(part, unit[1], study.seed, unit[1])
    return run_perceptrons(problem, study.settings, _SHOWN, place)


def _claims_of_judgments(settings: OAPJudgments) -> list[Claim]:
    parts = [f"{name}, {form}" for name in _JUDGES for form in (CENTRED, AS_GIVEN)]
    # by the paper, OAP-BPM only came close to Widrow-Hoff on OHSUMED
    return [
        claim
        for part in parts
        for claim in best_is_bpm(
            settings, part, _SOURCE, of_regressions=not part.startswith(OHSUMED.name)
        )
    ]


def _curve(what: str) -> Curve:
    title = "Average rank loss so far"
    # before about round 20, trials differ more than methods
    return Curve(ONLINE_LOSS, title, what, "rank loss", log_x=True, x_from=20.0)


_SHARED_DEVIATIONS = (
    "The available copy of the paper lacks the details of the set-up and table 2. The share of "
    "test items and the probability that a member sees an example, 0.3, are ours; the statement "
    "that OAP-BPM has the lowest loss is tested.",
    "Widrow-Hoff gets a constant feature, without which it has no threshold. PRank averaged is "
    "ours, and so are the updates by margins: ROMMA, which the paper names as future work, and PA.",
)

JUDGMENTS = Experiment(
    name="oap_judgments",
    title="OAP on relevance judgments",
    source=_SOURCE,
    about=(
        "Documents that several people judged for a query. The judgment of one person, drawn for "
        "every document, is the target; the judgments of the others are the features."
    ),
    settings=OAPJudgments,
    units=judgment_units,
    run_unit=run_judgments,
    needs=lambda settings: [
        Need("cystic fibrosis", (CYSTIC_FIBROSIS,)),
        Need("OHSUMED", (OHSUMED,)),
    ],
    claims=_claims_of_judgments,
    curves=(_curve("document"),),
    deviations=(
        *_SHARED_DEVIATIONS,
        "Whether features were centred is unknown. Both variants are shown: with the middle rank "
        "subtracted, and with the ranks as given.",
    ),
    explanations=(
        "OAP-BPM has the lowest loss of the paper's methods, as published, and a lower one with "
        "centred features. The average of the rules of one PRank is as good with features as "
        "given, and better with centred features.",
    ),
)

RATINGS = Experiment(
    name="oap_ratings",
    title="OAP on ratings",
    source=_SOURCE,
    about=(
        "One rating of every film, drawn at random, is the target; the ratings of all other "
        "viewers are the features."
    ),
    settings=OAPRatings,
    units=rating_units,
    run_unit=run_ratings,
    needs=lambda settings: [Need(_VIEWERS, (EACHMOVIE, MOVIELENS_1M))],
    claims=lambda settings: best_is_bpm(settings, "all", _SOURCE),
    curves=(_curve("film"),),
    deviations=(
        *_SHARED_DEVIATIONS,
        "EachMovie is no longer distributed; without its file the experiment uses MovieLens-1M, "
        "with five levels instead of six. Feature vectors are scaled to length 1.",
    ),
    explanations=(
        "On MovieLens-1M OAP-BPM is far below PRank, as published, but above bagging and above "
        "Widrow-Hoff with small steps. The constant feature of Widrow-Hoff explains this; whether "
        "the paper used one is unknown.",
        "Aggressive ROMMA and PA with steps up to 1 are below the perceptron, alone, averaged and "
        "as members. The average of one PA's rules is near Widrow-Hoff with small steps.",
    ),
)
