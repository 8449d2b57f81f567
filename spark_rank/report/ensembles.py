"""Ensembles in the report: online curves, metrics over trials, diversity and cost of members."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from spark_rank.report.bands import Band, bands_svg
from spark_rank.report.page import Cell, Plot, Section, Table

Rows = Sequence[Mapping[str, Any]]

# these are read out of the same passes as PRank, so their curves are the same
_SAME_CURVE = ("prank_averaged", "prank_voted")
# a curve ends where less than this share of the samples is left: a mean of few says little
_LEAST_SHARE = 0.01
_DIVERSITY_HEADER = [
    "ensemble", "combined by", "sees an example", "members", "angle", "disagreement", "seen",
    "updates", "PRank passes",
]  # fmt: skip


def ensembles_section(
    curve: Rows, diversity: Rows, metrics: Rows | None, settings: Mapping[str, Any]
) -> Section:
    """Return the curves and tables of ensembles; only a sequence has `metrics`."""
    if settings["sequence"] is not None:
        words = "Learned on one sequence. The rivals learn from the features of the first ensemble."
    elif settings["user"] is not None:
        words = f"Learned on the ratings of user {settings['user']}."
    else:
        words = "Learned for every user. The tables of all learners show their accuracy."
    parts: list[Table | Plot | str] = [words, _curves(curve)]
    if metrics:
        parts.append(_metrics_table(metrics))
    return Section("Ensembles", [*parts, _diversity_table(diversity)])


def _curves(curve: Rows) -> Plot:
    names = [name for name in _in_order(row["learner"] for row in curve) if name not in _SAME_CURVE]
    drawn = [
        _band(name, position, [row for row in curve if row["learner"] == name])
        for position, name in enumerate(names)
    ]
    svg = bands_svg("Online learning", "examples seen", "mean rank loss so far", drawn,
                    log_x=True)  # fmt: skip
    ends = ", ".join(f"{band.label} {band.y[-1]:.3f} after {band.x[-1]:,}" for band in drawn)
    banded = any(row["ci_low"] is not None for row in curve)
    bands = ", with 95 % bands" if banded else ""
    return Plot(svg, f"Mean rank loss of the predictions up to each example{bands}: {ends}.")


def _band(name: str, position: int, rows: Rows) -> Band:
    """Return a learner's curve up to where few samples are left; one sample has no interval."""
    least = _LEAST_SHARE * max(row["samples"] for row in rows)
    shown = sorted((r for r in rows if r["samples"] >= least), key=lambda r: int(r["round"]))
    low, high = (
        [row["online_loss"] if row[end] is None else row[end] for row in shown]
        for end in ("ci_low", "ci_high")
    )
    rounds, losses = [row["round"] for row in shown], [row["online_loss"] for row in shown]
    return Band(name, position, rounds, losses, low, high)


def _metrics_table(metrics: Rows) -> Table:
    names = _in_order(row["metric"] for row in metrics if row["mean"] is not None)
    rows = {(row["learner"], row["metric"]): row for row in metrics}
    best = {name: _best(name, [row for row in metrics if row["metric"] == name]) for name in names}
    body = [
        [Cell(learner), *[
            Cell(_mean(rows[learner, name]), best=rows[learner, name]["mean"] == best[name])
            for name in names
        ]]
        for learner in _in_order(row["learner"] for row in metrics)
    ]  # fmt: skip
    trials = max(row["trials"] for row in metrics)
    caption = f"Means over {trials} trials, with t intervals." if trials > 1 else "From 1 trial."
    return Table(["learner", *names], body, caption)


def _diversity_table(diversity: Rows) -> Table:
    body = [
        [
            Cell(row["learner"]),
            Cell(row["combine"], left=True),
            Cell("Poisson(1) times" if row["tau"] is None else f"with probability {row['tau']:g}",
                 left=True),
            Cell(f"{row['n_members']:,}"),
            Cell("–" if row["angle"] is None else f"{row['angle']:.2f}°"),
            Cell("–" if row["disagreement"] is None else f"{100 * row['disagreement']:.1f} %"),
            Cell(f"{row['presented']:,.1f}"),
            Cell(f"{row['updates']:,.1f}"),
            Cell(f"{row['prank_passes']:,}"),
        ]
        for row in diversity
    ]  # fmt: skip
    caption = (
        "Angle: between a member and the mean of all members. Disagreement: pairs of members that "
        "rank a held-out item differently. Seen and updates are per member. N members cost as much "
        "as N passes of a single PRank, and run in parallel."
    )
    return Table(_DIVERSITY_HEADER, body, caption)


def _mean(row: Mapping[str, Any]) -> str:
    if row["mean"] is None:
        return "–"
    if row["ci_low"] is None:
        return f"{row['mean']:.4f}"
    return f"{row['mean']:.4f} [{row['ci_low']:.4f}, {row['ci_high']:.4f}]"


def _best(metric: str, rows: Rows) -> float | None:
    means = [row["mean"] for row in rows if row["mean"] is not None]
    choose = max if metric == "exact_rank" else min
    return choose(means) if means else None


def _in_order(names: Iterable[str]) -> list[str]:
    """Return every name once, in the given order."""
    return list(dict.fromkeys(names))
