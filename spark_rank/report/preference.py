"""Preference-based ranking and rank aggregation in the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spark_rank.records.results import AggregateFacts, RankFacts
from spark_rank.report.page import Cell, Section, Table
from spark_rank.wording import count_of

Rows = Sequence[Mapping[str, Any]]

_SHOWN_ITEMS = 25
_VERDICTS = {True: "yes", False: "no", None: "undecided"}


def order_section(order: Rows, facts: AggregateFacts) -> Section:
    """Return the first items of the aggregated order, with their places by mean rating."""
    rows = sorted(order, key=lambda row: int(row["position"]))[:_SHOWN_ITEMS]
    body = [
        [
            Cell(str(row["position"])),
            Cell(row["title"] or row["item_id"], left=True),
            Cell(f"{row['ratings']:,}"),
            Cell(f"{row['mean_rating']:.3f}"),
            Cell(str(row["mean_position"])),
        ]
        for row in rows
    ]
    words = (
        f"The order of the {len(order)} most rated items by {facts.method} contradicts "
        f"{100 * (facts.misranked or 0.0):.2f} % of all pairwise opinions "
        f"({facts.score:,.0f}). Every order contradicts at least {facts.proven_bound:,.0f}; "
        f"the order by mean rating contradicts {facts.mean_rating_score:,.0f}."
    )
    header = ["place", "item", "ratings", "mean rating", "place by mean"]
    return Section("The order that users agree on", [words, Table(header, body)])


def rankings_section(record: Mapping[str, Any], facts: RankFacts) -> Section:
    """Return a sentence on how the users' rankings were made."""
    settings = record["settings"]
    words = (
        f"The held-out items of {count_of(record['tables']['rankings'], 'user')} were ordered by "
        f"{settings['method']} on {settings['preference']} of {', '.join(facts.learners)}: "
        f"{count_of(facts.calls, 'question')} for {count_of(facts.items, 'item')}."
    )
    return Section("Rankings by preference", [words])


def theorems_section(theorems: Rows) -> Section:
    """Return every statement beside the measured value."""
    body = [
        [
            Cell(row["theorem"]),
            Cell(row["kind"], left=True),
            Cell(str(row["n"])),
            Cell("–" if row["k"] is None else str(row["k"])),
            Cell(_measured(row)),
            Cell(f"{row['reference']:.4g}"),
            Cell(_VERDICTS[row["holds"]], best=bool(row["holds"])),
        ]
        for row in theorems
    ]
    header = ["statement", "tournaments", "n", "k", "measured", "theory", "holds"]
    return Section("Theorems of preference-based ranking", [Table(header, body)])


def _measured(row: Mapping[str, Any]) -> str:
    if row["ci_low"] is None:
        return f"{row['measured']:.4g}"
    return f"{row['measured']:.4g} [{row['ci_low']:.4g}, {row['ci_high']:.4g}]"
