"""Groups of members that move by margins, and sums over members: the counterpart of `members`.

The groups and sums have the methods of `members.MemberGroup` and `members.PartialSums`. The sums of
scores and thresholds come from the members themselves: thresholds are no whole numbers here, so the
mean rule cannot be replayed from their moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from spark_rank.learners.base import FloatArray
from spark_rank.learners.errors import InvalidDataError
from spark_rank.learners.perceptrons.draws import cumulative_counts, member_keys
from spark_rank.learners.perceptrons.margin_rounds import (
    MarginRounds,
    MarginTask,
    margin_member_rounds,
    margin_steps,
)
from spark_rank.learners.perceptrons.margins import UPDATES
from spark_rank.learners.perceptrons.members import Design, check_range, digest
from spark_rank.learners.perceptrons.online import check_examples, check_round, check_rule
from spark_rank.learners.perceptrons.rounds import IntArray
from spark_rank.rank_rule import nearest_rank

_SUMS = ("n_members", "rules", "scores", "thresholds", "ranks", "votes", "voted_ranks")
_MOVED = ("coef", "thresholds", "units", "lengths", "correct", "presented", "updates")


@dataclass(frozen=True)
class MarginSums:
    """Sums over some members of an ensemble; ``+`` adds the sums of disjoint groups.

    All sums are whole numbers of steps, see `margin_rounds`.
    """

    n_members: int  # in these sums
    first_round: int  # 0, or the number of rounds learned before these T
    rules: IntArray  # d+k−1: after the last round
    scores: IntArray  # T
    thresholds: IntArray  # T×(k−1)
    ranks: IntArray  # T: predicted ranks; these and the following sums are before each round
    votes: IntArray  # T: rounds ranked correctly so far
    voted_ranks: IntArray  # T: votes × predicted ranks
    origin: tuple[Design, bytes]  # the members' design, and a digest of the T ranks

    @property
    def n_rounds(self) -> int:
        """Return the number of these rounds."""
        return len(self.scores)

    @property
    def width(self) -> int:
        """Return the number of features."""
        return len(self.rules) - self.thresholds.shape[1]

    def __add__(self, other: MarginSums) -> MarginSums:
        """Return the sums over both groups of members."""
        if (self.first_round, self.origin) != (other.first_round, other.origin):
            raise InvalidDataError(
                "these sums belong to different sequences or ensembles: only add sums of one "
                "ensemble's members on one problem"
            )
        added = {name: getattr(self, name) + getattr(other, name) for name in _SUMS}
        return replace(self, **added)

    def mean_rule(self) -> tuple[FloatArray, FloatArray]:
        """Return w̃ and c̃, the means over these members of their rules of length 1."""
        mean = self.rules * self._step() / self.n_members
        return mean[: self.width], mean[self.width :]

    def round_ranks(self, combine: str, X: FloatArray, before: None = None) -> tuple[Any, None]:
        """Return the rank that the ensemble of these members predicted at each round of `X`."""
        if combine == "bpm":
            scores = self.scores * _score_steps(self.origin[0], check_examples(X, self.width))
            reached = self.thresholds * self._step() <= scores[:, None]
            return 1 + np.count_nonzero(reached, axis=1), None
        bagging = nearest_rank(self.ranks, self.n_members)
        if combine == "bagging":
            return bagging, None
        voted = nearest_rank(self.voted_ranks, np.maximum(self.votes, 1))
        return np.where(self.votes > 0, voted, bagging), None

    def _step(self) -> float:
        return _rule_step(self.origin[0])


@dataclass(frozen=True)
class MarginGroup:
    """Members first, first + 1, … of an ensemble, after `n_rounds` rounds of a sequence."""

    design: Design
    first: int
    n_rounds: int
    coef: FloatArray  # n×d
    thresholds: FloatArray  # n×(k−1)
    units: FloatArray  # n×1
    lengths: FloatArray  # n
    correct: IntArray  # n: presented rounds ranked correctly
    presented: IntArray  # n: rounds in which the example was presented
    updates: IntArray  # n
    rounds: MarginRounds  # of the rounds of the last call of `learn`
    seen: bytes  # digest of the ranks of these rounds

    @classmethod
    def start(cls, design: Design, first: int, last: int, n_features: int) -> Self:
        """Return members first..last−1 before their first round."""
        check_range(design, first, last)
        n = last - first
        correct, presented, updates = np.zeros((3, n), dtype=np.int64)
        return cls(
            design, first, 0, np.zeros((n, n_features)), np.zeros((n, design.n_ranks - 1)),
            np.ones((n, 1)), np.zeros(n), correct, presented, updates,
            _room(0, design.n_ranks - 1), b"",
        )  # fmt: skip

    @classmethod
    def join(cls, groups: Sequence[Self]) -> Self:
        """Return one group of all members, in the order of `groups`, without sums of rounds."""
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(group, name) for group in groups]) for name in _MOVED
        }
        joined["rounds"] = _room(0, groups[0].thresholds.shape[1])
        return replace(groups[0], **joined)

    @property
    def last(self) -> int:
        """Return the number of the last member plus 1."""
        return self.first + len(self.coef)

    def rules(self) -> tuple[FloatArray, FloatArray]:
        """Return the members' weights and thresholds, of length 1 together, or 0 without moves."""
        lengths = np.where(self.lengths > 0.0, self.lengths, 1.0)[:, None]
        return self.coef / lengths, self.thresholds / lengths

    def learn(self, X: FloatArray, ranks: IntArray) -> Self:
        """Return these members after a pass over examples that `check_examples` has checked."""
        design = self.design
        rounds = _room(len(X), self.thresholds.shape[1])
        task = MarginTask(
            keys=member_keys(design.seed, design.problem, np.arange(self.first, self.last)),
            cumulative=cumulative_counts(design.sampling, design.tau),
            n_members=design.n_members,
            n_rounds=self.n_rounds,
            **{name: getattr(self, name).copy() for name in _MOVED},
        )
        steps, update = _score_steps(design, X), UPDATES.index(design.update)
        failed = margin_member_rounds(
            X, ranks, update, float(design.C), steps, _rule_step(design), task, rounds
        )
        check_round(failed, X)
        check_rule(task.lengths)
        moved = {name: getattr(task, name) for name in _MOVED}
        seen = digest(ranks, design.n_ranks)
        return replace(self, n_rounds=self.n_rounds + len(X), rounds=rounds, seen=seen, **moved)

    def sums(self) -> MarginSums:
        """Return the sums over these members: of their rules, and of the last call's rounds."""
        rules = np.column_stack(self.rules()) / _rule_step(self.design)
        first_round = self.n_rounds - len(self.rounds.scores)
        return MarginSums(
            n_members=len(self.coef),
            first_round=first_round,
            rules=np.trunc(rules).astype(np.int64).sum(axis=0),
            origin=(self.design, self.seen),
            **self.rounds._asdict(),
        )


def _rule_step(design: Design) -> float:
    return float(margin_steps(design.n_members, np.ones(1))[0])


def _score_steps(design: Design, X: FloatArray) -> FloatArray:
    """Return the step of the sum of scores of each round: a score is at most √d max|x_i|."""
    return margin_steps(design.n_members, np.sqrt(X.shape[1]) * np.abs(X).max(axis=1, initial=0.0))


def _room(n_rounds: int, n_thresholds: int) -> MarginRounds:
    return MarginRounds(
        np.empty(n_rounds, np.int64),
        np.empty((n_rounds, n_thresholds), np.int64),
        *np.empty((3, n_rounds), dtype=np.int64),
    )
