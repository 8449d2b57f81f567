"""Where a run's time went: when each stage began and how long it took."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_rank.report.page import Cell, Plot, Section, Table
from spark_rank.report.plots import COLOURS, INK, dress, new_figure, plain, to_svg


def stages_section(records: Mapping[str, Mapping[str, Any]]) -> Section:
    """Return the stages in the order in which they began."""
    ordered = sorted(records.values(), key=lambda record: str(record["started"]))
    total = sum(record["seconds"] for record in ordered)
    body = [
        [
            Cell(record["stage"]),
            Cell(f"{record['seconds']:.1f}"),
            Cell(f"{100.0 * record['seconds'] / total:.0f} %" if total > 0.0 else "–"),
            Cell(str(record["started"]), left=True),
            Cell(record["message"], left=True),
        ]
        for record in ordered
    ]
    table = Table(["stage", "seconds", "share", "started", "result"], body)
    longest = max(ordered, key=lambda record: record["seconds"])
    words = (
        f"Seconds by stage, {total:.1f} in all; {longest['stage']} took longest, "
        f"{longest['seconds']:.1f}."
    )
    seconds = {record["stage"]: record["seconds"] for record in ordered}
    return Section("Where the time went", [Plot(_bars(seconds), words), table])


def _bars(seconds: Mapping[str, float]) -> str:
    figure = new_figure(7.2, 0.8 + 0.32 * len(seconds))
    axes = figure.add_subplot()
    places = range(len(seconds))
    axes.barh(places, list(seconds.values()), color=COLOURS[0], height=0.62, label="seconds")
    for place, value in zip(places, seconds.values(), strict=True):
        axes.text(value, place, f" {value:.1f}", va="center", color=INK, fontsize=9)
    axes.set_yticks(places, [plain(name) for name in seconds])
    axes.invert_yaxis()
    dress(axes, "", "seconds", "", (0.0, 1.12 * max(seconds.values()) or 1.0))
    legend = axes.get_legend()
    if legend is not None:
        legend.remove()
    return to_svg(figure)
