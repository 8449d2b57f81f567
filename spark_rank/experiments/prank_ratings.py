"""PRank, figure 2 middle and right: one viewer's ratings from those of all the others, online."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spark_rank.config.schema import setting
from spark_rank.experiments.curves import learned_curve, online_curve
from spark_rank.experiments.data_sets import EACHMOVIE, MOVIELENS_1M
from spark_rank.experiments.frame import Claim, Curve, Experiment, Need, Result, Study, Unit
from spark_rank.experiments.unit_length import to_unit_length
from spark_rank.learners import MulticlassPerceptron, PRank, WidrowHoff
from spark_rank.learners.perceptrons.online import OnlineLearner

_SOURCE = "Crammer and Singer 2001, section 5, figure 2"
_LOSS = "online rank loss"
_RATINGS = "ratings"

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class PRankRatings100:
    """Settings of `prank_ratings_100`."""

    repeats: int = setting(500, "target viewers, drawn anew for every repeat", at_least=1)
    over: int = setting(100, "viewers are those with more ratings than this", at_least=1)
    rounds: int = setting(100, "ratings of the target to go through, in random order", at_least=1)
    eta: float = setting(1.0, "step size of Widrow-Hoff", above=0.0)


@dataclass(frozen=True)
class PRankRatings200(PRankRatings100):
    """Settings of `prank_ratings_200`."""

    over: int = setting(200, "viewers are those with more ratings than this", at_least=1)
    rounds: int = setting(200, "ratings of the target to go through, in random order", at_least=1)


def units(study: Study) -> Sequence[Unit]:
    """Return a unit per repeat, with its target viewer."""
    viewers = _viewers(study)
    targets = study.generator("targets").choice(viewers, study.settings.repeats)
    return [(repeat, int(target)) for repeat, target in enumerate(targets)]


def run_unit(study: Study, unit: Unit) -> list[Result]:
    """Go through the target's ratings with every learner, and with the mean of those so far."""
    data, (repeat, target) = study.data[_RATINGS], unit
    shifted, ranks = _sequence(study, repeat, target)
    n_ranks, name = len(data.levels), str(data.user_ids[target])
    learned = [
        result
        for method, (learner, X) in _learners(shifted, n_ranks, study.settings.eta).items()
        for result in learned_curve(learner, X, ranks, method, _LOSS, repeat=repeat, target=name)
    ]
    mean = mean_so_far_loss(ranks, n_ranks)
    return learned + online_curve(mean, "mean so far", _LOSS, repeat=repeat, target=name)


def _learners(
    shifted: FloatArray, n_ranks: int, eta: float
) -> dict[str, tuple[OnlineLearner, FloatArray]]:
    """Return every method's learner and its features."""
    features = to_unit_length(shifted)
    with_constant = np.column_stack([features, np.ones(len(features))])
    return {
        "PRank": (PRank(n_ranks), features),
        "WH": (WidrowHoff(n_ranks, eta=eta), features),
        # the same relative step: with the constant, vectors have the squared length 2
        "WH, constant": (WidrowHoff(n_ranks, eta=eta / 2.0), with_constant),
        "MCP": (MulticlassPerceptron(n_ranks), features),
        "PRank, not scaled": (PRank(n_ranks), shifted),
        "MCP, not scaled": (MulticlassPerceptron(n_ranks), shifted),
    }


def mean_so_far_loss(ranks: IntArray, n_ranks: int) -> FloatArray:
    """Return the running average loss of the rank nearest to the mean of those before, half up.

    The first prediction is the middle of the ranks.
    """
    before = np.concatenate([[0], np.cumsum(ranks)[:-1]])
    count = np.maximum(np.arange(len(ranks)), 1)
    means = (2 * before + count) // (2 * count)
    means[0] = (1 + n_ranks) // 2
    return np.cumsum(np.abs(means - ranks)) / np.arange(1, len(ranks) + 1)


def _viewers(study: Study) -> IntArray:
    return np.flatnonzero(study.data[_RATINGS].n_ratings > study.settings.over)


def _sequence(study: Study, repeat: int, target: int) -> tuple[FloatArray, IntArray]:
    """Return the other viewers' shifted ratings of the target's items, and the target's ranks."""
    data = study.data[_RATINGS]
    items, ratings = data.of_user(target)
    order = study.generator("order", repeat).permutation(len(items))[: study.settings.rounds]
    viewers = _viewers(study)
    others = viewers[viewers != target]
    unrated = np.full(len(others), data.middle)
    return data.columns_of(others, items[order], unrated) - data.middle, data.ranks(ratings[order])


def _claims(settings: PRankRatings100) -> list[Claim]:
    """Return what the paper says of the ends of the curves, and what it does not show."""
    end = float(settings.rounds)
    said = {
        _SOURCE: [("PRank", "WH"), ("PRank", "MCP")],
        "ours": [("WH, constant", "PRank"), ("mean so far", "PRank")],
    }
    return [
        Claim(f"{low} ends below {high}", _LOSS, low, high, x=end, source=source)
        for source, pairs in said.items()
        for low, high in pairs
    ]


def needs(settings: PRankRatings100) -> list[Need]:
    """Return the ratings: EachMovie, as in the paper, else MovieLens-1M."""
    return [Need(_RATINGS, (EACHMOVIE, MOVIELENS_1M))]


def _experiment(settings: type[PRankRatings100], panel: str) -> Experiment:
    over = settings().over
    return Experiment(
        name=f"prank_ratings_{over}",
        title=f"PRank on ratings: viewers with more than {over} ratings",
        source=f"{_SOURCE} {panel}",
        about=(
            f"Of the viewers with more than {over} ratings one is the target; the ratings of all "
            "the others are the features of a film, and the target's ratings come one by one. "
            "The rank loss is averaged over the rounds so far and over the repeats."
        ),
        settings=settings,
        units=units,
        run_unit=run_unit,
        needs=needs,
        claims=_claims,
        curves=(Curve(_LOSS, "Average rank loss so far", "round", "rank loss"),),
        deviations=_DEVIATIONS,
        explanations=_EXPLANATIONS,
    )


_DEVIATIONS = (
    "EachMovie is no longer distributed; without its file MovieLens-1M is taken. It has five "
    "levels in place of six: the middle, which the paper subtracts so that 0 stands for an unrated "
    "film, is itself a rating there, 3, and such ratings look unrated.",
    "The paper does not say how long the feature vectors are. Here they are brought to length 1 "
    "for all learners, so that step 1 of Widrow-Hoff makes sense; PRank and the perceptron are "
    "shown on the ratings as they are too ('not scaled').",
    "The paper shows figures and no numbers: its statements on the order of the learners are "
    "tested, at the last round. It has no 'mean so far', and no Widrow-Hoff with a constant "
    "feature.",
)
_EXPLANATIONS = (
    "On MovieLens-1M PRank ends below Widrow-Hoff, as published, but above the perceptron. That is "
    "not a matter of scale: the perceptron is below PRank on the ratings as they are, too, where "
    "PRank's thresholds, which move by 1, cannot follow scores that move by hundreds.",
    "Widrow-Hoff loses its rounds on finding the middle of the scale. With a constant feature it "
    "ends below PRank, and about where the mean of the target's own ratings so far is, which looks "
    "at no other viewer: after so few rounds little can be learned from thousands of features.",
)

OVER_100 = _experiment(PRankRatings100, "right")
OVER_200 = _experiment(PRankRatings200, "middle")
