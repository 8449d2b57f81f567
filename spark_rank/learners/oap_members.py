"""The pieces of an OAP ensemble that travel: groups of members, and sums over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from hashlib import blake2b
from typing import Any, Self

import numpy as np

from spark_rank.learners._oap import SMALLEST_STEP, SUM_BITS, RoundSums, Task, oap_pass
from spark_rank.learners._online import IntArray
from spark_rank.learners.base import FloatArray
from spark_rank.learners.errors import InvalidDataError, NumericFailureError
from spark_rank.learners.member_draws import cumulative_counts, member_keys
from spark_rank.learners.online import check_round, nearest_rank


@dataclass(frozen=True)
class Design:
    """What all tasks that train members of one ensemble must agree on."""

    n_ranks: int
    n_members: int
    tau: float
    sampling: str
    seed: int
    problem: int


@dataclass(frozen=True)
class PartialSums:
    """Sums over some members of an ensemble; those of disjoint groups add up with ``+``.

    All sums are whole numbers, so any order and grouping of the additions gives the same bits.
    `coef` and `scores` count steps of `coef_steps` and `steps`, powers of two that depend on the
    examples and not on the members. O(T k + d) in size, however many members.
    """

    n_members: int  # in these sums
    first_round: int  # 0, or the number of rounds learned before these T
    coef: IntArray  # d
    coef_steps: FloatArray  # d
    final_thresholds: IntArray  # k−1, after the last round
    scores: IntArray  # T; this and what follows: before each round
    steps: FloatArray  # T
    thresholds: IntArray  # T×(k−1)
    ranks: IntArray  # T: predicted ranks
    votes: IntArray  # T: rounds ranked correctly so far
    voted_ranks: IntArray  # T: votes × predicted ranks
    # the members' design, and a digest of the T ranks; None if whoever adds the sums knows both
    origin: tuple[Design, bytes] | None = None

    def __add__(self, other: PartialSums) -> PartialSums:
        """Return the sums over both groups of members."""
        fixed = ("first_round", "coef_steps", "steps")
        unlike = any(
            not np.array_equal(getattr(self, name), getattr(other, name)) for name in fixed
        )
        if unlike or self.origin != other.origin:
            raise InvalidDataError(
                "these sums are of different sequences or ensembles: add those of one ensemble's "
                "members on one problem only"
            )
        names = [field.name for field in fields(self) if field.name not in (*fixed, "origin")]
        return replace(self, **{name: getattr(self, name) + getattr(other, name) for name in names})

    def mean_rule(self) -> tuple[FloatArray, FloatArray]:
        """Return w̃ and c̃, the means over these members after the last round."""
        coef = self.coef * self.coef_steps / self.n_members
        return coef, self.final_thresholds / self.n_members

    def round_ranks(self, combine: str) -> IntArray:
        """Return the rank that the ensemble of these members predicted at each round.

        Sums are compared, never means: nothing is rounded before the comparison but the sum of
        scores to 53 bits. Before any member ranked anything correctly ``voted`` is ``bagging``.
        """
        if combine == "bpm":
            sums = (self.scores * self.steps)[:, None]
            return 1 + (sums >= self.thresholds).sum(axis=1)
        bagging = nearest_rank(self.ranks, self.n_members)
        if combine == "bagging":
            return bagging
        voted = nearest_rank(self.voted_ranks, np.maximum(self.votes, 1))
        return np.where(self.votes > 0, voted, bagging)


@dataclass(frozen=True)
class MemberGroup:
    """Members first, first + 1, … of an ensemble, after `n_rounds` rounds of a sequence."""

    design: Design
    first: int
    n_rounds: int
    coef: FloatArray  # n×d
    thresholds: FloatArray  # n×(k−1)
    correct: IntArray  # n: presented rounds ranked right
    presented: IntArray  # n: rounds in which the example was presented
    updates: IntArray  # n
    energy: FloatArray  # 1 number, and d: what bounds every member, see `_oap`
    column_sums: FloatArray
    rounds: RoundSums  # of the rounds learned by the last call of `learn`
    seen: bytes  # digest of their ranks

    @classmethod
    def start(cls, design: Design, first: int, last: int, n_features: int) -> Self:
        """Return members first..last−1 before their first round."""
        if not 0 <= first < last <= design.n_members:
            raise InvalidDataError(
                f"members {first} to {last} (exclusive): give a non-empty part of "
                f"0 to {design.n_members}"
            )
        n = last - first
        return cls(
            design=design,
            first=first,
            n_rounds=0,
            coef=np.zeros((n, n_features)),
            thresholds=np.zeros((n, design.n_ranks - 1)),
            correct=np.zeros(n, dtype=np.int64),
            presented=np.zeros(n, dtype=np.int64),
            updates=np.zeros(n, dtype=np.int64),
            energy=np.zeros(1),
            column_sums=np.zeros(n_features),
            rounds=_room_for_sums(0, design.n_ranks - 1),
            seen=digest(np.empty(0, dtype=np.int64)),
        )

    @classmethod
    def join(cls, groups: Sequence[Self]) -> Self:
        """Return one group of all members, in the order of `groups`, with no rounds to sum."""
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(group, name) for group in groups]) for name in _MEMBERS
        }
        joined["rounds"] = _room_for_sums(0, groups[0].thresholds.shape[1])
        return replace(groups[0], **joined)

    @property
    def last(self) -> int:
        """The number after the last member's."""
        return self.first + len(self.coef)

    def learn(self, X: FloatArray, ranks: IntArray) -> Self:
        """Return these members after one more pass over examples as `check_examples` gives them.

        A long sequence can be given in parts. O(T n (d + k)) time, O(n d + T k) memory.
        """
        task, rounds = self._task(), _room_for_sums(len(X), self.thresholds.shape[1])
        check_round(oap_pass(X, ranks, task, rounds), X)
        if not np.isfinite(task.energy).all():
            raise NumericFailureError("the scores may overflow: scale the features down")
        moved = {name: getattr(task, name) for name in _MOVED}
        return replace(
            self, n_rounds=self.n_rounds + len(X), rounds=rounds, seen=digest(ranks), **moved
        )

    def sums(self) -> PartialSums:
        """Return the sums over these members: their rules now, and the rounds last learned."""
        steps = self._coef_steps()
        return PartialSums(
            n_members=len(self.coef),
            origin=(self.design, self.seen),
            first_round=self.n_rounds - len(self.rounds.scores),
            coef=np.trunc(self.coef / steps).astype(np.int64).sum(axis=0),
            coef_steps=steps,
            final_thresholds=self.thresholds.sum(axis=0).astype(np.int64),
            **self.rounds._asdict(),
        )

    def _task(self) -> Task:
        design = self.design
        return Task(
            keys=member_keys(design.seed, design.problem, np.arange(self.first, self.last)),
            cumulative=self._cumulative(),
            n_members=design.n_members,
            n_rounds=self.n_rounds,
            **{name: getattr(self, name).copy() for name in _MOVED},
        )

    def _cumulative(self) -> FloatArray:
        return cumulative_counts(self.design.sampling, self.design.tau)

    def _coef_steps(self) -> FloatArray:
        """Return the step of each coefficient's sum, from √E or (k−1) Σ_t |x_ti|."""
        most_often = len(self._cumulative()) * self.thresholds.shape[1]
        bounds = np.minimum(np.sqrt(self.energy), most_often * self.column_sums)
        _, exponents = np.frexp(self.design.n_members * bounds)
        return np.ldexp(1.0, np.maximum(exponents - SUM_BITS, SMALLEST_STEP))


_MEMBERS = ("coef", "thresholds", "correct", "presented", "updates")
_MOVED = (*_MEMBERS, "energy", "column_sums")


def digest(ranks: IntArray) -> bytes:
    """Return what tells the ranks of a sequence from those of another one."""
    return blake2b(np.ascontiguousarray(ranks).data, digest_size=16).digest()


def _room_for_sums(n_rounds: int, n_thresholds: int) -> RoundSums:
    scores, ranks, votes, voted_ranks = np.empty((4, n_rounds), dtype=np.int64)
    thresholds = np.empty((n_rounds, n_thresholds), dtype=np.int64)
    return RoundSums(scores, np.empty(n_rounds), thresholds, ranks, votes, voted_ranks)
