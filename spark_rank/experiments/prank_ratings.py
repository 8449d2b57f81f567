"""PRank, figure 2 middle and right: predicts a viewer's ratings online, from all other viewers'."""

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

    repeats: int = setting(500, "number of repeats, each with a random target viewer", at_least=1)
    over: int = setting(100, "viewers are those with more ratings than this", at_least=1)
    rounds: int = setting(100, "ratings of the target to learn, in random order", at_least=1)
    eta: float = setting(1.0, "step size of Widrow-Hoff", above=0.0)


@dataclass(frozen=True)
class PRankRatings200(PRankRatings100):
    """Settings of `prank_ratings_200`."""

    over: int = setting(200, "viewers are those with more ratings than this", at_least=1)
    rounds: int = setting(200, "ratings of the target to learn, in random order", at_least=1)


def units(study: Study) -> Sequence[Unit]:
    """Return a unit per repeat, with its target viewer."""
    viewers = viewers_over(study, study.settings.over)
    if len(viewers) < 2:  # a viewer without others has no features
        return []
    targets = study.generator("targets").choice(viewers, study.settings.repeats)
    return [(repeat, int(target)) for repeat, target in enumerate(targets)]


def run_unit(study: Study, unit: Unit) -> list[Result]:
    """Predict the target's ratings online with every learner, and by the mean rating so far."""
    data, (repeat, target) = study.data[_RATINGS], unit
    shifted, ranks = sequence_of(study, repeat, target, study.settings.over)
    shifted, ranks = shifted[: study.settings.rounds], ranks[: study.settings.rounds]
    n_ranks, name = len(data.levels), str(data.user_ids[target])
    learned = [
        result
        for method, (learner, X) in rival_learners(shifted, n_ranks, study.settings.eta).items()
        for result in learned_curve(learner, X, ranks, method, _LOSS, repeat=repeat, target=name)
    ]
    mean = mean_so_far_loss(ranks, n_ranks)
    return learned + online_curve(mean, "mean so far", _LOSS, repeat=repeat, target=name)


def rival_learners(
    shifted: FloatArray, n_ranks: int, eta: float
) -> dict[str, tuple[OnlineLearner, FloatArray]]:
    """Return every method's learner and its features."""
    features = to_unit_length(shifted)
    with_constant = np.column_stack([features, np.ones(len(features))])
    return {
        "PRank": (PRank(n_ranks), features),
        "WH": (WidrowHoff(n_ranks, eta=eta), features),
        # the same relative step, because vectors with the constant have the squared length 2
        "WH, constant": (WidrowHoff(n_ranks, eta=eta / 2.0), with_constant),
        "MCP": (MulticlassPerceptron(n_ranks), features),
        "PRank, not scaled": (PRank(n_ranks), shifted),
        "MCP, not scaled": (MulticlassPerceptron(n_ranks), shifted),
    }


def mean_so_far_loss(ranks: IntArray, n_ranks: int) -> FloatArray:
    """Return the running average loss of predicting the mean of earlier ranks, rounded half up.

    The first prediction is the middle of the ranks.
    """
    before = np.concatenate([[0], np.cumsum(ranks)[:-1]])
    count = np.maximum(np.arange(len(ranks)), 1)
    means = (2 * before + count) // (2 * count)
    means[0] = (1 + n_ranks) // 2
    return np.cumsum(np.abs(means - ranks)) / np.arange(1, len(ranks) + 1)


def viewers_over(study: Study, over: int) -> IntArray:
    """Return the viewers with more than `over` ratings."""
    return np.flatnonzero(study.data[_RATINGS].n_ratings > over)


def sequence_of(study: Study, repeat: int, target: int, over: int) -> tuple[FloatArray, IntArray]:
    """Return the other viewers' shifted ratings of the target's items, and the target's ranks.

    The target's items are in random order; the viewers are those with more than `over` ratings.
    """
    data = study.data[_RATINGS]
    items, ratings = data.of_user(target)
    order = study.generator("order", repeat).permutation(len(items))
    viewers = viewers_over(study, over)
    others = viewers[viewers != target]
    unrated = np.full(len(others), data.middle)
    return data.columns_of(others, items[order], unrated) - data.middle, data.ranks(ratings[order])


def _claims(settings: PRankRatings100) -> list[Claim]:
    """Return the paper's statements on the ends of the curves, and our own."""
    end = float(settings.rounds)
    by_source = {
        _SOURCE: [("PRank", "WH"), ("PRank", "MCP")],
        "ours": [("WH, constant", "PRank"), ("mean so far", "PRank")],
    }
    return [
        Claim(f"{low} ends below {high}", _LOSS, low, high, x=end, source=source)
        for source, pairs in by_source.items()
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
            f"One of the viewers with more than {over} ratings is the target. The ratings of all "
            "others are the features of a film, and the target's ratings come one by one. The rank "
            "loss is averaged over the rounds so far and over the repeats."
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
    "EachMovie is no longer distributed; without its file the experiment uses MovieLens-1M. It has "
    "five levels instead of six. The paper subtracts the middle of the scale, so that 0 stands for "
    "an unrated film; here the middle is the rating 3, so films rated 3 look unrated.",
    "The paper does not give the length of the feature vectors. Here they are scaled to length 1 "
    "for all learners, so that step 1 of Widrow-Hoff makes sense; PRank and the perceptron are "
    "also shown on unscaled ratings ('not scaled').",
    "The paper shows figures and no numbers: its statements on the order of the learners are "
    "tested at the last round. 'Mean so far' and Widrow-Hoff with a constant feature are ours.",
)
_EXPLANATIONS = (
    "On MovieLens-1M PRank ends below Widrow-Hoff, as published, but above the perceptron. Scaling "
    "is not the reason: the perceptron is also below PRank on unscaled ratings, where PRank's "
    "thresholds, which move by 1, cannot follow scores that move by hundreds.",
    "Widrow-Hoff needs its rounds to find the middle of the scale. With a constant feature it ends "
    "below PRank, about where the mean of the target's ratings so far ends, which uses no other "
    "viewer: few rounds are not enough to learn from thousands of features.",
)

OVER_100 = _experiment(PRankRatings100, "right")
OVER_200 = _experiment(PRankRatings200, "middle")
