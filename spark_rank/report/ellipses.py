"""The picture of the experiment with ellipses: the rank that each method predicts where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spark_rank.experiments.prank_ellipses import HALF_WIDTH, N_RANKS, POINT_METRICS, REGION
from spark_rank.report.page import Plot
from spark_rank.report.plots import INK, new_figure, to_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# light to dark in even steps, so that ranks can be told apart in grey too
COLOURS = ("#f3e9b5", "#a8d5a2", "#55b3a8", "#2f7fa8", "#3b4a8c")
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
    figure = new_figure(3.2 * len(regions), 3.3)
    for axes, (name, ranks) in zip(
        figure.subplots(1, len(regions), squeeze=False)[0], regions.items(), strict=True
    ):
        grid = int(np.sqrt(len(ranks)))
        _draw_regions(axes, np.reshape(ranks, (grid, grid)))
        _draw_points(axes, *map(np.asarray, columns.values()))
        axes.set_title(name, color=INK, fontsize=11)
        axes.set_xticks([])
        axes.set_yticks([])
        for spine in axes.spines.values():
            spine.set_color(INK)
    words = (
        f"Regions of the ranks 1 (light) to {N_RANKS} (dark) as predicted by "
        f"{', '.join(regions)}, with the training points of the first training set; every rank "
        "has its own marker."
    )
    return [Plot(to_svg(figure), words)]


def _draw_regions(axes: Axes, ranks: NDArray[np.float64]) -> None:
    """Draw the cells of every rank as one path: the page may not load images."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    edges = np.linspace(-HALF_WIDTH, HALF_WIDTH, len(ranks) + 1)
    for rank, colour in enumerate(COLOURS, start=1):
        corners = _rows_of_cells(ranks == rank, edges)
        if len(corners):
            codes = np.tile([Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY], len(corners) // 5)
            # smoothed edges leave a seam between neighbours: the thin line hides it
            axes.add_patch(PathPatch(Path(corners, codes), facecolor=colour, edgecolor=colour,
                                     linewidth=0.3))  # fmt: skip
    axes.set_xlim(-HALF_WIDTH, HALF_WIDTH)
    axes.set_ylim(-HALF_WIDTH, HALF_WIDTH)
    axes.set_aspect("equal")


def _rows_of_cells(chosen: NDArray[np.bool_], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return five corners, the first one twice, for every run of chosen cells in a row."""
    padded = np.pad(chosen, ((0, 0), (1, 1))).astype(np.int8)
    rows, begins = np.nonzero(np.diff(padded) == 1)
    _, ends = np.nonzero(np.diff(padded) == -1)
    left, right, low, high = edges[begins], edges[ends], edges[rows], edges[rows + 1]
    corners = [(left, low), (right, low), (right, high), (left, high), (left, low)]
    return np.array(corners).transpose(2, 0, 1).reshape(-1, 2)


def _draw_points(axes: Axes, x: Any, y: Any, ranks: Any) -> None:
    for rank, marker in enumerate(_MARKERS, start=1):
        of_rank = ranks == rank
        axes.scatter(
            x[of_rank], y[of_rank], marker=marker, s=16, color=COLOURS[rank - 1],
            edgecolors="#1d2127", linewidths=0.8,
        )  # fmt: skip
