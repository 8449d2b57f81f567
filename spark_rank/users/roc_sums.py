"""Computes the mean ROC curve of each learner and group of users, from the sums of tasks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_rank.tables.contract import Column, arrow_schema
from spark_rank.tables.contracts import ROC
from spark_rank.users.measuring import ROC_GRID
from spark_rank.users.user_groups import ALL, UserGroups

# sums of doubles depend on the order of addition, sums of integers do not
_FIXED_POINT = 1 << 30

# a task's sum of the curves of a learner and group
ROC_SUM_COLUMNS = (
    Column("learner", "string", "name"),
    Column("user_group", "string", "group"),
    Column("users", "bigint", "users with a curve"),
    Column("totals", "array<bigint>", "sums of their true positive rates, in fixed point"),
)
_SCHEMA = arrow_schema(ROC_SUM_COLUMNS)
Sums = dict[tuple[str, str], tuple[int, NDArray[np.int64]]]


def summed_curves(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add up the curves of a task's rows ``learner, user_group, curve``."""
    sums = RocSums()
    for batch in batches:
        defined = batch.filter(pc.is_valid(batch.column("curve")))
        together = b"".join(defined.column("curve").to_pylist())
        curves = np.frombuffer(together, np.float32).reshape(-1, len(ROC_GRID))
        sums.add(defined, curves)
    yield from sums.rows()


class RocSums:
    """Adds up the curves of a task's users."""

    def __init__(self) -> None:
        self._sums: Sums = {}

    def add(self, rows: pa.RecordBatch, curves: NDArray[np.float32]) -> None:
        """Add the curves of metric rows."""
        fixed = np.round(curves.astype(np.float64) * _FIXED_POINT).astype(np.int64)
        keys = list(
            zip(
                rows.column("learner").to_pylist(), rows.column("user_group").to_pylist(),
                strict=True,
            )
        )  # fmt: skip
        names = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        numbers = np.array([names[key] for key in keys], dtype=np.int64)
        sums = np.zeros((len(names), curves.shape[1]), dtype=np.int64)
        np.add.at(sums, numbers, fixed)
        users = np.bincount(numbers, minlength=len(names))
        for key, number in names.items():
            _add(self._sums, key, int(users[number]), sums[number])

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield the sums, if any, as rows of `ROC_SUM_COLUMNS`."""
        if self._sums:
            yield pa.RecordBatch.from_pylist(
                [
                    {"learner": learner, "user_group": group, "users": users, "totals": totals}
                    for (learner, group), (users, totals) in self._sums.items()
                ],
                schema=_SCHEMA,
            )


def roc_table(sums: pa.Table, groups: UserGroups) -> pa.Table:
    """Return the mean curve of every learner and group; groups without a curve are left out."""
    totals_of: Sums = {}
    for row in sums.to_pylist():
        for group in (row["user_group"], ALL):
            totals = np.array(row["totals"], dtype=np.int64)
            _add(totals_of, (row["learner"], group), row["users"], totals)
    order = {name: position for position, name in enumerate((ALL, *groups.names()))}
    rows = [
        {"learner": learner, "user_group": group, "users": users,
         "false_positive_rate": float(rate), "true_positive_rate": total / _FIXED_POINT / users}
        for learner, group in sorted(totals_of, key=lambda key: (key[0], order[key[1]]))
        for users, totals in [totals_of[learner, group]]
        for rate, total in zip(ROC_GRID, totals.tolist(), strict=True)
        if users
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=arrow_schema(ROC.columns))


def _add(sums: Sums, key: tuple[str, str], users: int, totals: NDArray[np.int64]) -> None:
    n_users, sum_so_far = sums.get(key, (0, 0))
    sums[key] = n_users + users, sum_so_far + totals
