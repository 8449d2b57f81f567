"""Parts of ensembles as rows: the sums over a group of members, which add up to the ensemble.

Real sums are stored as whole numbers of steps (`members`), so that the result has the same bits
for every order and grouping of the parts. Arrays are stored as bytes, which Arrow and Spark copy
whole. A step, which is a power of two, is stored as its exponent, and values per round in as few
bytes as possible. Compression to four tenths takes as long as it saves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce
from itertools import groupby
from operator import add
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_rank.learners.base import FloatArray
from spark_rank.learners.perceptrons.blocks import block_of, blocks_begun
from spark_rank.learners.perceptrons.diversity import direction_sums, predicted_counts
from spark_rank.learners.perceptrons.members import MemberGroup, PartialSums
from spark_rank.learners.perceptrons.rounds import IntArray
from spark_rank.tables.contract import Column, arrow_schema, ddl

Row = dict[str, Any]

# a part belongs to a problem (user or trial), a learner, and a block of rounds (`blocks`)
KEY = ("problem", "learner", "block")
_BYTES = {
    "coef": np.int64, "coef_steps": np.int16, "thresholds": np.int64, "moves": np.int32,
    "ranks": np.int32, "votes": np.int64, "voted_ranks": np.int64,
    "presented": np.int64, "correct": np.int64, "updates": np.int64, "directions": np.int64,
    "test_counts": np.int64, "rules": np.float64,
}  # fmt: skip
_SUMS = tuple(field.name for field in fields(PartialSums) if field.name in _BYTES)
# whole numbers per round that change little: of many rounds, the differences are stored
_SLOW = ("ranks", "votes", "voted_ranks")
_MANY_ROUNDS = 1024
# sums per round that a way of combining the members does not use
_UNREAD = {
    "bpm": ("ranks", "votes", "voted_ranks"),
    "bagging": ("moves", "votes", "voted_ranks"),
    "voted": ("moves",),
}
PART_COLUMNS = (
    Column("problem", "string", "id of the user, or number of the trial"),
    Column("learner", "string", "label of the ensemble"),
    Column("block", "bigint", "block of these rounds"),
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
    """The sums of a group of members after some rounds; disjoint groups add up with ``+``.

    After the last round it also has, per member, the numbers of presented and correctly ranked
    examples and of updates; the sums behind the measures of diversity; and, if wanted, the rules:
    N×(d + k − 1).
    """

    first_member: int
    sums: PartialSums
    presented: IntArray
    correct: IntArray
    updates: IntArray
    directions: IntArray
    test_counts: IntArray
    rules: FloatArray

    def __add__(self, other: MemberPart) -> MemberPart:
        """Return both groups of members as one; the members of `other` follow those of `self`."""
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
    """Return the part of a group after its last call of `learn`.

    `X_test` are the held-out examples after the last round of the sequence; before it, None. The
    rules of the members are stored for votes, and with `keep_rules`.
    """
    sums = group.sums()
    unread = {name: getattr(sums, name)[:0] for name in _UNREAD[combine]}
    none = np.empty(0, dtype=np.int64)
    part = MemberPart(
        group.first, replace(sums, origin=None, **unread), none, none, none, none, none,
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
    sums = part.sums
    return {
        "problem": problem,
        "learner": learner,
        "block": block_of(sums.first_round),
        "first_round": sums.first_round,
        "first_member": part.first_member,
        "n_members": sums.n_members,
        "n_rounds": sums.n_rounds,
        **{
            name: _as_bytes(name, getattr(sums if name in _SUMS else part, name), sums.n_rounds)
            for name in _BYTES
        },
    }


def from_row(row: Mapping[str, Any], n_ranks: int) -> MemberPart:
    """Return the part that `as_row` turned into a row."""
    first_round, n_rounds, width = row["first_round"], row["n_rounds"], n_ranks - 1
    arrays = {name: _from_bytes(name, row[name], n_rounds, width) for name in _BYTES}
    n_rules = 1 + blocks_begun(first_round, first_round + n_rounds)
    for name in ("coef", "coef_steps", "thresholds"):
        arrays[name] = arrays[name].reshape(n_rules, -1)
    arrays["moves"] = arrays["moves"].reshape(-1, width)
    arrays["test_counts"] = arrays["test_counts"].reshape(-1, n_ranks)
    n_members = max(len(arrays["presented"]), 1)
    arrays["rules"] = arrays["rules"].reshape(n_members, -1)
    of_sums: Row = {name: arrays.pop(name) for name in _SUMS}
    sums = PartialSums(row["n_members"], first_round, n_rounds, **of_sums)
    return MemberPart(row["first_member"], sums, **arrays)


def sum_of_rows(rows: Iterable[Row], n_ranks: int) -> MemberPart:
    """Return all members as one group; the rows may come in any order.

    Rows are read one at a time: in memory they are several times as large.
    """
    ordered = sorted(rows, key=lambda row: row["first_member"])
    return reduce(add, (from_row(row, n_ranks) for row in ordered))


def consecutive(
    batches: Iterator[pa.RecordBatch], key: Sequence[str]
) -> Iterator[tuple[tuple[Any, ...], list[Row]]]:
    """Yield runs of rows with the same key from sorted batches, across their borders."""
    rows = (row for batch in batches for row in batch.to_pylist())
    for values, run in groupby(rows, key=lambda row: tuple(row[name] for name in key)):
        yield values, list(run)


def _as_bytes(name: str, values: NDArray[Any], n_rounds: int) -> bytes:
    if name == "moves":
        return _packed(values)
    if name in _SLOW and n_rounds >= _MANY_ROUNDS and len(values):
        return values[:1].tobytes() + _packed(np.diff(values))
    if name == "coef_steps":
        values = np.frexp(values)[1]
    return np.ascontiguousarray(values, _BYTES[name]).tobytes()


def _from_bytes(name: str, stored: bytes, n_rounds: int, width: int) -> NDArray[Any]:
    if name == "moves":
        return _unpacked(stored, n_rounds * width).astype(np.int32)
    if name in _SLOW and n_rounds >= _MANY_ROUNDS and stored:
        first = np.frombuffer(stored, np.int64, 1)
        return np.cumsum(np.append(first, _unpacked(stored[8:], n_rounds - 1)))
    values: NDArray[Any] = np.frombuffer(stored, _BYTES[name])
    if name == "coef_steps":
        return np.ldexp(1.0, values.astype(np.int64) - 1)
    return values.astype(np.int64) if name == "ranks" else values


def _packed(values: NDArray[Any]) -> bytes:
    """Return whole numbers as bytes, with the smallest integer type that holds them all."""
    if values.size == 0:
        return b""
    # −1 − max is negative, and needs the same signed type as the maximum
    dtype = np.min_scalar_type(min(int(values.min()), -1 - int(values.max())))
    return values.astype(dtype).tobytes()


def _unpacked(packed: bytes, count: int) -> NDArray[Any]:
    """Return the numbers that `_packed` stored, as a flat array."""
    return np.frombuffer(packed, f"i{len(packed) // count}" if packed else np.int8)
