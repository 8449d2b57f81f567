"""AdaBoost and RankBoost on bipartite sets: the lecture's two objectives over the rounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spark_rank.config.schema import setting
from spark_rank.experiments.curves import rounds_shown
from spark_rank.experiments.frame import Claim, Curve, Experiment, Result, Study, Unit
from spark_rank.learners import RankBoost
from spark_rank.metrics import auc

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_SOURCE = "Mohri, lecture on ranking, “AdaBoost and CD RankBoost”"
_RANK, _ADA, _BALANCE, _AUC = "log F_Rank", "log F_Ada", "log F+/F-", "AUC"
_WITH, _WITHOUT, _RANKBOOST = "AdaBoost with a constant", "AdaBoost", "RankBoost"
SEPARABLE, MIXED = "separable", "not separable"
_POSITIVE_SHARE = 0.3
_FLAT = 1e-12  # a derivative below this share of the objective is 0


@dataclass(frozen=True)
class Boosting:
    """Settings of `boosting`."""

    repeats: int = setting(10, "bipartite sets of each kind", at_least=1)
    examples: int = setting(200, "examples of a set", at_least=10)
    features: int = setting(4, "features of an example", at_least=1)
    values: int = setting(6, "different values of a feature", at_least=2)
    rounds: int = setting(2000, "rounds of boosting", at_least=1)


def units(study: Study) -> Sequence[Unit]:
    """Return a unit per kind of set and repeat."""
    return [(kind, repeat) for kind in (0, 1) for repeat in range(study.settings.repeats)]


def run_unit(study: Study, unit: Unit) -> list[Result]:
    """Boost one set in three ways."""
    part, repeat = (SEPARABLE, MIXED)[unit[0]], unit[1]
    X, y = draw_set(study, part, repeat)
    settings = study.settings
    shown = set(rounds_shown(settings.rounds).tolist())
    boosted = RankBoost(settings.rounds, smoothing=0.0).fit(X, y)
    runs = {
        _RANKBOOST: boosted.staged_decision_function(X),
        _WITHOUT: adaboost(X, y, settings.rounds, constant=False),
        _WITH: adaboost(X, y, settings.rounds, constant=True),
    }
    results = []
    for method, scores_by_round in runs.items():
        scores = np.zeros(len(y))
        rounds = iter(scores_by_round)
        for t in range(1, settings.rounds + 1):
            scores = next(rounds, scores)  # who has ended stays where it is
            if t in shown:
                results += [
                    Result(method, metric, value, part, x=float(t), repeat=repeat)
                    for metric, value in measures(scores, y).items()
                ]
    return results


def draw_set(study: Study, part: str, repeat: int) -> tuple[FloatArray, IntArray]:
    """Return features with few values, and 1 for positive, 0 for negative examples."""
    settings, rng = study.settings, study.generator(part, repeat)
    X = rng.integers(0, settings.values, (settings.examples, settings.features)).astype(float)
    scores = X @ np.linspace(1.0, 2.0, settings.features)
    if part == MIXED:
        scores = scores + 0.5 * scores.std() * rng.standard_normal(settings.examples)
    cut = np.quantile(scores, 1.0 - _POSITIVE_SHARE)
    return X, (scores > cut).astype(np.int64)


def adaboost(X: FloatArray, y: IntArray, rounds: int, *, constant: bool) -> Iterator[FloatArray]:
    """Yield the scores after every round of coordinate descent on F_Ada = F₋ + F₊.

    Base rankers are 1 where a feature reaches a cut, and with `constant` one is 1 everywhere; steps
    may be negative. (Complements would add up to a constant.) A round takes the one with the
    steepest descent and the best step, ``½ ln(W₊/W₋)`` with the weights of the positive and
    negative examples where it is 1, smoothed where that would be infinite. Ends where no step
    descends.
    """
    rankers = base_rankers(X, constant=constant)
    sign = np.where(y > 0, 1.0, -1.0)
    scores = np.zeros(len(y))
    for _ in range(rounds):
        exponents = -sign * scores
        weights = np.exp(exponents - exponents.max())
        weights /= weights.sum()
        slopes = np.abs(rankers @ (sign * weights))
        best = int(np.argmax(slopes))
        if slopes[best] <= _FLAT:
            return
        chosen = rankers[best]
        plus, minus = chosen @ (weights * (sign > 0)), chosen @ (weights * (sign < 0))
        smoothing = 0.0 if min(plus, minus) > 0.0 else 1.0 / len(y)
        scores = scores + 0.5 * np.log((plus + smoothing) / (minus + smoothing)) * chosen
        yield scores


def base_rankers(X: FloatArray, *, constant: bool) -> FloatArray:
    """Return a row of zeros and ones for every base ranker."""
    rows = [np.ones(len(X))] if constant else []
    for column in X.T:
        rows += [(column >= cut).astype(np.float64) for cut in np.unique(column)[1:]]
    return np.array(rows)


def measures(scores: FloatArray, y: IntArray) -> dict[str, float | None]:
    """Return both objectives, their balance, and the AUC, logarithms by base e."""
    negative, positive = _log_sum(scores[y == 0]), _log_sum(-scores[y > 0])
    return {
        _RANK: negative + positive,
        _ADA: float(np.logaddexp(negative, positive)),
        _BALANCE: positive - negative,
        _AUC: auc(scores, y),
    }


def _log_sum(exponents: FloatArray) -> float:
    return float(np.logaddexp.reduce(exponents))


def claims(settings: Boosting) -> list[Claim]:
    """Return the lecture's property: AdaBoost with the constant reaches RankBoost's optimum."""
    end = float(rounds_shown(settings.rounds)[-1])
    return [
        Claim(f"{_WITH} has less F_Rank than without", _RANK, _WITH, _WITHOUT, MIXED, x=end,
              source=_SOURCE)
    ]  # fmt: skip


EXPERIMENT = Experiment(
    name="boosting",
    title="AdaBoost and RankBoost",
    source=_SOURCE,
    about=(
        "Sets of positive and negative examples, boosted by thresholds on single features. "
        "RankBoost descends on F_Rank = F₋F₊, AdaBoost on F_Ada = F₋ + F₊, where F₋ sums exp(f) "
        "over the negative and F₊ exp(−f) over the positive examples. With a constant among the "
        "base rankers AdaBoost balances F₊ and F₋, and where the set is not separable it comes to "
        "RankBoost's optimum."
    ),
    settings=Boosting,
    units=units,
    run_unit=run_unit,
    claims=claims,
    curves=(
        Curve(_RANK, "Objective of RankBoost", "round", "ln F_Rank", log_x=True),
        Curve(_ADA, "Objective of AdaBoost", "round", "ln F_Ada", log_x=True),
        Curve(_BALANCE, "Balance of the classes", "round", "ln F₊/F₋", log_x=True),
        Curve(_AUC, "Area under the ROC curve", "round", "AUC", log_x=True),
    ),
    higher_is_better=frozenset({_AUC}),
    exact=frozenset({_BALANCE}),
    deviations=(
        "The lecture states the property without an experiment; the sets are ours.",
        "A base ranker without errors, whose step would be infinite, gets a step that is smoothed "
        "by one example.",
    ),
)
