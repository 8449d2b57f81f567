"""What all lists together show: figures of the lists, and the most and least exposed items."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from spark_rank.metrics import coverage, gini
from spark_rank.report.numbers import shown
from spark_rank.report.page import Cell, Notes, Section, Table
from spark_rank.wording import count_of

Rows = Sequence[Mapping[str, Any]]

_SHOWN = 10
_ALL = "all"
_MOST_POPULAR = "most_popular"
# the title, and whether higher is better; None: neither is
_FIGURES: dict[str, tuple[str, bool | None]] = {
    "ndcg": ("NDCG@{n}", True),
    "recall": ("recall@{n}", True),
    "precision": ("precision@{n}", True),
    "hit_rate": ("hit rate@{n}", True),
    "reciprocal_rank": ("MRR@{n}", True),
    "average_precision": ("MAP@{n}", True),
    "serendipity": ("serendipity@{n}", True),
    "coverage": ("coverage", None),
    "gini": ("Gini of exposure", None),
    "popularity": ("popularity", None),
    "novelty": ("novelty, bits", None),
    "diversity": ("diversity", None),
}
_MEANINGS = (
    "An item is relevant if the user has rated it, in the held-out part, from the limit of "
    "`evaluate.relevant_from` on. All items outside the training part compete. Items that "
    "the user has not rated count as not relevant, so these figures are low.",
    "NDCG, recall, precision, hit rate, MRR and MAP count relevant items in the list, each in its "
    "own way. Serendipity counts those that the list of the most popular items does not have.",
    "Coverage is the share of the items that are in some list. Gini is 0 if all items are in as "
    "many lists, and near 1 if a few items fill them.",
    "Popularity is the mean share of the users who rated a listed item, novelty the mean of "
    "−log₂ of that share. Diversity is 1 minus the mean cosine of the features of two listed "
    "items.",
)


def exposure_section(exposures: Rows, candidates: int, users: int) -> Section:
    """Return how the places of all lists are spread over the items.

    `exposures` has ``item_id, title, lists, item_ratings`` of the items in lists, `candidates` is
    the number of items that may be in one, `users` the number of lists.
    """
    rows = sorted(exposures, key=lambda row: (-row["lists"], row["item_id"]))
    counts = np.zeros(max(candidates, len(rows)), dtype=np.int64)
    counts[: len(rows)] = [row["lists"] for row in rows]
    places = int(counts.sum())
    bits = sum(row["lists"] * -math.log2(max(row["item_ratings"], 1)) for row in rows) / places
    ratings = sum(row["lists"] * row["item_ratings"] for row in rows) / places
    words = (
        f"{len(rows):,} of {count_of(len(counts), 'item')} are in the top of some list (coverage "
        f"{100 * coverage(counts):.1f} %), {count_of(len(counts) - len(rows), 'item')} in none. "
        f"Gini of exposure {shown(gini(counts), '.3f')}; 0 would be equal shares. The item most "
        f"often listed is in {100 * rows[0]['lists'] / users:.1f} % of lists. A listed item has "
        f"{ratings:,.0f} ratings on average, and {2**-bits:,.0f} in the geometric mean."
    )
    most, least = rows[:_SHOWN], rows[::-1][:_SHOWN]
    parts = [
        _items(most, users, "The items in most lists."),
        _items(least, users, "Items in fewest lists, of those that are in any."),
    ]
    return Section("What all lists show", [words, *parts])


def _items(rows: Rows, users: int, caption: str) -> Table:
    body = [
        [
            Cell(row["title"] or row["item_id"]),
            Cell(f"{row['lists']:,}"),
            Cell(f"{100 * row['lists'] / users:.2f} %"),
            Cell(f"{row['item_ratings']:,}"),
        ]
        for row in rows
    ]
    return Table(["item", "lists", "share of lists", "its ratings"], body, caption)


def list_metrics_section(rows: Rows, top_n: int, candidates: str) -> Section:
    """Return the figures of lists of all items, beside those of lists that are alike for all."""
    overall = {(row["metric"], row["learner"]): row for row in rows if row["user_group"] == _ALL}
    learners = sorted({row["learner"] for row in rows}, key=_own_first)
    body = [
        [Cell(title.format(n=top_n)), *_cells(overall, metric, learners, higher)]
        for metric, (title, higher) in _FIGURES.items()
    ]
    among = "all items" if candidates == "all" else "the relevant items and a sample of others"
    caption = (
        f"Means over users of lists of {top_n} among {among}, made from the training part; the "
        "best is marked. ± is half of a t interval."
    )
    groups = _by_group(rows, learners, top_n)
    notes = Notes("What is measured", _MEANINGS)
    header = ["", *learners]
    return Section("Lists over all items", [Table(header, body, caption), groups, notes])


def _own_first(name: str) -> tuple[int, str]:
    return (name in (_MOST_POPULAR, "item_offset"), name)


def _cells(
    overall: Mapping[tuple[str, str], Mapping[str, Any]], metric: str, learners: Sequence[str],
    higher: bool | None,
) -> list[Cell]:  # fmt: skip
    means = [overall[metric, name]["mean"] for name in learners]
    known = [mean for mean in means if mean is not None]
    best = max(known) if higher and len(set(known)) > 1 else None
    cells = []
    for name, mean in zip(learners, means, strict=True):
        high = overall[metric, name]["ci_high"]
        reach = "" if high is None or mean is None else f" ± {high - mean:.4f}"
        cells.append(Cell(f"{shown(mean, '.4f')}{reach}", best=best is not None and mean == best))
    return cells


def _by_group(rows: Rows, learners: Sequence[str], top_n: int) -> Table:
    of_ndcg = [row for row in rows if row["metric"] == "ndcg" and row["user_group"] != _ALL]
    found = {(row["user_group"], row["learner"]): row for row in of_ndcg if row["users"]}
    groups = [name for name in dict.fromkeys(row["user_group"] for row in of_ndcg)
              if any((name, learner) in found for learner in learners)]  # fmt: skip
    body = [
        [
            Cell(group),
            Cell(f"{max(found[group, n]['users'] for n in learners if (group, n) in found):,}"),
            *[Cell(shown(found[group, name]["mean"], ".4f") if (group, name) in found else "–")
              for name in learners],
        ]
        for group in groups
    ]  # fmt: skip
    header = ["training ratings", "users", *learners]
    return Table(header, body, f"NDCG@{top_n} by user group.")
