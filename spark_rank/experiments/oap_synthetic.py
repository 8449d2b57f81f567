"""OAP, figure 2 and table 1: ensembles of PRanks on 50,000 noisy examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spark_rank.config.schema import setting
from spark_rank.experiments.curves import rounds_shown
from spark_rank.experiments.frame import Claim, Curve, Experiment, Published, Result, Study, Unit
from spark_rank.experiments.perceptrons import (
    ENSEMBLES,
    ONLINE_LOSS,
    READOUTS,
    TEST_LOSS,
    PerceptronSettings,
    Place,
    Problem,
    best_is_bpm,
    margin_updates,
    run_perceptrons,
)
from spark_rank.experiments.product_ranks import N_RANKS, draw_product_ranks
from spark_rank.learners.feature_maps import polynomial_features

_SOURCE = "Harrington 2003, section 4.1"
_ALL = "all"
_BEST_REGRESSION = "WH 0.1"
_VOTED_UNTIL, _BPM_FROM = 1000, 5000  # examples
_SHOWN_FROM = 100.0  # before this round, trials differ more than methods


@dataclass(frozen=True)
class OAPSynthetic(PerceptronSettings):
    """Settings of `oap_synthetic`."""

    trials: int = setting(20, "training sequences, each with a test set", at_least=1)
    rounds: int = setting(50_000, "length of a training sequence", at_least=1)
    test_size: int = setting(1000, "size of a test set", at_least=1)
    noise: float = setting(0.125, "standard deviation of the noise", at_least=0.0)


def units(study: Study) -> Sequence[Unit]:
    """Return a unit per trial."""
    return [(trial,) for trial in range(study.settings.trials)]


def run_unit(study: Study, unit: Unit) -> list[Result]:
    """Draw a training sequence and a test set, and measure every learner on them."""
    settings, (trial,) = study.settings, unit
    train = draw_product_ranks(study.generator("train", trial), settings.rounds, settings.noise)
    test = draw_product_ranks(study.generator("test", trial), settings.test_size, settings.noise)
    problem = Problem(
        N_RANKS,
        polynomial_features(train.points),
        train.ranks,
        polynomial_features(test.points),
        test.ranks,
        with_constant=False,  # the features of the kernel include a constant
    )
    place = Place(_ALL, trial, study.seed, trial)
    floor = float(np.abs(test.noiseless - test.ranks).mean())
    return [
        *run_perceptrons(problem, settings, tuple(READOUTS), place),
        Result("rule without noise", TEST_LOSS, floor, repeat=trial),
    ]


def published(settings: OAPSynthetic) -> list[Published]:
    """Return the figures of the text; the available copy lacks those of table 1."""
    figures = [("PRank", 0.37, 0.07), ("PRank voted", 0.31, 0.0), (_BEST_REGRESSION, 0.30, 0.2)]
    return [
        Published(name, TEST_LOSS, mean, reach, source=_SOURCE) for name, mean, reach in figures
    ]


def claims(settings: OAPSynthetic) -> list[Claim]:
    """Return the paper's statements on OAP-BPM, and ours on the plain average of one PRank."""
    ours = [
        Claim(f"PRank averaged is below OAP-BPM {tau:g}", TEST_LOSS, "PRank averaged",
              f"OAP-BPM {tau:g}", source="ours")
        for tau in settings.taus
    ]  # fmt: skip
    return best_is_bpm(settings, _ALL, _SOURCE) + _online_claims(settings) + ours


def _online_claims(settings: OAPSynthetic) -> list[Claim]:
    """Return the paper's statements on figure 2, if the sequences are long enough.

    OAP-VP is the lowest until 1,000 examples, OAP-BPM after 5,000. Widrow-Hoff with step 0.1 is
    then below PRank.
    """
    rounds = rounds_shown(settings.rounds)
    early, late = rounds[rounds <= _VOTED_UNTIL], rounds[rounds >= _BPM_FROM]
    if not len(late):
        return []
    first = [(f"OAP-VP {tau:g}", tau, early[-1]) for tau in settings.taus]
    then = [(f"OAP-BPM {tau:g}", tau, late[0]) for tau in settings.taus]
    claims = [
        _lower_online(best, rival, int(round_))
        for best, tau, round_ in (*first, *then)
        for rival in ("PRank", _BEST_REGRESSION, *[f"{name} {tau:g}" for name in ENSEMBLES])
        if rival != best
    ]
    return [_lower_online(_BEST_REGRESSION, "PRank", int(late[0])), *claims]


def _lower_online(lower: str, higher: str, after: int) -> Claim:
    text = f"{lower} is below {higher} online after {after:,} examples"
    return Claim(text, ONLINE_LOSS, lower, higher, _ALL, x=float(after), source=_SOURCE)


def _alone_and_together(name: str) -> tuple[str, str]:
    """Return how results name an update alone and that of members who see the fewest examples."""
    return f"PRank{name}", f"OAP-BPM {min(OAPSynthetic().taus):g}{name}"


_BY_MARGINS = [
    method
    for update in margin_updates(OAPSynthetic())
    for method in _alone_and_together(f", {update}")
]

EXPERIMENT = Experiment(
    name="oap_synthetic",
    title="OAP on synthetic data",
    source="Harrington 2003, section 4.1, figure 2 and table 1",
    about=(
        "Sequences of points in the unit square, ranked 1 to 5 by a noisy product of their "
        "coordinates, with the features of the polynomial kernel of degree 2. Shown are the loss "
        "of the learned rules on further points, and the running loss on the sequence. Members of "
        "an ensemble see an example with the probability after the ensemble's name. "
        "'Rule without noise' is the loss of the rule that generated the ranks: no learner can be "
        "expected to have less."
    ),
    settings=OAPSynthetic,
    units=units,
    run_unit=run_unit,
    published=published,
    claims=claims,
    curves=[
        Curve(
            ONLINE_LOSS,
            f"Average rank loss so far, members see {tau:g} of the examples",
            "example",
            "rank loss",
            log_x=True,
            x_from=_SHOWN_FROM,
            methods=("PRank", _BEST_REGRESSION, *[f"{name} {tau:g}" for name in ENSEMBLES]),
        )
        for tau in OAPSynthetic().taus
    ]
    + [
        Curve(
            ONLINE_LOSS,
            "Average rank loss so far, updates by margins",
            "example",
            "rank loss",
            log_x=True,
            x_from=_SHOWN_FROM,
            methods=(*_alone_and_together(""), *_BY_MARGINS),
        )
    ],
    deviations=(
        "The available copy of the paper lacks table 1, the losses of the ensembles. Its statement "
        "that OAP-BPM has the lowest loss for every probability is tested instead.",
        "PRank averaged (the mean of all rules of one run) and the rule without noise are ours, "
        "and so are the updates by margins: ROMMA, which the paper names as future work, and PA.",
    ),
    explanations=(
        "PRank, and even more so voted PRank, end lower than published. The rule that generated "
        "the ranks has a loss of 0.152, and voted PRank comes within 0.003 of it, while the "
        "published 0.31 is twice as high. Reading the noise as a variance does not explain this: "
        "voted PRank then reaches 0.40 (set noise to 0.3536). Tests show that PRank and its voted "
        "rule equal the paper's listing round by round. The cause of the published 0.31 is "
        "unknown.",
        "The ensembles are below PRank and Widrow-Hoff, as published, but do not differ "
        "significantly from each other; a smaller probability narrows the interval, as published. "
        "The plain average of the rules of one PRank is below every ensemble of 100.",
        "Of the updates by margins ROMMA's last rule is below PRank's, and its ensemble does not "
        "differ from that of perceptrons. Small steps of PA leave the members near their start.",
    ),
)
