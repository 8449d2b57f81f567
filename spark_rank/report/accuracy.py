"""How good the learners are: means, comparisons, user groups, ROC curves, bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from spark_rank.learners import BASELINES
from spark_rank.report.numbers import p_value, shown
from spark_rank.report.page import Cell, Plot, Section, Table
from spark_rank.report.plots import Curve, Histogram, curves_svg, histogram_svg

Rows = Sequence[Mapping[str, Any]]

MAIN_METRICS = {
    "msd": ("MSD", "mean squared difference over pairs"),
    "m1d": ("M1D", "mean 1-norm difference over pairs"),
    "misranking": ("misranking", "share of misranked pairs"),
}
# the title, and whether more is better
_OTHER_METRICS = {
    "hr1": ("hinge rank cost", False),
    "hmp1": ("HMP, n = 1", False),
    "hmp2": ("HMP, n = 2", False),
    "svr1": ("SVR, n = 1", False),
    "svr2": ("SVR, n = 2", False),
    "rank_loss": ("rank loss", False),
    "exact_rank": ("exact rank", True),
    "auc": ("AUC", True),
    "ndcg": ("NDCG", True),
    "precision": ("precision", True),
    "recall": ("recall", True),
    "average_precision": ("average precision", True),
}
_ALL = "all"


def in_order(learners: Iterable[str]) -> list[tuple[str, bool]]:
    """Return the different learners, baselines first, each with whether it is one."""
    names = set(learners)
    ordered = [b for b in BASELINES if b in names] + sorted(names - BASELINES.keys())
    return [(name, name in BASELINES) for name in ordered]


def summary_section(summary: Rows) -> Section:
    """Return the means that matter most."""
    rows = {(r["learner"], r["metric"]): r for r in summary if r["user_group"] == _ALL}
    best = {metric: _best(rows.values(), metric, higher=False) for metric in MAIN_METRICS}
    body = [
        [Cell(learner), *[_mean_cell(rows[learner, m], best[m]) for m in MAIN_METRICS]]
        for learner, _ in in_order(learner for learner, _ in rows)
    ]
    table = Table(
        ["learner", *[title for title, _ in MAIN_METRICS.values()]],
        body,
        "Means over users on held-out ratings with t intervals; lower is better, the best mean is "
        "marked. A constant ranks nothing: all its pairs tie and count as misranked.",
    )
    return Section("Summary", [table])


def comparison_section(comparison: Rows) -> Section:
    """Return every pair of learners on the main metrics, over the same users."""
    body = [
        [
            Cell(f"{row['learner']} − {row['rival']}"),
            Cell(MAIN_METRICS[metric][0], left=True),
            _difference_cell(row),
            Cell(f"{row['wins']:,} / {row['ties']:,} / {row['losses']:,}"),
            Cell(p_value(row["wilcoxon_p_holm"])),
            Cell(p_value(row["sign_p_holm"])),
        ]
        for metric in MAIN_METRICS
        for row in comparison
        if row["metric"] == metric and row["user_group"] == _ALL
    ]
    table = Table(
        ["learners", "metric", "difference", "wins / ties / losses", "Wilcoxon p", "sign p"],
        body,
        "User by user, with t intervals of the mean difference; below 0 the first learner is "
        "better. Where the interval excludes 0, it is marked: ✓ if the first learner is better, ✗ "
        "if it is worse. p-values are corrected by Holm's method over the pairs of a metric.",
    )
    return Section("Learners compared over the same users", [table])


def groups_section(summary: Rows) -> Section:
    """Return mean MSD by user group."""
    rows = {(r["learner"], r["user_group"]): r for r in summary if r["metric"] == "msd"}
    learners = in_order(learner for learner, _ in rows)
    groups = list(dict.fromkeys(r["user_group"] for r in summary if r["user_group"] != _ALL))
    groups.sort(key=_group_order)
    body = []
    for group in groups:
        own = [rows[learner, group] for learner, _ in learners]
        best = _best(own, "msd", higher=False)
        users = max(row["users"] for row in own)
        if users:
            body.append([Cell(group), Cell(f"{users:,}"), *[_mean_cell(row, best) for row in own]])
    header = ["training ratings", "users", *[learner for learner, _ in learners]]
    return Section("MSD by user group", [Table(header, body)])


def other_metrics_section(summary: Rows) -> Section:
    """Return the means of the other metrics."""
    rows = {(r["learner"], r["metric"]): r for r in summary if r["user_group"] == _ALL}
    learners = in_order(learner for learner, _ in rows)
    body = []
    for metric, (title, higher) in _OTHER_METRICS.items():
        own = [rows[learner, metric] for learner, _ in learners]
        best = _best(own, metric, higher=higher)
        wanted = "higher" if higher else "lower"
        body.append([Cell(title), Cell(wanted, left=True), *[_mean_cell(row, best) for row in own]])
    header = ["metric", "better", *[learner for learner, _ in learners]]
    return Section("Other metrics", [Table(header, body, "Means over users, held-out ratings.")])


def roc_section(roc: Rows) -> Section:
    """Return the mean ROC curves over all users."""
    order = in_order(row["learner"] for row in roc)
    curves = []
    for position, (learner, baseline) in enumerate(order):
        own = sorted(
            (row for row in roc if row["learner"] == learner and row["user_group"] == _ALL),
            key=lambda row: float(row["false_positive_rate"]),
        )
        x = [row["false_positive_rate"] for row in own]
        curves.append(
            Curve(learner, position, baseline, x, [row["true_positive_rate"] for row in own])
        )
    if not curves:
        return Section("ROC", ["No user has both relevant and other held-out items."])
    svg = curves_svg("mean ROC curves", "false positive rate", "true positive rate", curves)
    words = "ROC curves of relevant against other held-out items, averaged over users."
    return Section("ROC", [Plot(svg, words, square=True)])


def bounds_section(bounds: Rows) -> Section:
    """Return the bounds beside what was measured."""
    body = [
        [
            Cell(row["learner"]),
            Cell(row["bound"], left=True),
            Cell(f"{row['users']:,}"),
            Cell(shown(row["train_cost"], ".4f")),
            Cell(shown(row["test_cost"], ".4f")),
            Cell(shown(row["bound_value"])),
            Cell(f"{100 * row['holds']:.1f} %"),
            Cell(f"{100 * row['informative']:.1f} %"),
        ]
        for row in bounds
        if row["user_group"] == _ALL
    ]
    table = Table(
        ["learner", "bound", "users", "training cost", "held-out cost", "bound", "holds", "useful"],
        body,
        "Means over users. The stability bound is on the MSD, the margin bound on the "
        "misranking. Useful: users whose bound is below what a constant guarantees.",
    )
    return Section("Generalisation bounds", [table])


def distribution_section(histograms: Mapping[str, Sequence[Histogram]]) -> Section:
    """Return the distributions over users of the main metrics."""
    plots: list[Plot | str] = []
    for metric, (title, axis) in MAIN_METRICS.items():
        own = histograms.get(metric, [])
        if not own:
            plots.append(f"{title}: no user has a defined value.")
            continue
        means = ", ".join(f"{h.label} {h.mean:.3f}" for h in own if h.mean is not None)
        svg = histogram_svg(title, axis, own)
        plots.append(Plot(svg, f"Distribution of {axis} over users; means: {means}."))
    return Section("Distribution over users", plots)


def _best(rows: Iterable[Mapping[str, Any]], metric: str, *, higher: bool) -> float | None:
    means = [r["mean"] for r in rows if r["metric"] == metric and r["mean"] is not None]
    return (max if higher else min)(means, default=None)


def _mean_cell(row: Mapping[str, Any], best: float | None) -> Cell:
    if row["mean"] is None:
        return Cell("–")
    half = "" if row["ci_high"] is None else f" ± {row['ci_high'] - row['mean']:.4f}"
    return Cell(f"{shown(row['mean'], '.4f')}{half}", best=row["mean"] == best)


def _difference_cell(row: Mapping[str, Any]) -> Cell:
    if row["difference"] is None:
        return Cell("–")
    low, high = row["ci_low"], row["ci_high"]
    if low is None:
        return Cell(shown(row["difference"], "+.4f"))
    difference, low_end, high_end = (shown(v, "+.4f") for v in (row["difference"], low, high))
    text = f"{difference} [{low_end}, {high_end}]"
    # of all main metrics less is better
    return Cell(text, best=high < 0.0, worse=low > 0.0)


def _group_order(name: str) -> int:
    """Return the number that a range begins with; cold users come first."""
    digits = name.split("-", maxsplit=1)[0].rstrip("+")
    return int(digits) if digits.isdigit() else -1
