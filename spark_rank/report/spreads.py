"""How a metric spreads over test users: a bar per part and method, from quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from spark_rank.report.numbers import shown
from spark_rank.report.page import Plot
from spark_rank.report.plots import COLOURS, INK, logarithmic, plain, to_svg

SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)
_ROW, _MARGIN, _LEAST = 0.19, 1.25, 1.9  # inches
_WIDE = 30.0


@dataclass(frozen=True)
class Spread:
    """Quantiles, at `SHARES`, of the users' own means of a metric, and the mean of these."""

    part: str
    metric: str
    method: str
    users: int
    mean: float
    quantiles: tuple[float, ...]


def spread_plot(metric: str, spreads: Sequence[Spread]) -> Plot:
    """Return one picture of a metric's spreads, in the order given; methods keep their colours."""
    methods = list(dict.fromkeys(one.method for one in spreads))
    parts = list(dict.fromkeys(one.part for one in spreads))
    # a gap between parts
    places = [number + parts.index(one.part) for number, one in enumerate(spreads)]
    height = max(_LEAST, _MARGIN + _ROW * (places[-1] + 1))
    figure = Figure(figsize=(7.2, height), layout="constrained")
    axes = figure.add_subplot()
    for place, one in zip(places, spreads, strict=True):
        colour = COLOURS[methods.index(one.method) % len(COLOURS)]
        least, low, median, high, most = one.quantiles
        axes.plot([least, most], [place, place], color=colour, linewidth=1.2)
        axes.barh(place, high - low, left=low, height=0.7, color=colour, alpha=0.45)
        axes.plot([median, median], [place - 0.35, place + 0.35], color=colour, linewidth=2.2)
        axes.plot(one.mean, place, marker="D", markersize=3.5, color=INK, linewidth=0.0)
    middles = [
        sum(own) / len(own)
        for part in parts
        for own in [[p for p, one in zip(places, spreads, strict=True) if one.part == part]]
    ]
    ends = min(one.quantiles[0] for one in spreads), max(one.quantiles[-1] for one in spreads)
    if ends[1] > _WIDE * ends[0] > 0.0:  # such as rating scales of 1 to 5 beside −10 to 10
        axes.set_xscale("log")
        logarithmic(axes.xaxis, ends)
    axes.set_yticks(middles, [plain(part) for part in parts] if len(parts) > 1 else [""])
    axes.invert_yaxis()
    axes.set_title(f"{metric} by test user", color=INK, fontsize=11)
    axes.set_xlabel("5 to 95 % of users; bar: 25 to 75 %; stroke: median; diamond: mean", color=INK)
    axes.tick_params(colors=INK)
    axes.tick_params(axis="y", length=0.0)
    axes.grid(axis="x", alpha=0.2)
    for spine in axes.spines.values():
        spine.set_color(INK)
    lines = [
        Line2D([], [], color=COLOURS[number % len(COLOURS)], linewidth=5, label=plain(method))
        for number, method in enumerate(methods)
    ]
    # beside the bars, which leave no corner free
    axes.legend(handles=lines, frameon=False, labelcolor=INK, fontsize=9, loc="center left",
                bbox_to_anchor=(1.0, 0.5))  # fmt: skip
    return Plot(to_svg(figure), _in_words(metric, spreads, several=len(parts) > 1))


def _in_words(metric: str, spreads: Sequence[Spread], *, several: bool) -> str:
    """Return the medians, part by part: the words stand below the picture, too."""
    told = [
        (f"{part}: " if several else "")
        + ", ".join(f"{one.method} {shown(one.quantiles[2], '.3g')}" for one in own)
        for part, own in groupby(spreads, key=lambda one: one.part)
    ]
    return f"{metric} by test user; medians: {'; '.join(told)}."
