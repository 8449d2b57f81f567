"""The docs' figures: measured, kept as numbers beside them, and drawn from these.

``python benchmarks/pictures.py measure`` goes through sequences of ``prank_synthetic``, which takes
some seconds, and draws the online curves. ``python benchmarks/pictures.py`` draws what is kept. The
numbers of how lists change with beta are those that ``benchmarks/lists.py`` prints last.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from spark_rank.experiments import EXPERIMENTS
from spark_rank.experiments.frame import Study

FOLDER = Path(__file__).parents[1] / "docs/benchmarks/pictures"
NAME = "online-curves"
LISTS = "list-beta"
SEQUENCES = 20
# read on white and on black
GREY = "#808080"
CURVES = {"PRank": ("PRank", "#e8710a"), "WH 0.1": ("Widrow-Hoff, step 0.1", "#3b82f6"),
          "WH-unit 1": ("Widrow-Hoff, step 1, unit length", "#16a34a"),
          "MCP": ("multiclass perceptron", "#a855f7")}  # fmt: skip
STYLE = {"svg.fonttype": "none", "svg.hashsalt": "spark_rank", "font.size": 9, "text.color": GREY,
         "axes.edgecolor": GREY, "axes.labelcolor": GREY, "xtick.color": GREY,
         "ytick.color": GREY, "axes.spines.top": False, "axes.spines.right": False}  # fmt: skip


def measure() -> None:
    """Go through the sequences; keep the mean and the quartiles of every place on a curve."""
    experiment = EXPERIMENTS["prank_synthetic"]
    study = Study(experiment.name, experiment.settings(), 0)
    found: dict[tuple[str, float], list[float]] = {}
    for unit in list(experiment.units(study))[:SEQUENCES]:
        for result in experiment.run_unit(study, unit):
            found.setdefault((result.method, float(result.x or 0)), []).append(float(result.value))
    rows = []
    for (method, x), values in found.items():
        numbers = (np.mean(values), *np.quantile(values, [0.25, 0.75]))
        rows.append((method, f"{x:g}", *(f"{number:.4f}" for number in numbers)))
    FOLDER.mkdir(exist_ok=True)
    with (FOLDER / f"{NAME}.csv").open("w", newline="") as file:
        head = ("method", "round", "mean", "low", "high")
        csv.writer(file, lineterminator="\n").writerows([head, *rows])


def draw_curves(axes: Axes) -> None:
    with (FOLDER / f"{NAME}.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for method, (name, colour) in CURVES.items():
        own = [row for row in rows if row["method"] == method]
        x, mean, low, high = ([float(row[key]) for row in own] for key in
                              ("round", "mean", "low", "high"))  # fmt: skip
        axes.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)
        axes.plot(x, mean, color=colour, label=name, linewidth=1.6)
    axes.set(xscale="log", xlabel="rounds", ylabel="mean rank loss so far", ylim=(0.3, 1.9))
    axes.set_xlim(left=14)
    axes.legend(frameon=False, labelcolor=GREY)


def draw_lists(axes: Axes) -> None:
    """Draw the figures of lists over beta, each over its greatest value."""
    with (FOLDER / f"{LISTS}.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    x = [float(row["beta"]) for row in rows]
    lines = (("ndcg", "NDCG@10", "#e8710a"), ("recall", "recall@10", "#3b82f6"),
             ("coverage", "coverage", "#16a34a"), ("gini", "Gini", "#a855f7"))  # fmt: skip
    for name, words, colour in lines:
        values = np.array([float(row[name]) for row in rows])
        label = f"{words}, at most {100 * values.max():.0f} %"
        axes.plot(x, values / values.max(), color=colour, label=label, linewidth=1.6, marker="o",
                  markersize=3)  # fmt: skip
    axes.set(xlabel="beta", ylabel="over the greatest value", ylim=(0.0, 1.05))
    axes.set_xscale("symlog", linthresh=1.0)
    axes.set_xlim(-0.1, 1.1 * x[-1])
    axes.set_xticks(x, [f"{value:g}" for value in x])
    axes.minorticks_off()
    axes.legend(frameon=False, labelcolor=GREY)


def draw(name: str, draw_axes: Callable[[Axes], None]) -> None:
    """Draw a figure from its numbers."""
    with mpl.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
        draw_axes(axes)
        text = StringIO()
        figure.savefig(
            text, format="svg", transparent=True, metadata={"Date": None, "Creator": None}
        )
        plt.close(figure)
    where = FOLDER / f"{name}.svg"
    # a tenth of a point is finer than anybody sees, and half the bytes
    short = re.sub(r"\d+\.\d{2,}", lambda found: f"{float(found[0]):.1f}", text.getvalue())
    where.write_text("\n".join(line.rstrip() for line in short.splitlines()) + "\n")
    print(f"{where.name}: {where.stat().st_size / 1000:.0f} KB")


if __name__ == "__main__":
    if sys.argv[1:] == ["measure"]:
        measure()
    draw(NAME, draw_curves)
    draw(LISTS, draw_lists)
