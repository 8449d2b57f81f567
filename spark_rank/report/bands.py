"""Curves of means with the bands of their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spark_rank.report.plots import COLOURS, INK, dress, logarithmic, new_figure, plain, to_svg

_STYLES = ("-", "--", "-.", ":")


@dataclass(frozen=True)
class Band:
    """A curve with an interval at every point (NaN where there is none).

    `position` is the method's place in the experiment: its colour, the same in every plot.
    """

    label: str
    position: int
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


def bands_svg(
    title: str,
    x_axis: str,
    y_axis: str,
    bands: Sequence[Band],
    *,
    log_x: bool = False,
    log_y: bool = False,
    y_limits: tuple[float, float] | None = None,
) -> str:
    """Return the curves as SVG; each has its own dashes, for readers who do not see colours."""
    figure = new_figure(7.2, 3.8)
    axes = figure.add_subplot()
    for place, band in enumerate(bands):
        colour = COLOURS[band.position % len(COLOURS)]
        style = _STYLES[place % len(_STYLES)]
        # on a logarithmic axis an interval that reaches below 0 has no lower end
        low = np.where(np.asarray(band.low) > 0.0, band.low, band.y) if log_y else band.low
        axes.fill_between(band.x, low, band.high, color=colour, alpha=0.18, linewidth=0.0)
        axes.plot(band.x, band.y, color=colour, linewidth=1.8, linestyle=style,
                  label=plain(band.label))  # fmt: skip
    places = np.concatenate([np.asarray(band.x, dtype=np.float64) for band in bands])
    ends = float(places.min()), float(places.max())
    if log_x:
        axes.set_xscale("log")
        logarithmic(axes.xaxis, ends)
    if log_y:
        axes.set_yscale("log")
        logarithmic(axes.yaxis, axes.get_ylim())
    if y_limits is not None:
        axes.set_ylim(*y_limits)
    dress(axes, title, x_axis, y_axis, ends)
    # beside the curves: with many of them no corner is free
    axes.legend(
        frameon=False, labelcolor=INK, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5)
    )
    return to_svg(figure)
