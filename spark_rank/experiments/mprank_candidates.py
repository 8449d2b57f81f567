"""Parameters of the three learners of the MPRank paper, and their choice on held-out users.

The parameters of a learner are chosen by its own cost, as in the paper: of MPRank by the MSD, of
SVRank (n = 1) by the M1D, of RankBoost (the number of rounds) by the misranking. Those of MPRank
are also chosen by the M1D, for comparison with the M1D of the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from spark_rank.experiments.frame import Published, Result
from spark_rank.experiments.reviewer_problems import FloatArray, Problem, measured
from spark_rank.learners import MPRank, RankBoost, SVRank

BY_M1D = "MPRank by M1D"
OWN_COST = {"MPRank": "MSD", BY_M1D: "M1D", "SVRank": "M1D", "RankBoost": "misranking"}
# RankBoost is also shown after this many rounds, which give about the paper's MSD
SHOWN_ROUNDS = 100
AFTER_SHOWN_ROUNDS = f"RankBoost, {SHOWN_ROUNDS} rounds"
Parameters = Mapping[str, Any]


@dataclass(frozen=True)
class Candidates:
    """The values to choose from: trade-offs, widths of the Gaussian, ε, boosting rounds."""

    Cs: Sequence[float]
    gammas: Sequence[float]
    epsilons: Sequence[float]
    rounds: Sequence[int]

    def of(self, method: str) -> list[Parameters]:
        """Return the points of a method's grid, in the order of `trial_scores`."""
        if method in ("MPRank", BY_M1D):
            return [{"gamma": g, "C": C} for g, C in product(self.gammas, self.Cs)]
        if method == "SVRank":
            points = product(self.gammas, self.Cs, self.epsilons)
            return [{"gamma": g, "C": C, "epsilon": e} for g, C, e in points]
        return [{"rounds": n} for n in self.rounds]


def trial_scores(problem: Problem, candidates: Candidates) -> Iterator[tuple[str, FloatArray]]:
    """Yield each method with its scores of the held-out items, candidate by candidate.

    All C of MPRank share a factorisation, all numbers of rounds of RankBoost share a run.
    """
    for gamma in candidates.gammas:
        path = MPRank.path(problem.X, problem.y, candidates.Cs, kernel="rbf", gamma=gamma)
        for model in path.models:
            scores = model.decision_function(problem.test_items)
            yield "MPRank", scores
            yield BY_M1D, scores
    for point in candidates.of("SVRank"):
        machine = SVRank(kernel="rbf", **point).fit(problem.X, problem.y)
        yield "SVRank", machine.decision_function(problem.test_items)
    for scores in staged_scores(problem, candidates.rounds):
        yield "RankBoost", scores


def staged_scores(problem: Problem, rounds: Sequence[int]) -> list[FloatArray]:
    """Return RankBoost's scores after each number of `rounds`, or after the last round if fewer."""
    model = RankBoost(max(rounds)).fit(problem.X, problem.y)
    scores = [
        np.zeros(len(problem.test_ratings)),
        *model.staged_decision_function(problem.test_items),
    ]
    return [scores[min(n, len(scores) - 1)] for n in rounds]


def trial_results(problem: Problem, candidates: Candidates, **where: Any) -> list[Result]:
    """Return every candidate's cost, by its method's metric; x is its position in the grid."""
    places = dict.fromkeys(OWN_COST, 0)
    results = []
    for method, scores in trial_scores(problem, candidates):
        metric = OWN_COST[method]
        value = measured(scores, problem.test_ratings)[metric]
        results.append(Result(method, metric, value, x=float(places[method]), **where))
        places[method] += 1
    return results


def choose(results: Sequence[Result], candidates: Candidates) -> dict[str, dict[str, Parameters]]:
    """Return by part and method the parameters with the least mean cost over the users.

    If several are equal, the first is chosen. Users with an undefined cost do not count.
    """
    sums: dict[tuple[str, str, int], list[float]] = {}
    for result in results:
        if result.value is not None and result.x is not None:
            sums.setdefault((result.part, result.method, int(result.x)), []).append(result.value)
    means = {key: float(np.mean(sorted(values))) for key, values in sums.items()}
    chosen: dict[str, dict[str, Parameters]] = {}
    for part, method in dict.fromkeys((part, method) for part, method, _ in means):
        costs = {place: mean for (p, m, place), mean in means.items() if (p, m) == (part, method)}
        best = min(sorted(costs), key=lambda place: costs[place])
        chosen.setdefault(part, {})[method] = candidates.of(method)[best]
    return chosen


def published_figures(
    part: str, metric: str, figures: Sequence[tuple[float, float] | None], source: str
) -> list[Published]:
    """Return a line of the paper's tables: MPRank, SVRank and RankBoost.

    The paper does not give the number of rounds of RankBoost, so both rows show its figure.
    """
    printed = [
        Published(method, metric, *figure, part=part, source=source)
        for method, figure in zip(("MPRank", "SVRank", "RankBoost"), figures, strict=True)
        if figure is not None
    ]
    after_shown = [
        replace(figure, method=AFTER_SHOWN_ROUNDS, again=True)
        for figure in printed
        if figure.method == "RankBoost"
    ]
    return printed + after_shown


def chosen_scores(problem: Problem, chosen: Mapping[str, Parameters]) -> dict[str, FloatArray]:
    """Return the scores of the held-out items by every method with its chosen parameters.

    RankBoost's scores after `SHOWN_ROUNDS` rounds are included too.
    """
    scores: dict[str, FloatArray] = {}
    learners: dict[str, type[MPRank | SVRank]] = {
        "MPRank": MPRank, BY_M1D: MPRank, "SVRank": SVRank
    }  # fmt: skip
    for method, learner in learners.items():
        model = learner(kernel="rbf", **chosen[method]).fit(problem.X, problem.y)
        scores[method] = model.decision_function(problem.test_items)
    rounds = [int(chosen["RankBoost"]["rounds"]), SHOWN_ROUNDS]
    names = ("RankBoost", AFTER_SHOWN_ROUNDS)
    return scores | dict(zip(names, staged_scores(problem, rounds), strict=True))
