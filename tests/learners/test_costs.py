"""What a model costs: more ratings or features are more, and every learner has a cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from spark_rank.learners import PER_USER, Learner
from spark_rank.learners.costs import kernel_of, model_cost

LIMITS = {"most_kernel": 4000, "landmarks": 500}


@dataclass(frozen=True)
class Asked:
    learner: str
    params: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    selection: str = "sample"


class Undeclared(Learner):
    """Says nothing of what it costs."""


@pytest.mark.parametrize("kernel", ["linear", "rbf", "linear+rbf"])
@pytest.mark.parametrize("name", [*sorted(PER_USER), f"{__name__}:Undeclared"])
def test_every_learner_costs_more_with_more_ratings_and_features(name: str, kernel: str) -> None:
    asked = Asked(name, {"kernel": kernel})
    few, many, wide = (
        model_cost(asked, m, d, **LIMITS) for m, d in ((20, 32), (2000, 32), (2000, 300))
    )
    assert 0.0 < few < many <= wide < math.inf


def test_rounds_are_paid_for() -> None:
    once, ten = (
        model_cost(Asked("rankboost", {"n_rounds": n}), 50, 32, **LIMITS) for n in (100, 1000)
    )
    assert ten == pytest.approx(10 * once)


def test_a_choice_of_every_user_costs_a_fit_a_point_and_one_for_all_none() -> None:
    grid = {"C": [1, 2, 3], "kernel": ["rbf", "poly"]}
    alone = model_cost(Asked("svrank", {"kernel": "rbf"}), 50, 8, **LIMITS)
    own = model_cost(Asked("svrank", {}, grid, "k_fold"), 50, 8, **LIMITS)
    assert own == pytest.approx(7 * alone)
    assert model_cost(Asked("svrank", {}, grid), 50, 8, **LIMITS) == alone


def test_a_kernel_that_may_be_chosen_counts() -> None:
    assert kernel_of(Asked("svrank")) == "linear"
    assert kernel_of(Asked("svrank", grid={"kernel": ["linear", "rbf"]})) == "rbf"


def test_kernels_of_heavy_users_work_on_landmarks() -> None:
    asked = Asked("svrank", {"kernel": "rbf"})
    exact = model_cost(asked, 16_000, 32, most_kernel=16_000, landmarks=500)
    assert model_cost(asked, 16_000, 32, **LIMITS) < exact / 10
