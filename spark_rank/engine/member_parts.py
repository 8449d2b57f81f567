"""Parts of ensembles on their way: what a group of members leaves, as a row that adds up.

Real sums travel as whole numbers of steps (`oap_members`), so that parts give the same bits in
whatever order and grouping they are added. Arrays travel as bytes, which Arrow and Spark copy
whole; a step, which is a power of two, as its exponent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce
from itertools import groupby
from operator import add
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_rank.data.contracts import Column, arrow_schema, ddl
from spark_rank.learners._online import IntArray
from spark_rank.learners.base import FloatArray
from spark_rank.learners.diversity import direction_sums, predicted_counts
from spark_rank.learners.oap_members import MemberGroup, PartialSums

Row = dict[str, Any]

# a part belongs to a problem (user or trial), a learner and the rounds from `first_round` on
KEY = ("problem", "learner", "first_round")
_BYTES = {
    "coef": np.int64, "coef_steps": np.int16, "final_thresholds": np.int64, "scores": np.int64,
    "steps": np.int16, "thresholds": np.int64, "ranks": np.int32, "votes": np.int64,
    "voted_ranks": np.int64,
    "presented": np.int64, "correct": np.int64, "updates": np.int64, "directions": np.int64,
    "test_counts": np.int64, "rules": np.float64,
}  # fmt: skip
_SUMS = tuple(field.name for field in fields(PartialSums) if field.name in _BYTES)
_STEPS = ("coef_steps", "steps")
# whole numbers at every round that move little from one to the next: of many rounds, differences
# travel, 13 bytes a round of a mean rule of five ranks instead of 42
_SLOW = ("steps", "thresholds", "ranks", "votes", "voted_ranks")
_MANY_ROUNDS = 1024
# sums over members at every round that a way of combining them does not look at
_UNREAD = {
    "bpm": ("votes", "voted_ranks"),
    "bagging": ("scores", "thresholds", "votes", "voted_ranks"),
    "voted": ("scores", "thresholds"),
}
PART_COLUMNS = (
    Column("problem", "string", "id of the user, or number of the trial"),
    Column("learner", "string", "label of the ensemble"),
    Column("first_round", "bigint", "0, or number of rounds before these"),
    Column("first_member", "int", "number of the group's first member"),
    Column("n_members", "int", "members of the group"),
    Column("n_rounds", "bigint", "number of these rounds"),
    *(Column(name, "binary", "see PartialSums and MemberPart") for name in _BYTES),
)
PART_SCHEMA = arrow_schema(PART_COLUMNS)
PART_DDL = ddl(PART_COLUMNS)


@dataclass(frozen=True)
class MemberPart:
    """What is known of some members after some rounds; parts of disjoint groups add up with ``+``.

    After the last round there are also, per member, what it was shown, ranked right, and its
    moves; sums that tell how members differ; and, where wanted, the rules: N×(d + k − 1).
    """

    first_member: int
    n_rounds: int
    sums: PartialSums
    presented: IntArray
    correct: IntArray
    updates: IntArray
    directions: IntArray
    test_counts: IntArray
    rules: FloatArray

    def __add__(self, other: MemberPart) -> MemberPart:
        """Return both groups of members as one; `other` holds the members that follow."""
        joined: Row = {
            name: np.concatenate([getattr(self, name), getattr(other, name)])
            for name in ("presented", "correct", "updates", "rules")
        }
        joined["directions"] = self.directions + other.directions
        joined["test_counts"] = self.test_counts + other.test_counts
        return replace(self, sums=self.sums + other.sums, **joined)


def part_of(
    group: MemberGroup, combine: str, X_test: FloatArray | None, *, keep_rules: bool
) -> MemberPart:
    """Return what a group leaves after its last call of `learn`.

    `X_test` are the held-out examples after the last round of the sequence, before it None. Votes
    need the rules of the members, the mean rule only where they are to be kept.
    """
    sums = group.sums()
    unread = {name: getattr(sums, name)[:0] for name in _UNREAD[combine]}
    n_rounds = len(sums.ranks)
    if combine == "bpm":
        unread["ranks"] = sums.ranks[:0]
    none = np.empty(0, dtype=np.int64)
    part = MemberPart(
        group.first, n_rounds, replace(sums, origin=None, **unread), none, none, none, none, none,
        np.empty((0, 0)),
    )  # fmt: skip
    if X_test is None:
        return part
    rules = np.column_stack([group.coef, group.thresholds])
    return replace(
        part,
        presented=group.presented,
        correct=group.correct,
        updates=group.updates,
        directions=direction_sums(group.coef),
        test_counts=predicted_counts(X_test, group.coef, group.thresholds),
        rules=rules if keep_rules or combine != "bpm" else rules[:, :0],
    )


def as_row(problem: str, learner: str, part: MemberPart) -> Row:
    """Return the part as a row of `PART_COLUMNS`."""
    arrays: Row = {}
    for name, kind in _BYTES.items():
        values = getattr(part.sums if name in _SUMS else part, name)
        if name in _STEPS:
            values = np.frexp(values)[1]
        packed = name in _SLOW and part.n_rounds >= _MANY_ROUNDS and len(values) > 0
        arrays[name] = (
            _differences(values) if packed else np.ascontiguousarray(values, kind).tobytes()
        )
    return {
        "problem": problem,
        "learner": learner,
        "first_round": part.sums.first_round,
        "first_member": part.first_member,
        "n_members": part.sums.n_members,
        "n_rounds": part.n_rounds,
        **arrays,
    }


def from_row(row: Mapping[str, Any], n_ranks: int) -> MemberPart:
    """Return the part that `as_row` made a row of."""
    n_rounds, width = row["n_rounds"], n_ranks - 1
    arrays: dict[str, NDArray[Any]] = {
        name: _running_sums(row[name], n_rounds, width if name == "thresholds" else 1)
        if name in _SLOW and n_rounds >= _MANY_ROUNDS
        else np.frombuffer(row[name], kind)
        for name, kind in _BYTES.items()
    }
    for name in _STEPS:
        arrays[name] = np.ldexp(1.0, arrays[name].astype(np.int64) - 1)
    arrays["ranks"] = arrays["ranks"].astype(np.int64)
    arrays["thresholds"] = arrays["thresholds"].reshape(-1, width)
    arrays["test_counts"] = arrays["test_counts"].reshape(-1, n_ranks)
    sums = PartialSums(
        n_members=row["n_members"],
        first_round=row["first_round"],
        origin=None,
        **{name: arrays.pop(name) for name in _SUMS},
    )
    n_members = max(len(arrays["presented"]), 1)
    arrays["rules"] = arrays["rules"].reshape(n_members, -1)
    return MemberPart(row["first_member"], n_rounds, sums, **arrays)


def add_parts(parts: Sequence[MemberPart]) -> MemberPart:
    """Return all members as one group; the parts may come in any order."""
    return reduce(add, sorted(parts, key=lambda part: part.first_member))


def consecutive(
    batches: Iterator[pa.RecordBatch], key: Sequence[str]
) -> Iterator[tuple[tuple[Any, ...], list[Row]]]:
    """Yield runs of rows with the same key from sorted batches, across their borders."""
    rows = (row for batch in batches for row in batch.to_pylist())
    for values, run in groupby(rows, key=lambda row: tuple(row[name] for name in key)):
        yield values, list(run)


def _differences(values: NDArray[Any]) -> bytes:
    """Return the first row, and in as few bytes as hold them what is added to each for the next."""
    rows = np.ascontiguousarray(values, np.int64).reshape(len(values), -1)
    steps = np.diff(rows, axis=0)
    kind = np.min_scalar_type(min(int(steps.min()), -1 - int(steps.max())))  # a signed one
    return rows[0].tobytes() + steps.astype(kind).tobytes()


def _running_sums(packed: bytes, n_rounds: int, width: int) -> IntArray:
    """Return what `_differences` made bytes of, flat; nothing from nothing."""
    if not packed:
        return np.empty(0, dtype=np.int64)
    size = (len(packed) // width - 8) // (n_rounds - 1)
    rows = np.empty((n_rounds, width), dtype=np.int64)
    rows[0] = np.frombuffer(packed, np.int64, width)
    rows[1:] = np.frombuffer(packed, f"i{size}", offset=8 * width).reshape(-1, width)
    return np.cumsum(rows, axis=0, out=rows).ravel()
