"""Turns the sums over users of `list_measuring` into the rows of the table `list_metrics`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_rank.metrics import coverage, gini, t_interval_of
from spark_rank.tables.contract import arrow_schema
from spark_rank.tables.contracts import LIST_METRICS
from spark_rank.users.list_measuring import FIGURES, FIXED_POINT
from spark_rank.users.user_groups import ALL, UserGroups

Row = dict[str, Any]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class _Total:
    """The sums over all users of a group: figures × (users, sum, sum of squares), exposures."""

    lists: int
    sums: NDArray[Any]
    exposures: IntArray

    def plus(self, other: _Total) -> _Total:
        return _Total(
            self.lists + other.lists, self.sums + other.sums, self.exposures + other.exposures
        )


def list_table(
    sums: pa.Table, groups: UserGroups, candidates: NDArray[Any], level: float
) -> pa.Table:
    """Return the rows of `list_metrics`, by learner and group, from the sums of all tasks.

    `candidates` are the numbers of the items that may be in a list.
    """
    totals: dict[tuple[str, str], _Total] = {}
    for row in sums.to_pylist():
        total = _total(row, candidates)
        for group in (ALL, row["user_group"]):
            key = row["learner"], group
            totals[key] = totals[key].plus(total) if key in totals else total
    order = {name: place for place, name in enumerate((ALL, *groups.names()))}
    rows = [
        row
        for learner, group in sorted(totals, key=lambda key: (key[0], order[key[1]]))
        for row in _rows(learner, group, totals[learner, group], level)
    ]
    return pa.Table.from_pylist(rows, schema=arrow_schema(LIST_METRICS.columns))


def _total(row: Row, candidates: NDArray[Any]) -> _Total:
    # Python's integers: sums of squares over many tasks may need more than 64 bits
    sums = np.array([row["users"], row["totals"], row["squares"]], dtype=object).T
    exposures = np.zeros(len(candidates), dtype=np.int64)
    exposures[np.searchsorted(candidates, row["items"])] = row["exposures"]
    return _Total(row["lists"], sums, exposures)


def _rows(learner: str, group: str, total: _Total, level: float) -> Iterator[Row]:
    head = {"learner": learner, "user_group": group}
    for name, (users, added, squares) in zip(FIGURES, total.sums.tolist(), strict=True):
        yield {**head, "metric": name, **_distribution(users, added, squares, level)}
    for name, value in (("coverage", coverage), ("gini", gini)):
        found = value(total.exposures) if total.lists else float("nan")
        mean = None if np.isnan(found) else found
        yield {**head, "metric": name, "users": total.lists, "mean": mean}


def _distribution(users: int, added: int, squares: int, level: float) -> Row:
    """Return mean, standard deviation and interval from sums in fixed point."""
    if users == 0:
        return {"users": 0}
    mean = added / users / FIXED_POINT
    if users == 1:
        return {"users": 1, "mean": mean}
    # whole numbers until the last step: no digits are lost
    spread = users * squares * FIXED_POINT - added**2
    sd = float(np.sqrt(max(spread, 0) / (users * (users - 1)))) / FIXED_POINT
    low, high = t_interval_of(mean, sd, users, level)
    return {"users": users, "mean": mean, "sd": sd, "ci_low": low, "ci_high": high}
