"""The picture of the ellipses: who predicts which rank where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from spark_rank.experiments.prank_ellipses import HALF_WIDTH, N_RANKS, POINT_METRICS, REGION
from spark_rank.report.page import Plot
from spark_rank.report.plots import INK, to_svg

# light to dark in even steps, so that ranks can be told apart in grey too
_COLOURS = ListedColormap(["#f3e9b5", "#a8d5a2", "#55b3a8", "#2f7fa8", "#3b4a8c"])
_MARKERS = ("o", "s", "^", "D", "v")


def ellipses(results: Sequence[Mapping[str, Any]]) -> list[Plot]:
    """Return the regions of every method side by side, with the training points."""
    regions: dict[str, list[float]] = {}
    columns: dict[str, list[float]] = {metric: [] for metric in POINT_METRICS}
    for row in sorted(
        (row for row in results if row["x"] is not None), key=lambda r: float(r["x"])
    ):
        if row["metric"] == REGION:
            regions.setdefault(row["method"], []).append(row["value"])
        elif row["metric"] in columns:
            columns[row["metric"]].append(row["value"])
    figure = Figure(figsize=(3.2 * len(regions), 3.3), layout="constrained")
    for axes, (name, ranks) in zip(
        figure.subplots(1, len(regions), squeeze=False)[0], regions.items(), strict=True
    ):
        grid = int(np.sqrt(len(ranks)))
        ends = (-HALF_WIDTH, HALF_WIDTH, -HALF_WIDTH, HALF_WIDTH)
        axes.imshow(
            np.reshape(ranks, (grid, grid)), extent=ends, origin="lower", cmap=_COLOURS,
            vmin=0.5, vmax=N_RANKS + 0.5, interpolation="nearest",
        )  # fmt: skip
        _draw_points(axes, *map(np.asarray, columns.values()))
        axes.set_title(name, color=INK, fontsize=11)
        axes.set_xticks([])
        axes.set_yticks([])
        for spine in axes.spines.values():
            spine.set_color(INK)
    words = (
        f"Regions of the ranks 1 (light) to {N_RANKS} (dark) as predicted by "
        f"{', '.join(regions)}, with the training points of the first training set; every rank "
        "has a marker of its own."
    )
    return [Plot(to_svg(figure), words)]


def _draw_points(axes: Any, x: Any, y: Any, ranks: Any) -> None:
    for rank, marker in enumerate(_MARKERS, start=1):
        own = ranks == rank
        axes.scatter(
            x[own], y[own], marker=marker, s=16, color=_COLOURS(rank - 1), edgecolors="#1d2127",
            linewidths=0.8,
        )  # fmt: skip
