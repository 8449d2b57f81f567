"""Plots as inline SVG, readable on a light and on a dark page."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spark_rank.report.numbers import shown

if TYPE_CHECKING:  # imported where a plot is drawn: that takes half a second
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

# one grey for text and lines that has contrast on white and on near-black
INK = "#7a7f87"
COLOURS = (
    "#3b82c4", "#e08a1e", "#3f9c6b", "#b0568f", "#8a6fd1",
    "#c25048", "#2aa3a3", "#9a8a2c", "#6b7fd7", "#8c6d5a",
)  # fmt: skip
_FEW_DECADES = 1000.0  # a logarithmic axis this short has labels at 2 and 5 too
_LONG = 1e7  # the first number that a tick shows as a power
# the learners that matter are drawn on top of the baselines, which are drawn as thin lines
_BASELINE_STYLES = ("--", ":")


@dataclass(frozen=True)
class Histogram:
    """Shares of users per bin for one learner; `edges` has one entry more than `shares`.

    `position` is the learner's place in the run: its colour, the same in every plot.
    """

    label: str
    position: int
    baseline: bool
    mean: float | None
    edges: Sequence[float]
    shares: Sequence[float]


@dataclass(frozen=True)
class Curve:
    """A line of one learner; `position` is its place in the run: its colour."""

    label: str
    position: int
    baseline: bool
    x: Sequence[float]
    y: Sequence[float]


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure; the sizes are in inches."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def curves_svg(title: str, x_axis: str, y_axis: str, curves: Sequence[Curve]) -> str:
    """Return curves between 0 and 1 on a square, with the diagonal."""
    figure = new_figure(5.2, 4.6)
    axes = figure.add_subplot()
    axes.plot([0.0, 1.0], [0.0, 1.0], color=INK, linewidth=0.7, alpha=0.6)
    styles = iter(_BASELINE_STYLES)
    for curve in curves:
        axes.plot(
            curve.x,
            curve.y,
            color=COLOURS[curve.position % len(COLOURS)],
            linewidth=1.3 if curve.baseline else 2.0,
            linestyle=next(styles, "-.") if curve.baseline else "-",
            label=plain(curve.label),
        )
    axes.set_aspect("equal")
    axes.set_ylim(0.0, 1.0)
    dress(axes, title, x_axis, y_axis, (0.0, 1.0))
    return to_svg(figure)


def histogram_svg(title: str, axis: str, histograms: Sequence[Histogram]) -> str:
    """Return the distributions over users of one metric, as steps with the means marked."""
    figure = new_figure(7.2, 3.3)
    axes = figure.add_subplot()
    styles = iter(_BASELINE_STYLES)
    for histogram in histograms:
        colour = COLOURS[histogram.position % len(COLOURS)]
        mean = "" if histogram.mean is None else f" (mean {histogram.mean:.3f})"
        axes.stairs(
            histogram.shares,
            histogram.edges,
            color=colour,
            fill=False,
            linewidth=1.3 if histogram.baseline else 2.0,
            linestyle=next(styles, "-.") if histogram.baseline else "-",
            label=f"{plain(histogram.label)}{mean}",
        )
        if not histogram.baseline:
            axes.stairs(histogram.shares, histogram.edges, color=colour, fill=True, alpha=0.15)
        if histogram.mean is not None:
            axes.axvline(histogram.mean, color=colour, linewidth=0.9, alpha=0.8)
    axes.set_ylim(bottom=0.0)
    ends = (histograms[0].edges[0], histograms[0].edges[-1])
    dress(axes, title, axis, "share of users", ends)
    return to_svg(figure)


def dress(axes: Axes, title: str, x_axis: str, y_axis: str, x_limits: tuple[float, float]) -> None:
    """Give the axes their titles, limits, legend and ink."""
    axes.set_title(title, color=INK, fontsize=11)
    axes.set_xlabel(x_axis, color=INK)
    axes.set_ylabel(y_axis, color=INK)
    axes.set_xlim(*x_limits)
    axes.tick_params(which="both", colors=INK)
    axes.grid(alpha=0.2)
    for spine in axes.spines.values():
        spine.set_color(INK)
    legend = axes.legend(frameon=False, labelcolor=INK, fontsize=9)
    legend.set_in_layout(True)


def logarithmic(axis: Axis, limits: tuple[float, float]) -> None:
    """Give an axis with a logarithmic scale plain labels: 300 and not 3 × 10²."""
    few = limits[1] / limits[0] < _FEW_DECADES
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value)))
    axis.set_minor_formatter(NullFormatter())


def _tick(value: float) -> str:
    return f"{value:,.0f}" if 1.0 <= value < _LONG else shown(value)


def plain(label: str) -> str:
    """Return the label so that matplotlib shows it unchanged."""
    # a leading underscore hides a label, dollars make it a formula
    return "\u200b" + label.replace("$", r"\$")


def to_svg(figure: Figure) -> str:
    """Return the figure as an SVG element."""
    buffer = io.StringIO()
    # a fixed salt and no date: the same run draws the same bytes
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "spark_rank", "svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]
