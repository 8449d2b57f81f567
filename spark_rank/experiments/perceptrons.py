"""Runs the learners of the OAP paper on one problem: rank loss online, and on a test set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spark_rank.config.schema import setting
from spark_rank.experiments.curves import online_curve
from spark_rank.experiments.frame import Claim, Result
from spark_rank.learners import OAP, PRank, WidrowHoff
from spark_rank.learners.errors import NumericFailureError

TEST_LOSS = "test rank loss"
ONLINE_LOSS = "online rank loss"
# the paper's names of the ensembles, and how their members are combined
ENSEMBLES = {"OAP-BPM": "bpm", "OAP-Bagg": "bagging", "OAP-VP": "voted"}
Update = Literal["romma", "aggressive-romma", "pa"]
# names of the updates by margins
NAMES = {"romma": "ROMMA", "aggressive-romma": "aggressive ROMMA", "pa": "PA"}
READOUTS = {"PRank": "last", "PRank voted": "voted", "PRank averaged": "averaged"}

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class PerceptronSettings:
    """The common settings of the OAP paper's experiments."""

    members: int = setting(100, "members N of an ensemble", at_least=1, at_most=100_000)
    taus: list[float] = setting([0.3, 0.6, 0.9], "probabilities that a member sees an example")
    etas: list[float] = setting([0.2, 0.1, 0.05, 0.01], "step sizes of Widrow-Hoff")
    updates: list[Update] = setting([*NAMES], "updates by margins beside the perceptron's")
    steps: list[float] = setting([1.0, 0.01], "greatest steps of pa")


class Problem(NamedTuple):
    """A training sequence and a test set; `with_constant` adds a feature for Widrow-Hoff."""

    n_ranks: int
    X: FloatArray
    ranks: IntArray
    X_test: FloatArray
    ranks_test: IntArray
    with_constant: bool


class Place(NamedTuple):
    """The part and repeat of results, and the seed and problem of the ensembles' draws."""

    part: str
    repeat: int
    seed: int
    problem: int


def run_perceptrons(
    problem: Problem, settings: PerceptronSettings, readouts: Sequence[str], place: Place
) -> list[Result]:
    """Return every learner's online curve and test loss."""
    results = []
    for name in readouts:
        learner = PRank(problem.n_ranks, readout=READOUTS[name])
        learner.fit(problem.X, problem.ranks)
        # all read-outs come from the same run, so there is one curve
        results += _measured(name, learner, problem.X_test, problem, place, curve=name == "PRank")
    X, X_test = _for_regression(problem)
    for eta in settings.etas:
        regression = WidrowHoff(problem.n_ranks, eta=eta)
        try:
            regression.fit(X, problem.ranks)
        except NumericFailureError as error:
            results.append(Result(f"WH {eta:g}", TEST_LOSS, None, place.part, None, place.repeat,
                                  detail=str(error)))  # fmt: skip
            continue
        results += _measured(f"WH {eta:g}", regression, X_test, problem, place)
    for tau in settings.taus:
        for name, ensemble in _ensembles(problem, settings, tau, place).items():
            results += _measured(f"{name} {tau:g}", ensemble, problem.X_test, problem, place)
    return results + _by_margins(problem, settings, place)


def _by_margins(problem: Problem, settings: PerceptronSettings, place: Place) -> list[Result]:
    """Return what the updates by margins do, alone and as those of members (OAP-BPM)."""
    results = []
    for name, moves in margin_updates(settings).items():
        for readout, words in (("last", ""), ("averaged", " averaged")):
            alone = PRank(problem.n_ranks, readout=readout, **moves)
            alone.fit(problem.X, problem.ranks)
            full = f"PRank{words}, {name}"
            results += _measured(
                full, alone, problem.X_test, problem, place, curve=readout == "last"
            )
        for tau in settings.taus:
            ensemble = OAP(
                problem.n_ranks, n_members=settings.members, tau=tau, seed=place.seed,
                problem=place.problem, **moves,
            ).fit(problem.X, problem.ranks)  # fmt: skip
            full = f"OAP-BPM {tau:g}, {name}"
            results += _measured(full, ensemble, problem.X_test, problem, place)
    return results


def margin_updates(settings: PerceptronSettings) -> dict[str, dict[str, Any]]:
    """Return the parameters of every update by margins, by its name."""
    found: dict[str, dict[str, Any]] = {}
    for update in settings.updates:
        for step in settings.steps if update == "pa" else [1.0]:
            name = f"{NAMES[update]} {step:g}" if update == "pa" else NAMES[update]
            found[name] = {"update": update, "C": step}
    return found


def best_is_bpm(
    settings: PerceptronSettings, part: str, source: str, *, of_regressions: bool = True
) -> list[Claim]:
    """Return the paper's statement that OAP-BPM has the lowest test loss, one claim per rival.

    Without `of_regressions` there are no claims on Widrow-Hoff.
    """
    claims = []
    regressions = [f"WH {eta:g}" for eta in settings.etas] if of_regressions else []
    for tau in settings.taus:
        rivals = [f"{name} {tau:g}" for name in ENSEMBLES if name != "OAP-BPM"]
        for rival in ["PRank", *regressions, *rivals]:
            best = f"OAP-BPM {tau:g}"
            claims.append(
                Claim(f"{best} is below {rival}", TEST_LOSS, best, rival, part, source=source)
            )
    return claims


def _ensembles(
    problem: Problem, settings: PerceptronSettings, tau: float, place: Place
) -> Mapping[str, OAP]:
    """Train the members once, and return an ensemble for every way to combine them."""

    def ensemble(combine: str = "bpm") -> OAP:
        return OAP(
            problem.n_ranks,
            n_members=settings.members,
            tau=tau,
            combine=combine,
            seed=place.seed,
            problem=place.problem,
        )

    members = ensemble().train_members(problem.X, problem.ranks)
    return {
        name: ensemble(combine).combine_groups([members], problem.X, problem.ranks)
        for name, combine in ENSEMBLES.items()
    }


def _measured(
    name: str,
    learner: PRank | WidrowHoff | OAP,
    X_test: FloatArray,
    problem: Problem,
    place: Place,
    *,
    curve: bool = True,
) -> list[Result]:
    loss = np.abs(learner.predict(X_test) - problem.ranks_test).mean()
    results = [Result(name, TEST_LOSS, float(loss), place.part, repeat=place.repeat)]
    if curve:
        results += online_curve(
            learner.online_loss_, name, ONLINE_LOSS, part=place.part, repeat=place.repeat
        )
    return results


def _for_regression(problem: Problem) -> tuple[FloatArray, FloatArray]:
    if not problem.with_constant:
        return problem.X, problem.X_test
    with_constant = [np.column_stack([X, np.ones(len(X))]) for X in (problem.X, problem.X_test)]
    return with_constant[0], with_constant[1]
