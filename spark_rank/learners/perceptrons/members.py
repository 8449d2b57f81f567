"""The parts of an OAP ensemble that tasks exchange: groups of members, and sums over members."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from hashlib import blake2b
from typing import Any, NamedTuple, Self

import numpy as np

from spark_rank.learners.base import FloatArray
from spark_rank.learners.errors import InvalidDataError, NumericFailureError
from spark_rank.learners.perceptrons.blocks import begins_block, pieces
from spark_rank.learners.perceptrons.draws import cumulative_counts, member_keys
from spark_rank.learners.perceptrons.member_rounds import (
    SMALLEST_STEP,
    SUM_BITS,
    RoundSums,
    Task,
    oap_pass,
)
from spark_rank.learners.perceptrons.online import check_examples, check_round, read_only
from spark_rank.learners.perceptrons.replay import Moves, RuleSum, replay_pass
from spark_rank.learners.perceptrons.rounds import OK, IntArray
from spark_rank.rank_rule import nearest_rank


@dataclass(frozen=True)
class Design:
    """The parameters that are the same in all tasks that train members of an ensemble."""

    n_ranks: int
    n_members: int
    tau: float
    sampling: str
    seed: int
    problem: int
    update: str = "perceptron"
    C: float = 1.0


def check_range(design: Design, first: int, last: int) -> None:
    """Raise `InvalidDataError` unless there are members first..last−1."""
    if not 0 <= first < last <= design.n_members:
        raise InvalidDataError(
            f"members {first} to {last} (exclusive): give a non-empty range within "
            f"0 to {design.n_members}"
        )


@dataclass(frozen=True)
class PartialSums:
    """Sums over some members of an ensemble; ``+`` adds the sums of disjoint groups.

    All sums are whole numbers, so any order and grouping of the additions gives the same bits.
    `coef` counts steps of `coef_steps`, powers of two that depend on the examples and not on the
    members. The rows of `coef` and `thresholds` are the sums before each of the B rounds that
    begin a block (`blocks`), not counting round 0, and after the last round. The size is
    O(T k + B d) for any number of members.
    """

    n_members: int  # in these sums
    first_round: int  # 0, or the number of rounds learned before these T
    n_rounds: int  # T
    coef: IntArray  # (B+1)×d
    coef_steps: FloatArray  # (B+1)×d
    thresholds: IntArray  # (B+1)×(k−1)
    moves: Moves  # T×(k−1): what each round adds to the thresholds
    ranks: IntArray  # T: predicted ranks; these and the following sums are before each round
    votes: IntArray  # T: rounds ranked correctly so far
    voted_ranks: IntArray  # T: votes × predicted ranks
    # the members' design, and a digest of the T ranks; None if the caller knows both
    origin: tuple[Design, bytes] | None = None

    @property
    def width(self) -> int:
        """Return the number of features."""
        return int(self.coef.shape[1])

    def __add__(self, other: PartialSums) -> PartialSums:
        """Return the sums over both groups of members."""
        fixed = ("first_round", "n_rounds", "coef_steps")
        differs = any(
            not np.array_equal(getattr(self, name), getattr(other, name)) for name in fixed
        )
        if differs or self.origin != other.origin:
            raise InvalidDataError(
                "these sums belong to different sequences or ensembles: only add sums of one "
                "ensemble's members on one problem"
            )
        names = [field.name for field in fields(self) if field.name not in (*fixed, "origin")]
        return replace(self, **{name: getattr(self, name) + getattr(other, name) for name in names})

    def mean_rule(self) -> tuple[FloatArray, FloatArray]:
        """Return w̃ and c̃, the means over these members after the last round."""
        coef, thresholds = self._rule_sums()[-1]
        return coef / self.n_members, thresholds / self.n_members

    def round_ranks(
        self, combine: str, X: FloatArray, before: RuleSum | None = None
    ) -> tuple[IntArray, RuleSum | None]:
        """Return the rank that the ensemble of these members predicted at each round of `X`.

        For a sequence in parts, `before` is the second result of the previous part. It is not
        needed where a block begins, nor for votes. Until some member ranks an example correctly,
        ``voted`` is ``bagging``.
        """
        if combine == "bpm":
            return self._replay(check_examples(X, self.coef.shape[1]), before)
        bagging = nearest_rank(self.ranks, self.n_members)
        if combine == "bagging":
            return bagging, None
        voted = nearest_rank(self.voted_ranks, np.maximum(self.votes, 1))
        return np.where(self.votes > 0, voted, bagging), None

    def _rule_sums(self) -> list[RuleSum]:
        """Return the sums of the rules where blocks begin and after the last round, as copies."""
        rules = zip(self.coef * self.coef_steps, self.thresholds.copy(), strict=True)
        return [RuleSum(coef, thresholds) for coef, thresholds in rules]

    def _replay(self, X: FloatArray, before: RuleSum | None) -> tuple[IntArray, RuleSum]:
        """Return the ranks that the mean rule predicted, and the sum of the rules afterwards."""
        rules, first = self._rule_sums(), self.first_round
        rule = self._first_rule(rules, before)
        blocks = pieces(first, first + self.n_rounds, self.n_rounds)
        ranks, moves = np.empty(self.n_rounds, dtype=np.int64), read_only(self.moves)
        for (start, stop), after in zip(blocks, rules, strict=True):
            part, replayed = slice(start - first, stop - first), rule
            _check_part(replay_pass(X[part], moves[part], replayed, ranks[part]), X, part)
            self._check_replay(replayed, after)
            rule = after
        return ranks, replayed

    def _first_rule(self, rules: list[RuleSum], before: RuleSum | None) -> RuleSum:
        """Return the sum of the rules before the first round; take it from `rules` if possible."""
        if self.first_round == 0:
            return RuleSum(np.zeros_like(rules[-1].coef), np.zeros_like(rules[-1].thresholds))
        if begins_block(self.first_round):
            return rules.pop(0)
        if before is None:
            raise InvalidDataError(
                f"the sums start after round {self.first_round}, within a block, but the rounds "
                "before are missing: combine the parts of a sequence in their order"
            )
        return RuleSum(before.coef.copy(), before.thresholds.copy())

    def _check_replay(self, replayed: RuleSum, members: RuleSum) -> None:
        """Raise `InvalidDataError` unless the replay of a block ends at the sum of the members.

        Since the block began, both were rounded in up to 2^16 rounds by some 2^-53 of a bound of at
        most 2^61 steps: less than 2^30 steps in all. Steps never become smaller.
        """
        near = np.abs(replayed.coef - members.coef) <= 2.0**31 * self.coef_steps[-1]
        if not (near.all() and np.array_equal(replayed.thresholds, members.thresholds)):
            raise InvalidDataError("the members learned from other examples: give the same X")


class RuleSteps(NamedTuple):
    """The sums of some members' rules at one time, as rows of `PartialSums`."""

    coef: IntArray
    coef_steps: FloatArray
    thresholds: IntArray


@dataclass(frozen=True)
class MemberGroup:
    """Members first, first + 1, … of an ensemble, after `n_rounds` rounds of a sequence."""

    design: Design
    first: int
    n_rounds: int
    coef: FloatArray  # n×d
    thresholds: FloatArray  # n×(k−1)
    correct: IntArray  # n: presented rounds ranked correctly
    presented: IntArray  # n: rounds in which the example was presented
    updates: IntArray  # n
    energy: FloatArray  # 1 number that bounds every member, see `member_rounds`
    column_sums: FloatArray  # d: the same per feature
    rounds: RoundSums  # of the rounds of the last call of `learn`
    starts: tuple[RuleSteps, ...]  # before those of these rounds that begin a block, not round 0
    seen: bytes  # digest of the ranks of these rounds

    @classmethod
    def start(cls, design: Design, first: int, last: int, n_features: int) -> Self:
        """Return members first..last−1 before their first round."""
        check_range(design, first, last)
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
            starts=(),
            seen=b"",
        )

    @classmethod
    def join(cls, groups: Sequence[Self]) -> Self:
        """Return one group of all members, in the order of `groups`, without sums of rounds."""
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(group, name) for group in groups]) for name in _MEMBERS
        }
        joined["rounds"] = _room_for_sums(0, groups[0].thresholds.shape[1])
        return replace(groups[0], starts=(), **joined)

    @property
    def last(self) -> int:
        """Return the number of the last member plus 1."""
        return self.first + len(self.coef)

    def rules(self) -> tuple[FloatArray, FloatArray]:
        """Return the members' weights and thresholds."""
        return self.coef, self.thresholds

    def learn(self, X: FloatArray, ranks: IntArray) -> Self:
        """Return these members after a pass over examples that `check_examples` has checked.

        A long sequence can be passed in parts. O(T n (d + k)) time, O(n d + T k) memory.
        """
        rounds, starts = _room_for_sums(len(X), self.thresholds.shape[1]), []
        first, group = self.n_rounds, self
        for start, stop in pieces(first, first + len(X), len(X)):
            if begins_block(start) and start > 0:
                starts.append(group._rule_steps())
            group = group._learn_part(X, ranks, rounds, slice(start - first, stop - first))
        seen = digest(ranks, self.design.n_ranks)
        return replace(group, rounds=rounds, starts=tuple(starts), seen=seen)

    def sums(self) -> PartialSums:
        """Return the sums over these members: of their rules, and of the last call's rounds."""
        rows = zip(*self.starts, self._rule_steps(), strict=True)
        n_rounds = len(self.rounds.moves)
        return PartialSums(
            n_members=len(self.coef),
            origin=(self.design, self.seen),
            first_round=self.n_rounds - n_rounds,
            n_rounds=n_rounds,
            **dict(zip(RuleSteps._fields, map(np.stack, rows), strict=True)),
            **self.rounds._asdict(),
        )

    def _learn_part(self, X: FloatArray, ranks: IntArray, rounds: RoundSums, part: slice) -> Self:
        """Return these members after a part of the rows of `X`; write the sums to `rounds`."""
        task = self._task()
        failed = oap_pass(X[part], ranks[part], task, rounds.part(part))
        _check_part(failed, X, part)
        if not np.isfinite(task.energy).all():
            raise NumericFailureError("the scores may overflow: scale the features down")
        moved = {name: getattr(task, name) for name in _MOVED}
        return replace(self, n_rounds=self.n_rounds + part.stop - part.start, **moved)

    def _rule_steps(self) -> RuleSteps:
        steps = self._coef_steps()
        coef = np.trunc(self.coef / steps).astype(np.int64).sum(axis=0)
        return RuleSteps(coef, steps, self.thresholds.sum(axis=0).astype(np.int64))

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


def digest(ranks: IntArray, n_ranks: int) -> bytes:
    """Return a digest of a sequence's ranks."""
    # in the smallest type: a digest of eight bytes per rank would take longer than a member
    return blake2b(ranks.astype(np.min_scalar_type(n_ranks)).data, digest_size=16).digest()


def _check_part(failed: int, X: FloatArray, part: slice) -> None:
    """Raise the error of the round at which a kernel stopped in a part of `X`, if it did."""
    check_round(failed if failed == OK else part.start + failed, X)


def _room_for_sums(n_rounds: int, n_thresholds: int) -> RoundSums:
    moves = np.zeros((n_rounds, n_thresholds), dtype=np.int32)
    return RoundSums(moves, *np.empty((3, n_rounds), dtype=np.int64))
