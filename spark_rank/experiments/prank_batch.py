"""PRank as a batch learner: the rule of one pass over half of a viewer's ratings, on the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spark_rank.config.schema import setting
from spark_rank.experiments.frame import Claim, Experiment, Result, Study, Unit
from spark_rank.experiments.prank_ratings import (
    needs,
    rival_learners,
    sequence_of,
    viewers_over,
)
from spark_rank.learners import PRank

_SOURCE = "Crammer and Singer 2001, section 5, last paragraph"
_LOSS = "test rank loss"
_RATINGS = "ratings"


@dataclass(frozen=True)
class PRankBatch:
    """Settings of `prank_batch`."""

    repeats: int = setting(500, "number of repeats, each with a random target viewer", at_least=1)
    overs: list[int] = setting([100, 200], "viewers are those with more ratings than this")
    train_share: float = setting(
        0.5, "share of the target's ratings to learn from", above=0.0, at_most=0.99
    )
    eta: float = setting(1.0, "step size of Widrow-Hoff", above=0.0)


def units(study: Study) -> Sequence[Unit]:
    """Return a unit per group of viewers and repeat, with its target viewer."""
    found: list[Unit] = []
    for group, over in enumerate(study.settings.overs):
        viewers = viewers_over(study, over)
        if len(viewers) > 1:
            targets = study.generator("targets", over).choice(viewers, study.settings.repeats)
            found += [(group, repeat, int(target)) for repeat, target in enumerate(targets)]
    return found


def run_unit(study: Study, unit: Unit) -> list[Result]:
    """Learn from the first part of the target's ratings, and predict the rest."""
    group, repeat, target = unit
    over, data = study.settings.overs[group], study.data[_RATINGS]
    shifted, ranks = sequence_of(study, repeat, target, over)
    n_train = int(study.settings.train_share * len(ranks))
    n_ranks = len(data.levels)
    methods = rival_learners(shifted, n_ranks, study.settings.eta)
    features = methods["PRank"][1]
    methods["PRank averaged"] = PRank(n_ranks, readout="averaged"), features
    truth = ranks[n_train:]
    predicted = {
        method: learner.fit(X[:n_train], ranks[:n_train]).predict(X[n_train:])
        for method, (learner, X) in methods.items()
    }
    predicted["median"] = np.full(len(truth), int(np.median(ranks[:n_train])))
    name = str(data.user_ids[target])
    return [
        Result(method, _LOSS, float(np.abs(found - truth).mean()), part_of(over), repeat=repeat,
               target=name)
        for method, found in predicted.items()
    ]  # fmt: skip


def part_of(over: int) -> str:
    """Return the name of a group of viewers."""
    return f"more than {over} ratings"


def claims(settings: PRankBatch) -> list[Claim]:
    """Return the paper's statement that PRank came first."""
    return [
        Claim(f"PRank is below {rival}", _LOSS, "PRank", rival, part_of(over), source=_SOURCE)
        for over in settings.overs
        for rival in ("WH", "MCP")
    ]


EXPERIMENT = Experiment(
    name="prank_batch",
    title="PRank as a batch learner",
    source=_SOURCE,
    about=(
        "One viewer with enough ratings is the target. Each learner passes once over half of the "
        "target's ratings, in random order, and its last rule predicts the other half. The other "
        "viewers' ratings are the features of a film."
    ),
    settings=PRankBatch,
    units=units,
    run_unit=run_unit,
    needs=needs,
    claims=claims,
    deviations=(
        "EachMovie is no longer distributed; without its file the experiment uses MovieLens-1M, "
        "with five levels instead of six.",
        "The paper says that the set-up was that of the online experiments, that PRank came first, "
        "and gives no figure; the share of the ratings to learn from, a half, is ours. So are "
        "averaged PRank, Widrow-Hoff with a constant feature, the unscaled features, and the "
        "median of the target's training ratings.",
    ),
    explanations=(
        "On MovieLens-1M PRank's last rule is below Widrow-Hoff with step 1 and above the "
        "perceptron, as online. The average of the rules of the same run is below all others.",
    ),
)
