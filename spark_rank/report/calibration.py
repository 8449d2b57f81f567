"""Whether predicted ratings are right on average: the mean rating of what was predicted alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spark_rank.report.learner_order import in_order
from spark_rank.report.numbers import shown
from spark_rank.report.page import Cell, Plot, Section, Table
from spark_rank.report.plots import COLOURS, INK, dress, new_figure, plain, to_svg

_MARKERS = "osD^vP"
_LEAST_MARK, _LARGEST_MARK = 6.0, 260.0  # areas, in square points


@dataclass(frozen=True)
class CalibrationPoint:
    """Held-out ratings with nearly the same prediction by a learner: both means, and how many."""

    learner: str
    predicted: float
    rating: float
    ratings: int


def calibration_section(points: Sequence[CalibrationPoint]) -> Section:
    """Return mean rating over prediction, and how far both are apart on average."""
    title = "Calibration of predicted ratings"
    by_learner = {
        name: [point for point in points if point.learner == name]
        for name, _ in in_order(point.learner for point in points)
    }
    if not by_learner:
        return Section(title, ["No learner predicts ratings of held-out items."])
    body = []
    for name, own in by_learner.items():
        total = sum(point.ratings for point in own)
        gap = sum(abs(p.predicted - p.rating) * p.ratings for p in own) / total
        bias = sum((p.predicted - p.rating) * p.ratings for p in own) / total
        body.append([
            Cell(name), Cell(f"{gap:.3f}"), Cell(shown(bias, "+.3f")),
            Cell(f"{total:,}"),
        ])  # fmt: skip
    table = Table(
        ["learner", "mean distance", "mean of predicted − true", "held-out ratings"],
        body,
        "Predictions are put into 20 bins; the distance is between a bin's mean prediction and its "
        "mean rating. Of many users a sample is taken.",
    )
    words = (
        "Mean rating of held-out items by their predicted rating; on the diagonal both are the "
        "same. Larger marks stand for more ratings."
    )
    return Section(title, [Plot(_drawn(by_learner), words, square=True), table])


def _drawn(by_learner: dict[str, list[CalibrationPoint]]) -> str:
    figure = new_figure(5.2, 4.8)
    axes = figure.add_subplot()
    everything = [point for own in by_learner.values() for point in own]
    values = [value for point in everything for value in (point.predicted, point.rating)]
    low, high = min(values), max(values)
    most = max(point.ratings for point in everything)
    axes.plot([low, high], [low, high], color=INK, linewidth=0.7, alpha=0.6)
    for position, (name, own) in enumerate(by_learner.items()):
        x, y = [p.predicted for p in own], [p.rating for p in own]
        colour, marker = COLOURS[position % len(COLOURS)], _MARKERS[position % len(_MARKERS)]
        axes.plot(x, y, color=colour, linewidth=1.0, alpha=0.7, marker=marker, markersize=1.5,
                  label=plain(name))  # fmt: skip
        sizes = [_LEAST_MARK + (_LARGEST_MARK - _LEAST_MARK) * p.ratings / most for p in own]
        axes.scatter(x, y, s=sizes, facecolor=colour, edgecolor=colour, marker=marker, alpha=0.5,
                     linewidths=0.8)  # fmt: skip
    dress(axes, "predicted and true ratings", "predicted", "mean rating", (low, high))
    return to_svg(figure)
