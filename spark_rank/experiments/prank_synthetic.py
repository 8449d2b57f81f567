"""PRank, figure 2 left: rank loss over 7,000 rounds of a noisy product of two coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spark_rank.config.schema import setting
from spark_rank.experiments.curves import learned_curve, rounds_shown
from spark_rank.experiments.frame import Claim, Curve, Experiment, Result, Study, Unit
from spark_rank.experiments.product_ranks import N_RANKS, draw_product_ranks
from spark_rank.experiments.unit_length import to_unit_length
from spark_rank.learners import MulticlassPerceptron, PRank, WidrowHoff
from spark_rank.learners.feature_maps import polynomial_features
from spark_rank.learners.perceptrons.online import OnlineLearner

_SOURCE = "Crammer and Singer 2001, section 5, figure 2 left"
_OF_SMALLER_STEPS = "Harrington 2003, section 4.1"
_LOSS = "online rank loss"

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class PRankSynthetic:
    """Settings of `prank_synthetic`."""

    repeats: int = setting(100, "sequences", at_least=1, at_most=100_000)
    rounds: int = setting(7000, "length of a sequence", at_least=1, at_most=10_000_000)
    noise: float = setting(0.125, "standard deviation of the noise", at_least=0.0)
    etas: list[float] = setting([0.1], "step sizes of Widrow-Hoff (WH)")
    unit_etas: list[float] = setting(
        [1.0], "step sizes of Widrow-Hoff on features that are scaled to unit length (WH-unit)"
    )


def units(study: Study) -> Sequence[Unit]:
    """Return a unit per sequence."""
    return [(repeat,) for repeat in range(study.settings.repeats)]


def run_unit(study: Study, unit: Unit) -> list[Result]:
    """Draw a sequence and learn it with every learner."""
    settings, (repeat,) = study.settings, unit
    drawn = draw_product_ranks(study.generator("sequence", repeat), settings.rounds, settings.noise)
    features = polynomial_features(drawn.points)
    unit_length = to_unit_length(features)
    learners: dict[str, tuple[OnlineLearner, FloatArray]] = {
        "PRank": (PRank(N_RANKS), features),
        **{f"WH {e:g}": (WidrowHoff(N_RANKS, eta=e), features) for e in settings.etas},
        **{f"WH-unit {e:g}": (WidrowHoff(N_RANKS, eta=e), unit_length) for e in settings.unit_etas},
        "MCP": (MulticlassPerceptron(N_RANKS), features),
    }
    return [
        result
        for name, (learner, X) in learners.items()
        for result in learned_curve(learner, X, drawn.ranks, name, _LOSS, repeat=repeat)
    ]


def claims(settings: PRankSynthetic) -> list[Claim]:
    """Return the published statements on the ends of the curves."""
    end = float(rounds_shown(settings.rounds)[-1])
    of_step_1 = [f"WH-unit {eta:g}" for eta in settings.unit_etas]
    smaller = [f"WH {eta:g}" for eta in settings.etas]
    by_source = {
        _SOURCE: [("PRank", "MCP"), *[("PRank", name) for name in of_step_1],
                  *[(name, "MCP") for name in of_step_1]],
        _OF_SMALLER_STEPS: [(name, "PRank") for name in smaller],
    }  # fmt: skip
    return [
        Claim(f"{low} ends below {high}", _LOSS, low, high, x=end, source=source)
        for source, pairs in by_source.items()
        for low, high in pairs
    ]


EXPERIMENT = Experiment(
    name="prank_synthetic",
    title="PRank on synthetic data",
    source=_SOURCE,
    about=(
        "Points in the unit square are ranked 1 to 5 by a noisy product of their coordinates. "
        "Three online learners, with the features of the polynomial kernel of degree 2, predict "
        "each rank before they learn it. The rank loss is averaged over the rounds so far and "
        "over the sequences."
    ),
    settings=PRankSynthetic,
    units=units,
    run_unit=run_unit,
    claims=claims,
    curves=(Curve(_LOSS, "Average rank loss so far", "round", "rank loss"),),
    deviations=(
        "The paper shows a figure and no numbers: its statements on the order of the learners are "
        "tested at the last round.",
        "The paper does not give the step size of Widrow-Hoff; by Harrington (2003) it was 1. With "
        "unscaled features of the kernel, whose squared length reaches 9, the weights then "
        "overflow. So step 1 is used on features of unit length (WH-unit), and Harrington's best "
        "step, 0.1, on unscaled features (WH).",
    ),
    explanations=(
        "PRank ends below Widrow-Hoff with step 1, as published, and above Widrow-Hoff with step "
        "0.1: Harrington (2003, section 4.1) found the same with smaller steps. The published "
        "order of the two follows from a badly chosen step.",
    ),
)
