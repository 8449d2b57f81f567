"""MPRank, tables 1 and 2: MovieLens and Jester, by activity of the reference reviewers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from spark_rank.config.schema import setting
from spark_rank.experiments.data_sets import JESTER, MOVIELENS_1M
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
from spark_rank.experiments.reviewer_problems import (
    Problem,
    Sample,
    draw_problem,
    draw_reviewers,
    results_of,
    users_between,
)

_SOURCE = "Cortes, Mohri and Rastogi, table 1"
_SECOND = "Cortes, Mohri and Rastogi, table 2"
_DATA = ("MovieLens", "Jester")
_CONSTANT = "constant"
# mean and standard deviation over ten repeats: data set, group, metric, MPRank, SVRank, RankBoost
_FIGURES = (
    ("MovieLens 20-40", "MSD", (2.01, 0.02), (2.43, 0.13), (12.88, 2.15)),
    ("MovieLens 40-60", "MSD", (2.02, 0.06), (2.36, 0.16), (20.06, 2.76)),
    ("MovieLens 60-80", "MSD", (2.07, 0.05), (2.66, 0.09), (21.35, 2.71)),
    ("Jester 20-40", "MSD", (51.34, 2.90), (55.00, 5.14), (77.08, 17.1)),
    ("Jester 40-60", "MSD", (46.77, 2.03), (57.75, 5.14), (80.00, 18.2)),
    ("Jester 60-80", "MSD", (49.33, 3.11), (56.06, 4.26), (88.61, 18.6)),
    ("MovieLens 20-40", "M1D", (1.04, 0.05), (1.17, 0.03), (2.59, 0.04)),
    ("MovieLens 40-60", "M1D", (1.04, 0.02), (1.15, 0.07), (2.99, 0.12)),
    ("MovieLens 60-80", "M1D", (1.06, 0.01), (1.24, 0.02), (3.82, 0.23)),
    ("Jester 20-40", "M1D", (5.08, 0.15), (5.40, 0.20), (5.97, 0.16)),
    ("Jester 40-60", "M1D", (4.98, 0.13), (5.27, 0.20), (6.18, 0.11)),
    ("Jester 60-80", "M1D", (4.88, 0.14), (5.25, 0.19), (6.46, 0.20)),
    ("MovieLens 40-60", "misranking", (0.471, 0.005), None, (0.476, 0.007)),
    ("MovieLens 60-80", "misranking", (0.442, 0.005), None, (0.463, 0.011)),
    ("Jester 20-40", "misranking", (0.414, 0.005), None, (0.479, 0.008)),
    ("Jester 40-60", "misranking", (0.418, 0.007), None, (0.432, 0.005)),
)


@dataclass(frozen=True)
class MPRankTable1:
    """Settings of `mprank_table1`."""

    repeats: int = setting(10, "sets of test reviewers", at_least=1, at_most=1000)
    test_reviewers: int = setting(300, "test reviewers of a repeat", at_least=1, at_most=100_000)
    test_min: int = setting(50, "least ratings of a test reviewer", at_least=4)
    test_max: int = setting(300, "most ratings of a test reviewer", at_least=4)
    references: int = setting(300, "reference reviewers of a test reviewer", at_least=1)
    group_limits: list[int] = setting(
        [20, 40, 60, 80], "limits of the groups of reference reviewers, as numbers of ratings"
    )
    held_out: int = setting(300, "reviewers to choose parameters on", at_least=1)
    Cs: list[float] = setting(
        [3, 10, 30, 100, 300, 1000, 3000, 10_000], "trade-offs to choose from"
    )
    epsilons: list[float] = setting([0.1, 0.3, 1.0], "epsilons of SVRank to choose from")
    rounds: list[int] = setting(
        [10, 20, 50, 100, 200, 500], "numbers of boosting rounds to choose from"
    )
    movielens_gammas: list[float] = setting(
        [0.001, 0.003, 0.01, 0.03], "widths of the Gaussian to choose from, MovieLens"
    )
    jester_gammas: list[float] = setting(
        [0.000003, 0.00001, 0.00003, 0.0001], "widths of the Gaussian to choose from, Jester"
    )
    jester_scale: float = setting(
        5.0, "Jester: factor of the epsilons, compared with MovieLens", above=0.0
    )


def groups(settings: MPRankTable1) -> list[tuple[int, int]]:
    """Return the least and most ratings of the reference reviewers of each group."""
    limits = settings.group_limits
    return list(pairwise(limits))


def sample(study: Study, name: str) -> Sample:
    """Draw the test reviewers and the held-out reviewers."""
    settings: MPRankTable1 = study.settings
    eligible = users_between(study.data[name], settings.test_min, settings.test_max)
    return draw_reviewers(
        study, eligible, held_out=settings.held_out, repeats=settings.repeats,
        size=settings.test_reviewers, keys=(name,),
    )  # fmt: skip


def pilot_units(study: Study) -> list[Unit]:
    """Return a unit per data set, group and held-out reviewer."""
    return [
        (_DATA.index(name), group, int(user))
        for name in study.data
        for user in sample(study, name).held_out
        for group in range(len(groups(study.settings)))
    ]


def units(study: Study) -> list[Unit]:
    """Return a unit per data set, repeat, test reviewer and group."""
    return [
        (_DATA.index(name), group, int(user), repeat)
        for name in study.data
        for repeat, users in enumerate(sample(study, name).repeats)
        for user in users
        for group in range(len(groups(study.settings)))
    ]


def run_pilot(study: Study, unit: Unit) -> list[Result]:
    """Try all parameters on a held-out reviewer."""
    place, group, user = unit
    part = _part(study, _DATA[place], group)
    problem = _problem(study, _DATA[place], group, user)
    target = str(study.data[_DATA[place]].user_ids[user])
    return trial_results(problem, candidates(study.settings, part), part=part, target=target)


def run_unit(study: Study, unit: Unit) -> list[Result]:
    """Learn from half of a test reviewer's ratings and measure on the other half."""
    place, group, user, repeat = unit
    part = _part(study, _DATA[place], group)
    problem = _problem(study, _DATA[place], group, user)
    constant = {_CONSTANT: np.zeros(len(problem.test_ratings))}
    scores = constant | chosen_scores(problem, study.chosen[part])
    target = str(study.data[_DATA[place]].user_ids[user])
    return results_of(scores, problem, part=part, repeat=repeat, target=target)


def candidates(settings: MPRankTable1, part: str) -> Candidates:
    """Return the parameters to choose from in a part."""
    jester = part.startswith("Jester")
    scale = settings.jester_scale if jester else 1.0
    gammas = settings.jester_gammas if jester else settings.movielens_gammas
    epsilons = [scale * epsilon for epsilon in settings.epsilons]
    return Candidates(settings.Cs, gammas, epsilons, settings.rounds)


def choose_parameters(study: Study, results: Sequence[Result]) -> dict[str, object]:
    """Return each part's parameters, by method."""
    parts: dict[str, list[Result]] = {}
    for result in results:
        parts.setdefault(result.part, []).append(result)
    chosen: dict[str, object] = {}
    for part, of_part in parts.items():
        chosen |= choose(of_part, candidates(study.settings, part))
    return chosen


def published(settings: MPRankTable1) -> list[Published]:
    """Return the paper's tables; intervals are standard deviations over its ten repeats."""
    return [
        figure
        for part, metric, *figures in _FIGURES
        for source in (_SECOND if metric == "misranking" else _SOURCE,)
        for figure in published_figures(part, metric, figures, source)
    ]


def claims(settings: MPRankTable1) -> list[Claim]:
    """Return the paper's statements on the learners, and ours."""
    parts = [f"{name} {low}-{high}" for name in _DATA for low, high in groups(settings)]
    # the second table lacks two groups: for these the statement is ours
    in_second = {part for part, metric, *_ in _FIGURES if metric == "misranking"}
    return [
        Claim(text, metric, lower, higher, part=part, source=source)
        for part in parts
        for text, metric, lower, higher, source in (
            ("MPRank has the least MSD", "MSD", "MPRank", "SVRank", _SOURCE),
            ("SVRank has less MSD than RankBoost", "MSD", "SVRank", "RankBoost", _SOURCE),
            ("MPRank has less M1D than RankBoost", "M1D", "MPRank", "RankBoost", _SOURCE),
            ("MPRank has less M1D than SVRank", "M1D", "MPRank", "SVRank", _SOURCE),
            (
                "MPRank misranks less",
                "misranking",
                "MPRank",
                "RankBoost",
                _SECOND if part in in_second else "ours",
            ),
            ("MPRank beats a constant", "MSD", "MPRank", _CONSTANT, "ours"),
        )
    ]


def _part(study: Study, name: str, group: int) -> str:
    low, high = groups(study.settings)[group]
    return f"{name} {low}-{high}"


def _problem(study: Study, name: str, group: int, user: int) -> Problem:
    ratings = study.data[name]
    reviewers = users_between(ratings, *groups(study.settings)[group])
    return draw_problem(study, ratings, user, reviewers, study.settings.references, group)


EXPERIMENT = Experiment(
    name="mprank_table1",
    title="MPRank, SVRank and RankBoost on MovieLens and Jester",
    source="Cortes, Mohri and Rastogi, tables 1 and 2",
    about=(
        "Learners learn from half of a test reviewer's ratings and predict the other half. The "
        "features of items are the ratings of reference reviewers, drawn for every test reviewer "
        "from a group of reviewers with similar numbers of ratings. A repeat is the mean over its "
        "test reviewers; shown are mean and standard deviation over the repeats."
    ),
    settings=MPRankTable1,
    pilot=Pilot(pilot_units, run_pilot, choose_parameters),
    units=units,
    run_unit=run_unit,
    needs=lambda settings: (
        Need("MovieLens", (MOVIELENS_1M,)),
        Need("Jester", (JESTER,)),
    ),
    published=published,
    claims=claims,
    average="repeat",
    deviations=(
        "MovieLens-1M is the version published today. Of Jester only part 1 is used, whose users "
        "rated 36 jokes or more, so the group 20-40 has reviewers with 36 to 40 ratings, which "
        "vary less.",
        "No test reviewer is in two repeats or among the reviewers on whom parameters are chosen. "
        "Parameters are chosen for each group of reference reviewers.",
        "The numbers after ± in the paper are standard deviations over its repeats; intervals here "
        "are intervals of the mean.",
    ),
    explanations=(
        "RankBoost's MSD and M1D depend on its number of rounds, because its scores grow with "
        "every round. Misranking on held-out reviewers falls up to the largest number of rounds "
        "tried, which is chosen. After 100 rounds MSD and M1D are near the published ones on "
        "MovieLens. The published figures are shown in both rows, and count only for the chosen "
        "rounds.",
        "RankBoost misranks more than published in the group 40-60. Its rankers are thresholds on "
        "single reviewers: items that none of the 300 distinguishes tie, and by the paper's (69) a "
        "tied pair is misranked. The table shows the tied pairs: where there are many, they decide "
        "the figure. If ties were broken at random, as the rounding errors of another "
        "implementation may do, RankBoost would be far below the published figure.",
        "SVRank's published MSD and M1D on MovieLens are above those of a constant, which is in "
        "the table. Here its settings are chosen by the M1D, and some of them give almost a "
        "constant, so it is never much worse than a constant.",
        "MPRank's M1D on MovieLens-1M, 1.06, is above a constant's on the same reviewers, 1.046 ± "
        "0.013, and the published 1.04 of two groups is below that. An M1D at or below the "
        "published one in all groups was expected and is not reached. The parameters are chosen by "
        "the MSD alone, as in the paper; 'MPRank by M1D' chooses among the same by the M1D. The "
        "paper calls the M1D of MPRank and SVRank comparable; in its table MPRank's is lower.",
        "On Jester, all figures depend on the spread of the ratings: compare them with the "
        "constant's.",
    ),
)
