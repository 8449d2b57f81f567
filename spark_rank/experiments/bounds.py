"""Compares generalisation bounds with measured gaps, by the number of training ratings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spark_rank.config.schema import setting
from spark_rank.experiments.data_sets import MOVIELENS_1M, MOVIELENS_100K
from spark_rank.experiments.frame import Claim, Curve, Experiment, Need, Result, Study, Unit
from spark_rank.experiments.reviewer_problems import (
    draw_problem,
    draw_reviewers,
    users_between,
)
from spark_rank.learners import MPRank
from spark_rank.learners.kernels import Kernel
from spark_rank.metrics import (
    margin_bound,
    margin_loss,
    mean_squared_difference,
    pairwise_misranking,
    stability_bound,
)

_MSD_GAP, _RANK_GAP = "MSD above the training MSD", "misranking above the margin loss"
_MEASURED, _STABILITY, _MARGIN = "measured", "stability bound", "margin bound"
_TRIVIAL, _EMPIRICAL = "worst on the scale", "training and held-out cost"


@dataclass(frozen=True)
class Bounds:
    """Settings of `bounds`."""

    users: int = setting(
        100, "reviewers with at least twice the largest size of ratings", at_least=1
    )
    sizes: list[int] = setting([10, 20, 40, 80, 160, 320], "training ratings")
    references: int = setting(300, "reference reviewers", at_least=1)
    reference_min: int = setting(60, "least ratings of a reference reviewer", at_least=1)
    reference_max: int = setting(80, "most ratings of a reference reviewer", at_least=1)
    C: float = setting(30.0, "trade-off", above=0.0)
    gamma: float = setting(0.01, "width of the Gaussian", above=0.0)
    margin: float = setting(0.5, "margin of the margin bound", above=0.0)
    delta: float = setting(0.05, "chance that a bound fails", above=0.0, at_most=0.5)


def units(study: Study) -> list[Unit]:
    """Return a unit per reviewer with enough ratings."""
    settings: Bounds = study.settings
    ratings = study.data["ratings"]
    eligible = users_between(ratings, 2 * max(settings.sizes), ratings.n_items)
    size = min(settings.users, len(eligible))
    drawn = draw_reviewers(study, eligible, held_out=0, repeats=1, size=size, keys=("bounds",))
    return [(int(user),) for user in drawn.repeats[0]]


def run_unit(study: Study, unit: Unit) -> list[Result]:
    """Learn from the first m ratings, for every size m; the held-out half stays the same."""
    ratings, settings, (user,) = study.data["ratings"], study.settings, unit
    reviewers = users_between(ratings, settings.reference_min, settings.reference_max)
    problem = draw_problem(study, ratings, user, reviewers, settings.references)
    scale = float(ratings.levels[-1] - ratings.levels[0])
    results = []
    for m in settings.sizes:
        X, y = problem.X[:m], problem.y[:m]
        model = MPRank(settings.C, kernel="rbf", gamma=settings.gamma, solver="dual").fit(X, y)
        train, test = model.decision_function(X), model.decision_function(problem.test_items)
        gaps = _msd_gap(settings, m, train, y, test, problem.test_ratings, scale)
        alpha = np.asarray(model.dual_coef_)
        squared_norm = float(alpha @ Kernel("rbf", settings.gamma)(X, X) @ alpha)
        norm = float(np.sqrt(max(squared_norm, 0.0)))
        gaps |= _rank_gap(settings, m, norm, train, y, test, problem.test_ratings)
        target = str(ratings.user_ids[user])
        results += [
            Result(method, metric, value, x=float(m), target=target,
                   detail="ratings are all equal" if value is None else None)
            for (metric, method), value in gaps.items()
        ]  # fmt: skip
    return results


def _msd_gap(
    settings: Bounds, m: int, train: np.ndarray, y: np.ndarray, test: np.ndarray,
    test_ratings: np.ndarray, scale: float,
) -> dict[tuple[str, str], float | None]:  # fmt: skip
    """Return how much larger the held-out MSD is, and how much larger it may be by the bounds.

    κ² is 1. ‖w‖² ≤ C·R̂(0) ≤ C·scale² holds for any ratings, so a score differs from the middle of
    the targets by at most κ√C·scale.
    """
    on_training, on_test = (
        mean_squared_difference(train, y),
        mean_squared_difference(test, test_ratings),
    )
    assert on_training is not None
    assert on_test is not None
    M = scale * (1.0 + np.sqrt(settings.C))
    bound = stability_bound(
        on_training, m=m, C=settings.C, kappa_squared=1.0, M=float(M), delta=settings.delta, power=2
    )
    return {
        (_MSD_GAP, _MEASURED): on_test - on_training,
        (_MSD_GAP, _STABILITY): bound - on_training,
        (_MSD_GAP, _TRIVIAL): scale**2 - on_training,
        (_EMPIRICAL, "training MSD"): on_training,
        (_EMPIRICAL, "held-out MSD"): on_test,
    }


def _rank_gap(
    settings: Bounds, m: int, norm: float, train: np.ndarray, y: np.ndarray, test: np.ndarray,
    test_ratings: np.ndarray,
) -> dict[tuple[str, str], float | None]:  # fmt: skip
    """Return these gaps of the misranking; half as many pairs as ratings are independent."""
    loss, misranked = (
        margin_loss(train, y, settings.margin),
        pairwise_misranking(test, test_ratings),
    )
    if loss is None or misranked is None:
        return {(_RANK_GAP, method): None for method in (_MEASURED, _MARGIN)}
    bound = margin_bound(
        loss, m=max(m // 2, 1), rho=settings.margin, radius=1.0, norm_bound=norm,
        delta=settings.delta,
    )  # fmt: skip
    return {(_RANK_GAP, _MEASURED): misranked - loss, (_RANK_GAP, _MARGIN): bound - loss}


def claims(settings: Bounds) -> list[Claim]:
    """Return the claims that the bounds hold, at the smallest and the largest size."""
    ends = dict.fromkeys((min(settings.sizes), max(settings.sizes)))
    return [
        Claim(text, metric, _MEASURED, bound, x=float(m), source=source)
        for m in ends
        for text, metric, bound, source in (
            ("the gap is below the stability bound", _MSD_GAP, _STABILITY,
             "Cortes, Mohri and Rastogi, corollary 1"),
            ("the gap is below the margin bound", _RANK_GAP, _MARGIN, "Mohri, lecture"),
        )
    ]  # fmt: skip


EXPERIMENT = Experiment(
    name="bounds",
    title="Generalisation bounds against measured gaps",
    source="Cortes, Mohri and Rastogi, section 3; Mohri, lecture on ranking",
    about=(
        "MPRank with a fixed trade-off, learned from an increasing number of a reviewer's ratings. "
        "Shown is how much larger its cost is on held-out ratings, and how much larger the bounds "
        "allow it to be with probability 95 %. κ is 1 for the Gaussian."
    ),
    settings=Bounds,
    units=units,
    run_unit=run_unit,
    needs=lambda settings: (Need("ratings", (MOVIELENS_1M, MOVIELENS_100K)),),
    claims=claims,
    curves=(
        Curve(
            _MSD_GAP,
            "MSD: gap and bound",
            "training ratings",
            "held-out − training",
            log_x=True,
            log_y=True,
        ),
        Curve(
            _RANK_GAP,
            "Misranking: gap and bound",
            "training ratings",
            "held-out − margin loss",
            log_x=True,
        ),
        Curve(_EMPIRICAL, "MSD", "training ratings", "MSD", log_x=True),
    ),
    deviations=(
        "The sources give no figures. The experiment tests that the bounds hold, and shows that "
        "they fall as 1/√m.",
        "The margin bound is for independent pairs, so it uses half the number of ratings, and "
        "the norm of the learned model.",
    ),
    explanations=(
        "At these sizes the stability bound is far above the worst error of any prediction on the "
        "scale: it falls as 1/√m from a constant of the order of C·M², and M, the greatest error "
        "of a score, grows with √C.",
    ),
)
