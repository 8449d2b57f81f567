"""MPRank, tables 1 and 2: Netflix by density, and Book-Crossing one reviewer at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spark_rank.config.schema import setting
from spark_rank.experiments.data_sets import BOOK_CROSSING, NETFLIX
from spark_rank.experiments.frame import (
    Claim,
    Experiment,
    Need,
    Pilot,
    Published,
    Result,
    Study,
    Unit,
)
from spark_rank.experiments.mprank_candidates import (
    Candidates,
    choose,
    chosen_scores,
    published_figures,
    trial_results,
)
from spark_rank.experiments.restricted_set import RestrictedSet, restricted
from spark_rank.experiments.reviewer_problems import (
    Problem,
    Sample,
    draw_problem,
    draw_reviewers,
    results_of,
)

_SOURCE = "Cortes, Mohri and Rastogi, table 1"
_SECOND = "Cortes, Mohri and Rastogi, table 2"
_BOOKS = "Books"
_DENSITIES = ("Netflix 32 %", "Netflix 46 %", "Netflix 58 %")
_FIGURES = (
    (_DENSITIES[0], "MSD", (1.58, 0.04), (1.80, 0.05), (57.5, 7.8)),
    (_DENSITIES[1], "MSD", (1.55, 0.03), (1.90, 0.06), (23.9, 2.9)),
    (_DENSITIES[2], "MSD", (1.49, 0.03), (1.93, 0.06), (12.33, 1.47)),
    (_BOOKS, "MSD", (4.00, 3.12), (3.64, 3.04), (7.58, 9.95)),
    (_DENSITIES[0], "M1D", (0.92, 0.01), (0.95, 0.02), (6.48, 0.55)),
    (_DENSITIES[1], "M1D", (0.95, 0.01), (1.02, 0.02), (4.10, 0.23)),
    (_DENSITIES[2], "M1D", (0.94, 0.01), (1.06, 0.02), (3.01, 0.15)),
    (_BOOKS, "M1D", (1.38, 0.60), (1.32, 0.56), (1.72, 1.05)),
    (_DENSITIES[0], "misranking", (0.433, 0.018), None, (0.447, 0.027)),
    (_DENSITIES[1], "misranking", (0.368, 0.014), None, (0.327, 0.008)),
    (_DENSITIES[2], "misranking", (0.295, 0.006), None, (0.318, 0.008)),
)


@dataclass(frozen=True)
class MPRankTable2:
    """Settings of `mprank_table2`."""

    repeats: int = setting(10, "Netflix: sets of test reviewers", at_least=1, at_most=1000)
    test_reviewers: int = setting(
        300, "Netflix: test reviewers of a repeat", at_least=1, at_most=100_000
    )
    references: int = setting(300, "Netflix: reference reviewers", at_least=1)
    held_out: int = setting(100, "Netflix: reviewers to choose parameters on", at_least=1)
    netflix_users: list[int] = setting([150, 500, 1500], "least ratings of a user, by density")
    netflix_items: list[int] = setting([360, 1200, 1800], "least ratings of a film, by density")
    book_users: int = setting(200, "least ratings of a reader", at_least=1)
    book_items: int = setting(10, "least ratings of a book by these readers", at_least=1)
    Cs: list[float] = setting([1, 3, 10, 30, 100, 300, 1000], "trade-offs to choose from")
    gammas: list[float] = setting([0.0003, 0.001, 0.003, 0.01], "widths to choose from")
    epsilons: list[float] = setting([0.1, 0.3, 1.0], "epsilons of SVRank to choose from")
    rounds: list[int] = setting([10, 20, 50, 100, 200, 500], "boosting rounds to choose from")


def subset(study: Study, part: int) -> RestrictedSet:
    """Return the ratings of a part: one of the densities, or the books."""
    settings: MPRankTable2 = study.settings
    if part == len(_DENSITIES):
        return restricted(study.data[_BOOKS], settings.book_users, settings.book_items)
    least = settings.netflix_users[part], settings.netflix_items[part]
    return restricted(study.data["Netflix"], *least)


def parts(study: Study) -> list[int]:
    """Return the parts whose data exists."""
    netflix = range(len(_DENSITIES)) if "Netflix" in study.data else ()
    return [*netflix, *((len(_DENSITIES),) if _BOOKS in study.data else ())]


def units(study: Study) -> list[Unit]:
    """Return a unit per part, test reviewer and repeat; for books a unit per reader."""
    all_units: list[Unit] = []
    for part in parts(study):
        if _name(part) == _BOOKS:
            all_units += [(part, int(user), user) for user in _testable(subset(study, part))]
        else:
            all_units += [
                (part, int(user), repeat)
                for repeat, users in enumerate(_sample(study, part).repeats)
                for user in users
            ]
    return all_units


def pilot_units(study: Study) -> list[Unit]:
    """Return a unit per part and held-out reviewer; for books a unit per reader."""
    return [
        (part, int(user))
        for part in parts(study)
        for user in (
            _testable(subset(study, part))
            if _name(part) == _BOOKS
            else _sample(study, part).held_out
        )
    ]


def run_pilot(study: Study, unit: Unit) -> list[Result]:
    """Try all parameters; for a reader of books, within the training half."""
    part, user = unit
    problem = _problem(study, part, user)
    if _name(part) == _BOOKS:
        half = len(problem.y) // 2
        if half < 2:
            return []
        problem = Problem(problem.X[:half], problem.y[:half], problem.X[half:], problem.y[half:])
    target = str(subset(study, part).user_ids[user])
    return trial_results(problem, candidates(study.settings), part=_name(part), target=target)


def run_unit(study: Study, unit: Unit) -> list[Result]:
    """Learn from half of a test reviewer's ratings and measure on the other half."""
    part, user, repeat = unit
    problem = _problem(study, part, user)
    chosen = study.chosen[_name(part)]
    scores = {"constant": np.zeros(len(problem.test_ratings))}
    scores |= chosen_scores(problem, chosen)
    target = str(subset(study, part).user_ids[user])
    return results_of(scores, problem, part=_name(part), repeat=int(repeat), target=target)


def candidates(settings: MPRankTable2) -> Candidates:
    """Return the parameters to choose from."""
    return Candidates(settings.Cs, settings.gammas, settings.epsilons, settings.rounds)


def published(settings: MPRankTable2) -> list[Published]:
    """Return the paper's tables."""
    return [
        figure
        for part, metric, *figures in _FIGURES
        for source in (_SECOND if metric == "misranking" else _SOURCE,)
        for figure in published_figures(part, metric, figures, source)
    ]


def claims(settings: MPRankTable2) -> list[Claim]:
    """Return the paper's statements on the learners."""
    return [
        Claim(f"{lower} has less MSD than {higher}", "MSD", lower, higher, part=p, source=_SOURCE)
        for p in (*_DENSITIES, _BOOKS)
        for lower, higher in (("MPRank", "SVRank"), ("SVRank", "RankBoost"))
        if p != _BOOKS or lower != "MPRank"
    ]


def _name(part: int) -> str:
    return (*_DENSITIES, _BOOKS)[part]


def _testable(ratings: RestrictedSet) -> Sequence[int]:
    """Return the users with enough ratings to learn from and to predict a pair."""
    return [int(user) for user in np.flatnonzero(ratings.n_ratings >= 4)]


def _sample(study: Study, part: int) -> Sample:
    settings: MPRankTable2 = study.settings
    return draw_reviewers(
        study, np.array(_testable(subset(study, part))), held_out=settings.held_out,
        repeats=settings.repeats, size=settings.test_reviewers, keys=(_name(part),),
    )  # fmt: skip


def _problem(study: Study, part: int, user: int) -> Problem:
    ratings = subset(study, part)
    others = np.flatnonzero(ratings.n_ratings > 0)
    size = len(others) if _name(part) == _BOOKS else study.settings.references
    return draw_problem(study, ratings, user, others, size, part)


EXPERIMENT = Experiment(
    name="mprank_table2",
    title="MPRank, SVRank and RankBoost on Netflix and Book-Crossing",
    source="Cortes, Mohri and Rastogi, tables 1 and 2",
    about=(
        "Netflix: users and films with enough ratings, in three densities. MPRank and its rivals "
        "learn from half of a test reviewer's ratings, with the ratings of reference reviewers as "
        "features. Books: every reader in turn is the test reviewer, all others are references."
    ),
    settings=MPRankTable2,
    pilot=Pilot(
        pilot_units, run_pilot, lambda study, found: choose(found, candidates(study.settings))
    ),
    units=units,
    run_unit=run_unit,
    needs=lambda settings: (
        Need("Netflix", (NETFLIX,)),
        Need(_BOOKS, (BOOK_CROSSING,)),
    ),
    published=published,
    claims=claims,
    average="repeat",
    deviations=(
        "Test reviewers of a density are drawn from its own users, not from all densities.",
        "Users of Netflix have at least 150, 500 or 1,500 ratings; the paper says more than that.",
        "The paper does not say on which ratings the parameters for books were chosen. Here each "
        "reader's training half is split into halves once more.",
        "Books: the published deviations are over readers, and so are ours.",
    ),
)
