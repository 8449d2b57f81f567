"""How good the learners are: means, user groups, distributions, ROC curves, bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spark_rank.learners import BASELINES
from spark_rank.metrics.meaning import (
    FEWEST_USERS,
    FREE_FOR_A_CONSTANT,
    Evidence,
    enough_users,
)
from spark_rank.report.learner_order import in_order
from spark_rank.report.numbers import shown
from spark_rank.report.page import Cell, Notes, Plot, Section, Table
from spark_rank.report.plots import Curve, Histogram, curves_svg, histogram_svg

Rows = Sequence[Mapping[str, Any]]
Status = Mapping[str, Mapping[str, int]]

MAIN_METRICS = {
    "msd": ("MSD", "mean squared difference over pairs"),
    "m1d": ("M1D", "mean 1-norm difference over pairs"),
    "misranking": ("misranking", "share of misranked pairs"),
}
_MEANINGS = (
    "MSD, the mean squared difference: how far the difference of two predicted ratings is from the "
    "difference of the true ones, squared, on average over all m² ordered pairs of a user's m "
    "held-out items; a pair of an item with itself counts, with 0, so that this is "
    "(m\u00a0−\u00a01)/m "
    "of the mean over pairs of two items.",
    "M1D, the mean 1-norm difference: the same distance without the square, over the same pairs.",
    "Misranking: the share of a user's pairs of held-out items with different ratings that the "
    "scores put in the wrong order; equal scores count as wrong, so that a constant has 1.",
)
_BASELINE_NOTES = {
    "constant": "baseline: one score for all items",
    "item_offset": "baseline: the items' average ratings",
}
# the title, and whether more is better; {n} is how many items the metrics of the top look at
_OTHER_METRICS = {
    "hr1": ("hinge rank cost", False),
    "hmp1": ("HMP, n = 1", False),
    "hmp2": ("HMP, n = 2", False),
    "svr1": ("SVR, n = 1", False),
    "svr2": ("SVR, n = 2", False),
    "rank_loss": ("rank loss", False),
    "exact_rank": ("exact rank", True),
    "auc": ("AUC", True),
    "ndcg": ("NDCG@{n}", True),
    "precision": ("precision@{n}", True),
    "recall": ("recall@{n}", True),
    "average_precision": ("average precision@{n}", True),
}
_ALL, _COLD = "all", "cold"


def evidence(summary: Rows, status: Status, group: str = _ALL) -> Evidence:
    """Return what the table `summary` says about all users or a group of them.

    Cold users have too few ratings to learn from: of them nobody is learned.
    """
    means: dict[str, dict[str, float | None]] = {}
    users: dict[str, dict[str, int]] = {}
    for row in summary:
        if row["user_group"] == group:
            means.setdefault(row["learner"], {})[row["metric"]] = row["mean"]
            users.setdefault(row["learner"], {})[row["metric"]] = row["users"]
    if group == _COLD:
        status = {name: {"learned" if name in BASELINES else "fallback: too_few_ratings": 1}
                  for name in means}  # fmt: skip
    return Evidence(means, users, status, BASELINES)


def summary_section(summary: Rows, status: Status) -> Section:
    """Return the means that matter most, and what they are."""
    found, rows = evidence(summary, status), _by_metric(summary, _ALL)
    body = [
        [
            Cell(learner, note=_BASELINE_NOTES[learner] if baseline else ""),
            *[_mean_cell(found, rows[learner, metric], higher=False) for metric in MAIN_METRICS],
        ]
        for learner, baseline in in_order(found.means)
    ]
    table = Table(
        ["learner", *[title for title, _ in MAIN_METRICS.values()]],
        body,
        "Means over users, on ratings held out from learning; below each the number of users that "
        "have the metric. Lower is better, the best mean is marked. ± is half of a t interval. "
        f"{_few_users_rule()}",
    )
    return Section("Summary", [table, Notes("What is measured", _MEANINGS)])


def groups_section(summary: Rows, status: Status) -> Section:
    """Return mean MSD by user group."""
    rows = {group: _by_metric(summary, group) for group in _groups(summary)}
    learners = in_order(row["learner"] for row in summary)
    body = []
    for group, own in rows.items():
        found = evidence(summary, status, group)
        users = max(own[learner, "msd"]["users"] for learner, _ in learners)
        if users:
            cells = [_mean_cell(found, own[learner, "msd"], higher=False, usual=users)
                     for learner, _ in learners]  # fmt: skip
            body.append([Cell(group), Cell(f"{users:,}"), *cells])
    header = ["training ratings", "users", *[learner for learner, _ in learners]]
    words = f"Means over the users of a group. {_few_users_rule()}"
    return Section("MSD by user group", [Table(header, body, words)])


def other_metrics_section(
    summary: Rows, status: Status, top_n: int, relevant_from: float
) -> Section:
    """Return the means of the other metrics."""
    found, rows = evidence(summary, status), _by_metric(summary, _ALL)
    learners = in_order(found.means)
    body = [
        [
            Cell(title.format(n=top_n)),
            Cell(_wanted(metric, higher=higher), left=True),
            *[_mean_cell(found, rows[learner, metric], higher=higher) for learner, _ in learners],
        ]
        for metric, (title, higher) in _OTHER_METRICS.items()
    ]
    header = ["metric", "better", *[learner for learner, _ in learners]]
    words = "Means over users, held-out ratings; below each the number of users that have it."
    notes = Notes("What is measured", [
        f"NDCG@{top_n} adds up 2^rating − 1 over the first {top_n} held-out items, each divided by "
        "log₂(1\u00a0+\u00a0place), and divides by what the best order has.",
        f"For AUC, precision, recall and average precision an item is relevant from a rating of "
        f"{shown(relevant_from)} on; @{top_n} looks at the first {top_n} held-out items.",
        "The hinge rank cost and HMP are 0 for a constant, which orders nothing: less is not "
        "better, and none is marked.",
    ])  # fmt: skip
    return Section("Other metrics", [Table(header, body, words), notes])


def roc_section(roc: Rows, found: Evidence) -> Section:
    """Return the mean ROC curves over all users, of learners that say something."""
    curves = []
    for position, (learner, baseline) in enumerate(in_order(found.means)):
        own = sorted(
            (row for row in roc if row["learner"] == learner and row["user_group"] == _ALL),
            key=lambda row: float(row["false_positive_rate"]),
        )
        if own and found.nothing_because(learner) is None:
            x = [row["false_positive_rate"] for row in own]
            y = [row["true_positive_rate"] for row in own]
            curves.append(Curve(learner, position, baseline, x, y))
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
            plots.append(f"{title}: no learner has values of {FEWEST_USERS} users or more.")
            continue
        means = ", ".join(f"{h.label} {h.mean:.3f}" for h in own if h.mean is not None)
        svg = histogram_svg(title, axis, own)
        plots.append(Plot(svg, f"Distribution of {axis} over users; means: {means}."))
    return Section("Distribution over users", plots)


def _by_metric(summary: Rows, group: str) -> dict[tuple[str, str], Mapping[str, Any]]:
    return {(r["learner"], r["metric"]): r for r in summary if r["user_group"] == group}


def _groups(summary: Rows) -> list[str]:
    groups = dict.fromkeys(r["user_group"] for r in summary if r["user_group"] != _ALL)
    return sorted(groups, key=_group_order)


def _group_order(name: str) -> int:
    """Return the number that a range begins with; cold users come first."""
    digits = name.split("-", maxsplit=1)[0].rstrip("+")
    return int(digits) if digits.isdigit() else -1


def _mean_cell(
    found: Evidence, row: Mapping[str, Any], *, higher: bool, usual: int | None = None
) -> Cell:
    """Return a mean with its interval and number of users, which `usual` may say already."""
    learner, metric, users = row["learner"], row["metric"], row["users"]
    if (reason := found.nothing_because(learner)) is not None:
        return Cell("–", note=reason)
    mean = found.mean(learner, metric)
    if mean is None:
        return Cell("–", note="no user has it")
    reach = 0.0 if row["ci_high"] is None or not enough_users(users) else row["ci_high"] - mean
    half = f" ± {reach:.4f}" if reach > 0.0 else ""
    note = "" if users == usual else over(users, sum(found.status[learner].values()), usual)
    best = found.best(metric, higher=higher)
    return Cell(f"{shown(mean, '.4f')}{half}", best=mean == best, note=note)


def over(users: int, total: int, usual: int | None = None) -> str:
    """Say over how many users a mean is; of a group with `usual` users the total is not known."""
    if usual is not None:
        return f"over {users:,}"
    return f"over all {users:,}" if users == total else f"over {users:,} of {total:,}"


def _wanted(metric: str, *, higher: bool) -> str:
    if metric in FREE_FOR_A_CONSTANT:
        return "lower, 0 for a constant"
    return "higher" if higher else "lower"


def _few_users_rule() -> str:
    return f"With fewer than {FEWEST_USERS} users there is no interval and no mark."
