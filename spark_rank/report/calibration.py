"""Whether predicted ratings are right on average: the mean rating at each predicted rating."""

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
    """Held-out ratings with nearly the same prediction: both means, and how many ratings."""

    learner: str
    predicted: float
    rating: float
    ratings: int


def calibration_section(points: Sequence[CalibrationPoint]) -> Section:
    """Return the mean rating over the prediction, and how far the two are apart on average."""
    title = "Calibration of predicted ratings"
    by_learner = {
        name: [point for point in points if point.learner == name]
        for name, _ in in_order(point.learner for point in points)
    }
    if not by_learner:
        return Section(title, ["No learner predicts ratings of held-out items."])
    body = []
    for name, bins in by_learner.items():
        total = sum(point.ratings for point in bins)
        gap = sum(abs(p.predicted - p.rating) * p.ratings for p in bins) / total
        bias = sum((p.predicted - p.rating) * p.ratings for p in bins) / total
        body.append([
            Cell(name), Cell(f"{gap:.3f}"), Cell(shown(bias, "+.3f")),
            Cell(f"{total:,}"),
        ])  # fmt: skip
    table = Table(
        ["learner", "mean distance", "mean of predicted − true", "held-out ratings"],
        body,
        "Predictions are put into 20 bins; the distance is between a bin's mean prediction and its "
        "mean rating. A large run shows a sample of its users.",
    )
    words = (
        "Mean rating of held-out items over their predicted rating; on the diagonal the two are "
        "equal. Larger marks stand for more ratings."
    )
    return Section(title, [Plot(_plot_svg(by_learner), words, square=True), table])


def _plot_svg(by_learner: dict[str, list[CalibrationPoint]]) -> str:
    figure = new_figure(5.2, 4.8)
    axes = figure.add_subplot()
    everything = [point for bins in by_learner.values() for point in bins]
    values = [value for point in everything for value in (point.predicted, point.rating)]
    low, high = min(values), max(values)
    most = max(point.ratings for point in everything)
    axes.plot([low, high], [low, high], color=INK, linewidth=0.7, alpha=0.6)
    for position, (name, bins) in enumerate(by_learner.items()):
        x, y = [p.predicted for p in bins], [p.rating for p in bins]
        colour, marker = COLOURS[position % len(COLOURS)], _MARKERS[position % len(_MARKERS)]
        axes.plot(x, y, color=colour, linewidth=1.0, alpha=0.7, marker=marker, markersize=1.5,
                  label=plain(name))  # fmt: skip
        sizes = [_LEAST_MARK + (_LARGEST_MARK - _LEAST_MARK) * p.ratings / most for p in bins]
        axes.scatter(x, y, s=sizes, facecolor=colour, edgecolor=colour, marker=marker, alpha=0.5,
                     linewidths=0.8)  # fmt: skip
    dress(axes, "predicted and true ratings", "predicted", "mean rating", (low, high))
    return to_svg(figure)
