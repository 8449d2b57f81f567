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
    "MSD, the mean squared difference: for a pair of items, the difference of their predicted "
    "ratings minus that of their true ratings, squared; averaged over all m² ordered pairs of a "
    "user's m held-out items; a pair of an item with itself counts as 0, so the MSD is "
    "(m\u00a0−\u00a01)/m "
    "of the mean over pairs of different items.",
    "M1D, the mean 1-norm difference: the same with the absolute value in place of the square.",
    "Misranking: the share of a user's pairs of held-out items with different ratings that the "
    "scores put in the wrong order; equal scores count as wrong, so a constant has 1.",
)
# errors of single ratings: per user, and over all ratings
_ERRORS = {"rmse": "RMSE", "mae": "MAE"}
_BASELINE_NOTES = {
    "constant": "baseline: one score for all items",
    "item_offset": "baseline: the items' average ratings",
}
# the title, and whether higher is better; {n} is the number of items that the metric looks at
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


def evidence_of(summary: Rows, status: Status, group: str = _ALL) -> Evidence:
    """Return the evidence in the table `summary`, for all users or for one user group.

    Cold users have too few ratings to learn from, so all of them have a fallback.
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


def held_out_words(test: str) -> str:
    """Return what the held-out ratings are, as `prepare.test` labels them."""
    what = "random items" if test == "random" else "items that users chose to rate"
    return f"The held-out ratings are of {what} (prepare.test: {test})."


def summary_section(summary: Rows, status: Status, test: str = "chosen") -> Section:
    """Return the means of the main metrics, with the definitions of these metrics."""
    evidence, rows = evidence_of(summary, status), _by_metric(summary, _ALL)
    body = [
        [
            Cell(learner, note=_BASELINE_NOTES[learner] if baseline else ""),
            *[_mean_cell(evidence, rows[learner, metric], higher=False) for metric in MAIN_METRICS],
        ]
        for learner, baseline in in_order(evidence.means)
    ]
    table = Table(
        ["learner", *[title for title, _ in MAIN_METRICS.values()]],
        body,
        "Means over users, on held-out ratings; below each mean, the number of users for whom the "
        "metric is defined. Lower is better, the best mean is marked. ± is half of a t interval. "
        f"{_few_users_rule()} {held_out_words(test)}",
    )
    return Section("Summary", [table, Notes("What is measured", _MEANINGS)])


def errors_section(summary: Rows, status: Status) -> Section:
    """Return the errors of the predicted ratings: means over users, and over all ratings."""
    evidence, rows = evidence_of(summary, status), _by_metric(summary, _ALL)
    body = []
    for learner, _ in in_order(evidence.means):
        of_learner = [rows[learner, metric] for metric in _ERRORS]
        pooled = [Cell(shown(_pooled(evidence, row), ".4f")) for row in of_learner]
        means = [_mean_cell(evidence, row, higher=False) for row in of_learner]
        body.append([Cell(learner), *pooled, *means])
    titles = list(_ERRORS.values())
    table = Table(
        ["learner", *[f"{title}, all ratings" for title in titles],
         *[f"{title}, mean over users" for title in titles]],
        body,
        "Root mean squared and mean absolute error of the predicted ratings, clipped to the rating "
        "scale. Over all held-out ratings, users with many of them count more; that is how "
        "published results are given.",
    )  # fmt: skip
    return Section("Errors of predicted ratings", [table])


def groups_section(summary: Rows, status: Status) -> Section:
    """Return mean MSD by user group."""
    rows = {group: _by_metric(summary, group) for group in _groups(summary)}
    learners = in_order(row["learner"] for row in summary)
    body = []
    for group, group_rows in rows.items():
        evidence = evidence_of(summary, status, group)
        users = max(group_rows[learner, "msd"]["users"] for learner, _ in learners)
        if users:
            cells = [
                _mean_cell(evidence, group_rows[learner, "msd"], higher=False, group_users=users)
                for learner, _ in learners
            ]
            body.append([Cell(group), Cell(f"{users:,}"), *cells])
    header = ["training ratings", "users", *[learner for learner, _ in learners]]
    caption = f"Means over the users of a group. {_few_users_rule()}"
    return Section("MSD by user group", [Table(header, body, caption)])


def other_metrics_section(
    summary: Rows, status: Status, top_n: int, relevant_from: float
) -> Section:
    """Return the means of the other metrics."""
    evidence, rows = evidence_of(summary, status), _by_metric(summary, _ALL)
    learners = in_order(evidence.means)
    body = [
        [
            Cell(title.format(n=top_n)),
            Cell(_direction(metric, higher=higher), left=True),
            *[
                _mean_cell(evidence, rows[learner, metric], higher=higher)
                for learner, _ in learners
            ],
        ]
        for metric, (title, higher) in _OTHER_METRICS.items()
    ]
    header = ["metric", "better", *[learner for learner, _ in learners]]
    caption = (
        "Means over users, on held-out ratings; below each mean, the number of users for whom the "
        "metric is defined."
    )
    notes = Notes("What is measured", [
        f"NDCG@{top_n} adds up 2^rating − 1 over the first {top_n} held-out items, each divided by "
        "log₂(1\u00a0+\u00a0place), and divides the sum by that of the best order.",
        f"For AUC, precision, recall and average precision an item is relevant if its rating is at "
        f"least {shown(relevant_from)}; @{top_n} means the first {top_n} held-out items.",
        "The hinge rank cost and HMP are 0 for a constant, which orders nothing. Lower is "
        "therefore not always better, and no mean is marked.",
    ])  # fmt: skip
    return Section("Other metrics", [Table(header, body, caption), notes])


def roc_section(roc: Rows, evidence: Evidence) -> Section:
    """Return the mean ROC curves over all users, of the learners that have results."""
    curves = []
    for position, (learner, baseline) in enumerate(in_order(evidence.means)):
        points = sorted(
            (row for row in roc if row["learner"] == learner and row["user_group"] == _ALL),
            key=lambda row: float(row["false_positive_rate"]),
        )
        if points and evidence.nothing_because(learner) is None:
            x = [row["false_positive_rate"] for row in points]
            y = [row["true_positive_rate"] for row in points]
            curves.append(Curve(learner, position, baseline, x, y))
    if not curves:
        return Section("ROC", ["No user has both relevant and other held-out items."])
    svg = curves_svg("mean ROC curves", "false positive rate", "true positive rate", curves)
    words = "ROC curves of relevant against other held-out items, averaged over users."
    return Section("ROC", [Plot(svg, words, square=True)])


def bounds_section(bounds: Rows) -> Section:
    """Return the bounds beside the measured costs."""
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
        "Means over users. The stability bound limits the MSD, the margin bound the misranking. "
        "Holds: users whose held-out cost is within the bound. Useful: users whose bound is below "
        "what a constant guarantees.",
    )
    return Section("Generalisation bounds", [table])


def distribution_section(histograms: Mapping[str, Sequence[Histogram]]) -> Section:
    """Return the distributions over users of the main metrics."""
    plots: list[Plot | str] = []
    for metric, (title, axis) in MAIN_METRICS.items():
        shares = histograms.get(metric, [])
        if not shares:
            plots.append(f"{title}: no learner has values for {FEWEST_USERS} users or more.")
            continue
        means = ", ".join(f"{h.label} {h.mean:.3f}" for h in shares if h.mean is not None)
        svg = histogram_svg(title, axis, shares)
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
    evidence: Evidence, row: Mapping[str, Any], *, higher: bool, group_users: int | None = None
) -> Cell:
    """Return a mean with its interval and number of users; no number if it is `group_users`."""
    learner, metric, users = row["learner"], row["metric"], row["users"]
    if (reason := evidence.nothing_because(learner, metric)) is not None:
        return Cell("–", note=reason)
    mean = evidence.mean(learner, metric)
    if mean is None:
        return Cell("–", note="defined for no user")
    half_width = 0.0 if row["ci_high"] is None or not enough_users(users) else row["ci_high"] - mean
    interval = f" ± {half_width:.4f}" if half_width > 0.0 else ""
    note = (
        ""
        if users == group_users
        else over(users, sum(evidence.status[learner].values()), group_users)
    )
    best = evidence.best(metric, higher=higher)
    return Cell(f"{shown(mean, '.4f')}{interval}", best=mean == best, note=note)


def over(users: int, total: int, group_users: int | None = None) -> str:
    """Return the number of users of a mean, with the total unless the users are a group."""
    if group_users is not None:
        return f"over {users:,}"
    return f"over all {users:,}" if users == total else f"over {users:,} of {total:,}"


def _pooled(evidence: Evidence, row: Mapping[str, Any]) -> float | None:
    """Return a metric over all ratings; None if it is meaningless."""
    if evidence.nothing_because(row["learner"], row["metric"]) is not None:
        return None
    pooled: float | None = row["pooled"]
    return pooled


def _direction(metric: str, *, higher: bool) -> str:
    if metric in FREE_FOR_A_CONSTANT:
        return "lower, 0 for a constant"
    return "higher" if higher else "lower"


def _few_users_rule() -> str:
    return f"With fewer than {FEWEST_USERS} users there is no interval and no mark."
