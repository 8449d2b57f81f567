"""Regret of the online learners against the best fixed rule: Crammer's slides, "Regret Bound"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spark_rank.config.schema import setting
from spark_rank.experiments.best_fixed_rule import best_fixed_rule, sides
from spark_rank.experiments.curves import rounds_shown
from spark_rank.experiments.frame import Claim, Curve, Experiment, Result, Study, Unit
from spark_rank.experiments.product_ranks import N_RANKS, draw_product_ranks
from spark_rank.learners import PRank, WidrowHoff
from spark_rank.learners.feature_maps import polynomial_features
from spark_rank.learners.perceptrons.online import OnlineLearner

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_SOURCE = "Crammer's slides, 4 and 24"
_LOSS, _REGRET, _GAP = "loss so far", "regret so far", "relative gap of the fixed rule"
EASY, HARD = "separable", "noisy"
_FIXED, _BOUND = "best fixed rule", "mistake bound"
# the rule that makes the ranks, on the features of the polynomial kernel
_ROOT = float(np.sqrt(2.0))
_TRUTH = np.array([2.5, -5.0 / _ROOT, -5.0 / _ROOT, 0.0, 0.0, 10.0 / _ROOT])
_CUTS = np.array([-1.0, -0.1, 0.25, 1.0])


@dataclass(frozen=True)
class Regret:
    """Settings of `regret`."""

    repeats: int = setting(20, "sequences of each kind", at_least=1)
    rounds: int = setting(2000, "length of a sequence", at_least=10, at_most=100_000)
    shown: int = setting(12, "places on a curve, each with a linear programme", at_least=2)
    noise: float = setting(0.125, "standard deviation of the noise, if noisy", at_least=0.0)
    margin: float = setting(0.05, "least margin of an example, if separable", above=0.0)
    eta: float = setting(0.1, "step size of Widrow-Hoff", above=0.0)


def units(study: Study) -> Sequence[Unit]:
    """Return a unit per kind of sequence and repeat."""
    return [(kind, repeat) for kind in (0, 1) for repeat in range(study.settings.repeats)]


def run_unit(study: Study, unit: Unit) -> list[Result]:
    """Learn a sequence, and hold the losses against the best fixed rule of each prefix."""
    part, repeat = (EASY, HARD)[unit[0]], unit[1]
    X, ranks = draw_sequence(study, part, repeat)
    settings, results = study.settings, []
    rounds = rounds_shown(len(ranks), settings.shown)
    learners: dict[str, OnlineLearner] = {
        "PRank": PRank(N_RANKS),
        "PRank, ROMMA": PRank(N_RANKS, update="romma"),
        "PRank, PA": PRank(N_RANKS, update="pa"),
        f"WH {settings.eta:g}": WidrowHoff(N_RANKS, eta=settings.eta),
    }
    curves = {
        name: learner.fit(X, ranks).online_loss_[rounds - 1] * rounds
        for name, learner in learners.items()
    }
    for place, T in enumerate(rounds):
        fixed = best_fixed_rule(X[:T], ranks[:T], N_RANKS)
        values = [(_FIXED, _LOSS, fixed.loss), (_FIXED, _GAP, fixed.gap / max(fixed.loss, 1.0))]
        if part == EASY:
            values.append((_BOUND, _LOSS, mistake_bound(X[:T], ranks[:T])))
        for name, losses in curves.items():
            values += [(name, _LOSS, losses[place]), (name, _REGRET, losses[place] - fixed.loss)]
        results += [
            Result(method, metric, float(value), part, x=float(T), repeat=repeat)
            for method, metric, value in values
        ]
    return results


def draw_sequence(study: Study, part: str, repeat: int) -> tuple[FloatArray, IntArray]:
    """Return features and ranks of a sequence: noisy, or without examples near a threshold."""
    settings, rng = study.settings, study.generator(part, repeat)
    if part == HARD:
        drawn = draw_product_ranks(rng, settings.rounds, settings.noise)
        return polynomial_features(drawn.points), drawn.ranks
    features, ranks = np.empty((0, len(_TRUTH))), np.empty(0, dtype=np.int64)
    while len(ranks) < settings.rounds:
        drawn = draw_product_ranks(rng, settings.rounds, 0.0)
        X = polynomial_features(drawn.points)
        clear = np.abs((X @ _TRUTH)[:, None] - _CUTS).min(axis=1) >= settings.margin
        features = np.concatenate([features, X[clear]])
        ranks = np.concatenate([ranks, drawn.ranks[clear]])
    return features[: settings.rounds], ranks[: settings.rounds]


def mistake_bound(X: FloatArray, ranks: IntArray) -> float:
    """Return ``(k−1)(R²+1)/γ²`` with the margin γ of the rule that made the ranks."""
    margins = sides(ranks, N_RANKS) * ((X @ _TRUTH)[:, None] - _CUTS)
    gamma = float(margins.min()) / float(np.sqrt(_TRUTH @ _TRUTH + _CUTS @ _CUTS))
    square = float(np.einsum("ij,ij->i", X, X).max())
    return (N_RANKS - 1) * (square + 1.0) / gamma**2


def claims(settings: Regret) -> list[Claim]:
    """Return theorem 2 at the end of separable sequences."""
    end = float(rounds_shown(settings.rounds, settings.shown)[-1])
    return [
        Claim("PRank loses less than the mistake bound", _LOSS, "PRank", _BOUND, EASY, x=end,
              source="Crammer and Singer 2001, theorem 2")
    ]  # fmt: skip


EXPERIMENT = Experiment(
    name="regret",
    title="Regret against the best fixed rule",
    source=_SOURCE,
    about=(
        "Loss of the online learners over a sequence, less the loss of the best fixed rule that "
        "could have been chosen in hindsight. That rule has the least sum of max(0, 1 − margin) "
        "over all examples and thresholds, which is at least its rank loss: the regret may be "
        "negative. It is the solution of a linear programme for each prefix, whose dual certifies "
        "it. On separable sequences the mistake bound stands beside the losses."
    ),
    settings=Regret,
    units=units,
    run_unit=run_unit,
    claims=claims,
    curves=(
        Curve(_LOSS, "Rank loss so far", "example", "total rank loss", log_y=True),
        Curve(_REGRET, "Regret so far", "example", "rank loss beyond that of the fixed rule"),
    ),
    deviations=(
        "The slides state a bound on the regret and show no experiment; sequences and learners are "
        "ours.",
        "The margin in the mistake bound is that of the rule that made the ranks, scaled to length "
        "1; the best margin would give a smaller bound.",
    ),
)
