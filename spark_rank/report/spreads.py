"""The spread of a metric over test users: a bar per part and method, from quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from spark_rank.report.numbers import shown
from spark_rank.report.page import Plot
from spark_rank.report.plots import COLOURS, INK, dress, logarithmic, new_figure, plain, to_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)
_AXIS = "5 to 95 % of users; bar: 25 to 75 %; stroke: median; diamond: mean"
_ROW, _MARGIN, _LEAST = 0.19, 1.25, 1.9  # inches
# the largest ratio on a linear axis; ratings of 1 to 5 beside −10 to 10 exceed it
_WIDE = 30.0


@dataclass(frozen=True)
class Spread:
    """Quantiles, at `SHARES`, of the users' means of a metric, and the mean of these means."""

    part: str
    metric: str
    method: str
    users: int
    mean: float
    quantiles: tuple[float, ...]


def spread_plot(metric: str, spreads: Sequence[Spread]) -> Plot:
    """Return one picture of a metric's spreads, in the order given; each method has a colour.

    With one part, the bars are labelled by method; with several, by part, and a legend names the
    methods.
    """
    methods = list(dict.fromkeys(one.method for one in spreads))
    parts = list(dict.fromkeys(one.part for one in spreads))
    several = len(parts) > 1
    # a gap between parts
    places = [number + parts.index(one.part) for number, one in enumerate(spreads)]
    height = max(_LEAST, _MARGIN + _ROW * (places[-1] + 1))
    figure = new_figure(7.2, height)
    axes = figure.add_subplot()
    for place, one in zip(places, spreads, strict=True):
        _draw(axes, place, one, COLOURS[methods.index(one.method) % len(COLOURS)])
    limits = _limits(axes, spreads)
    dress(axes, f"{metric} by test user", _AXIS, "", limits)
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0.0)
    axes.grid(visible=False, axis="y")
    if several:
        middles = [_middle(spreads, places, part) for part in parts]
        axes.set_yticks(middles, [plain(part) for part in parts])
        # beside the bars, which leave no corner free
        handles, labels = axes.get_legend_handles_labels()
        named = dict(zip(labels, handles, strict=True))
        axes.legend(named.values(), named.keys(), frameon=False, labelcolor=INK, fontsize=9,
                    loc="center left", bbox_to_anchor=(1.0, 0.5))  # fmt: skip
    else:
        axes.set_yticks(places, [plain(one.method) for one in spreads])
        axes.legend(handles=[], frameon=False)
    return Plot(to_svg(figure), _in_words(metric, spreads, several=several))


def _draw(axes: Axes, place: int, one: Spread, colour: str) -> None:
    least, low, median, high, most = one.quantiles
    axes.plot([least, most], [place, place], color=colour, linewidth=1.2)
    axes.barh(place, high - low, left=low, height=0.7, color=colour, alpha=0.45,
              label=plain(one.method))  # fmt: skip
    axes.plot([median, median], [place - 0.35, place + 0.35], color=colour, linewidth=2.2)
    axes.plot(one.mean, place, marker="D", markersize=3.5, color=INK, linewidth=0.0)


def _limits(axes: Axes, spreads: Sequence[Spread]) -> tuple[float, float]:
    """Return the ends of the axis, which is logarithmic if a linear one would hide small values."""
    least = min(one.quantiles[0] for one in spreads)
    most = max(one.quantiles[-1] for one in spreads)
    if most > _WIDE * least > 0.0:
        axes.set_xscale("log")
        logarithmic(axes.xaxis, (least, most))
    return axes.get_xlim()


def _middle(spreads: Sequence[Spread], places: Sequence[int], part: str) -> float:
    part_places = [place for place, one in zip(places, spreads, strict=True) if one.part == part]
    return sum(part_places) / len(part_places)


def _in_words(metric: str, spreads: Sequence[Spread], *, several: bool) -> str:
    """Return the medians, part by part, for the text below the picture."""
    medians = [
        (f"{part}: " if several else "")
        + ", ".join(f"{one.method} {shown(one.quantiles[2], '.3g')}" for one in part_spreads)
        for part, part_spreads in groupby(spreads, key=lambda one: one.part)
    ]
    return f"{metric} by test user; medians: {'; '.join(medians)}."
