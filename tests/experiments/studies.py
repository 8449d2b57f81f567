"""Studies for tests: an experiment with given settings, and generated ratings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from spark_rank.config.values import convert
from spark_rank.experiments import EXPERIMENTS
from spark_rank.experiments.frame import Result, Study
from spark_rank.experiments.rating_set import RatingSet


def study_of(
    name: str,
    settings: Mapping[str, Any],
    data: Mapping[str, RatingSet] | None = None,
    seed: int = 0,
) -> Study:
    converted = convert(EXPERIMENTS[name].settings, dict(settings), "experiment.settings")
    return Study(name, converted, seed, data or {})


def run_all(study: Study) -> list[list[Result]]:
    """Run every unit, one after another."""
    experiment = EXPERIMENTS[study.experiment]
    return [list(experiment.run_unit(study, unit)) for unit in experiment.units(study)]


def generated_ratings(n_users: int, n_items: int, seed: int = 0, levels: int = 5) -> RatingSet:
    """Return ratings by a taste of two factors; later users have rated more."""
    rng = np.random.default_rng(seed)
    scores = rng.standard_normal((n_users, 2)) @ rng.standard_normal((2, n_items))
    scores += 0.3 * rng.standard_normal(scores.shape)
    edges = np.quantile(scores, np.linspace(0, 1, levels + 1)[1:-1])
    users, items, ratings = [], [], []
    for user in range(n_users):
        size = 2 + (n_items - 2) * (user + 1) // n_users
        for item in rng.permutation(n_items)[:size].tolist():
            users.append(str(user + 1))
            items.append(str(item + 1))
            ratings.append(1.0 + np.searchsorted(edges, scores[user, item]))
    return RatingSet.from_columns("generated", users, items, ratings)
