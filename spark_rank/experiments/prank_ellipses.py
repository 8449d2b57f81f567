"""The slides' illustration: decision regions of three learners on five concentric ellipses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spark_rank.config.schema import setting
from spark_rank.experiments.frame import Claim, Experiment, Result, Study, Unit
from spark_rank.learners import MulticlassPerceptron, PRank, WidrowHoff
from spark_rank.learners.feature_maps import polynomial_features

N_RANKS = 5
POINT_METRICS = ("point x", "point y", "point rank")
REGION = "region"
_SOURCE = "Crammer, slides on PRank, slide 33"
_LOSS = "rank loss over the plane"
_SHAPE = np.array([1.0, 0.6])  # half axes of the outermost ellipse
HALF_WIDTH = 1.1  # half the width of the picture

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Drawn(NamedTuple):
    """Training points and their ranks."""

    points: FloatArray
    ranks: IntArray


@dataclass(frozen=True)
class PRankEllipses:
    """Settings of `prank_ellipses`."""

    repeats: int = setting(100, "training sets; the picture shows the first", at_least=1)
    points: int = setting(50, "points of a training set, equally many per ellipse", at_least=5)
    passes: int = setting(200, "passes over the training set", at_least=1, at_most=100_000)
    eta: float = setting(0.2, "step size of Widrow-Hoff", above=0.0)
    grid: int = setting(80, "cells along a side of the picture", at_least=10, at_most=500)


def units(study: Study) -> Sequence[Unit]:
    """Return a unit per training set."""
    return [(repeat,) for repeat in range(study.settings.repeats)]


def run_unit(study: Study, unit: Unit) -> list[Result]:
    """Learn a training set; measure the loss over the cells within the outermost ellipse."""
    settings, (repeat,) = study.settings, unit
    drawn = draw_ellipses(study.generator("points", repeat), settings.points)
    cells = cell_centres(settings.grid)
    truth, inside = true_ranks(cells), _radius(cells) <= 1.0
    results = _points(drawn) if repeat == 0 else []
    for name, learner in _learners(settings).items():
        learner.fit(polynomial_features(drawn.points), drawn.ranks)
        regions = learner.predict(polynomial_features(cells))
        loss = np.abs(regions - truth)[inside].mean()
        results.append(Result(name, _LOSS, float(loss), repeat=repeat))
        if repeat == 0:
            results += [
                Result(name, REGION, float(rank), x=float(cell))
                for cell, rank in enumerate(regions)
            ]
    return results


def draw_ellipses(rng: np.random.Generator, n_points: int) -> Drawn:
    """Draw points on five ellipses, in random order; the outermost ellipse has rank 5."""
    ranks = 1 + np.arange(n_points) % N_RANKS
    angles = 2.0 * np.pi * rng.random(n_points)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    points = circle * _SHAPE * (ranks / N_RANKS)[:, None]
    order = rng.permutation(n_points)
    return Drawn(points[order], ranks[order])


def cell_centres(grid: int) -> FloatArray:
    """Return the centres of the picture's cells, row by row from the bottom."""
    ticks = HALF_WIDTH * (2.0 * (np.arange(grid) + 0.5) / grid - 1.0)
    x, y = np.meshgrid(ticks, ticks)
    return np.column_stack([x.ravel(), y.ravel()])


def true_ranks(points: FloatArray) -> IntArray:
    """Return the rank of the ellipse that is nearest in scale."""
    return np.clip(np.rint(N_RANKS * _radius(points)), 1, N_RANKS).astype(np.int64)


def _radius(points: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.norm(points / _SHAPE, axis=1))


def _learners(settings: PRankEllipses) -> dict[str, PRank | MulticlassPerceptron | WidrowHoff]:
    passes = settings.passes
    return {
        "PRank": PRank(N_RANKS, epochs=passes),
        "MCP": MulticlassPerceptron(N_RANKS, epochs=passes),
        "WH": WidrowHoff(N_RANKS, eta=settings.eta, epochs=passes),
    }


def _points(drawn: Drawn) -> list[Result]:
    columns = (drawn.points[:, 0], drawn.points[:, 1], drawn.ranks)
    return [
        Result("training set", metric, float(value), x=float(place))
        for metric, values in zip(POINT_METRICS, columns, strict=True)
        for place, value in enumerate(values)
    ]


def claims(settings: PRankEllipses) -> list[Claim]:
    """Return the statements that the picture of the slides shows."""
    return [
        Claim(f"PRank's regions are closer to the ellipses than {name}'s", _LOSS, "PRank", name,
              source=_SOURCE)
        for name in ("MCP", "WH")
    ]  # fmt: skip


EXPERIMENT = Experiment(
    name="prank_ellipses",
    title="Five concentric ellipses",
    source=_SOURCE,
    about=(
        "Points lie on five concentric ellipses; the innermost has rank 1. Ranking, "
        "classification and regression learn them with the features of the polynomial kernel of "
        "degree 2. The picture shows the rank that each predicts at every place. The table shows "
        "how far that is from the rank of the nearest ellipse, on average within the outermost one."
    ),
    settings=PRankEllipses,
    units=units,
    run_unit=run_unit,
    claims=claims,
    deviations=(
        "The slides only show a picture: the axes of the ellipses, the number of passes, the step "
        "of Widrow-Hoff and the loss over the plane are ours.",
    ),
)
