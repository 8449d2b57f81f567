"""OAP: an ensemble of PRanks, each learned from a random part of one sequence."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from spark_rank.learners.base import FloatArray, check_ranks
from spark_rank.learners.errors import InvalidDataError, not_fitted
from spark_rank.learners.parameters import Choice, Integer, Parameter, Real
from spark_rank.learners.perceptrons.margin_members import MarginGroup, MarginSums
from spark_rank.learners.perceptrons.margins import PERCEPTRON, UPDATES
from spark_rank.learners.perceptrons.members import Design, MemberGroup, PartialSums, digest
from spark_rank.learners.perceptrons.online import (
    OnlineLearner,
    check_examples,
    check_round,
    linear_scores,
    read_only,
)
from spark_rank.learners.perceptrons.replay import RuleSum
from spark_rank.learners.perceptrons.rounds import IntArray, Rule, rank_sums
from spark_rank.learners.rows import Row
from spark_rank.rank_rule import nearest_rank, ranks_from_scores

_MEMBERS = ("member_coef_", "member_thresholds_", "member_correct_")

Group = MemberGroup | MarginGroup
Sums = PartialSums | MarginSums


class OAP(OnlineLearner):
    """Combines N PRanks; a draw ``B(seed, problem, j, t)`` decides if member j sees example t.

    Harrington (ICML 2003, algorithm 2 and sec. 3.1). B is a hash of its arguments (`draws`), and
    all sums over members are whole numbers (`PartialSums`). So every learned attribute has the same
    bits, however the members are split into groups, in whatever order the groups' sums are added,
    and however the sequence is cut into parts. With half-integer features the sums are also exact;
    otherwise the error of a mean is less than 2^-60 N times a bound of the members' weights, which
    is below 1e-12 for the 50,000 examples of the paper.

    The online curve compares sums of scores and thresholds. It replays the sum of the weights
    within blocks of 2^16 rounds (`replay`), with the rounding of a member's own weights. `predict`
    applies the mean rule, whose rounding may decide a tie of score and threshold differently.

    A sequence of T examples costs O(T N (d + k)) time and O(N d + T k) memory.

    Parameters
    ----------
    n_ranks : number of ranks k; None: the ranks are those of the levels of y, for `fit` and
        `partial_fit`.
    n_members : number of members N.
    tau : probability τ with which a member sees an example.
    combine : ``bpm``, the mean rule ``w̃ = Σ w_j / N``, ``c̃ = Σ c_j / N``; ``bagging``, the
        nearest rank to the mean of the members' predicted ranks; ``voted``, the same with the mean
        weighted by v_j, the number of presented rounds that member j ranked correctly (if all v_j
        are 0, as ``bagging``). Means half way between two ranks go to the higher one.
    sampling : ``bernoulli``, or ``poisson`` for Oza's online bagging, where an example is
        presented a Poisson(1) number of times in a row and τ is not used.
    seed, problem : the first two arguments of B; `problem` identifies the sequence (a user's id).
    update, C : how members move, as in `PRank`. Members that move by margins count in w̃ and c̃ with
        ‖(w_j, c_j)‖ = 1, since the length of ROMMA's rule says nothing on noise; `member_coef_` and
        `member_thresholds_` have this length too. Their sums of scores are within N 2^-60 ‖x‖.

    Attributes
    ----------
    coef_, thresholds_ : w̃ and c̃, whatever `combine` is.
    member_coef_, member_thresholds_ : the members' rules, N×d and N×(k−1).
    member_correct_, member_presented_, member_updates_ : v_j; rounds in which the example was
        presented; moves of the rule.
    online_loss_ : average rank loss of the ensemble's predictions so far, after each round.
    n_rounds_, total_loss_ : rounds learned, and the sum of their rank losses.

    A distributed run calls `train_members` in its tasks and then `combine_groups` on their results,
    or `combine_sums` if only the mean rule and the curve are needed. An ensemble from `from_params`
    can score, but not learn further.
    """

    parameters: ClassVar[dict[str, Parameter]] = {
        "n_ranks": Integer("number of ranks k; null: as many as levels", at_least=2, optional=True),
        "n_members": Integer("number of members N", at_least=1),
        "tau": Real("probability that a member sees an example", above=0.0, at_most=1.0),
        "combine": Choice("how members decide", options=("bpm", "bagging", "voted")),
        "sampling": Choice("how examples are drawn", options=("bernoulli", "poisson")),
        "seed": Integer("seed of all draws"),
        "problem": Integer("number of the sequence, such as a user's id"),
        "update": Choice("how members move", options=UPDATES),
        "C": Real("pa: greatest step", above=0.0),
    }
    state = ("n_rounds_", "total_loss_")
    fixed = ("n_ranks", "n_members", "tau", "combine", "sampling", "seed", "problem", "update", "C")
    learned_privately = ("_group", "_replayed")
    epochs = 1

    def __init__(
        self,
        n_ranks: int | None = None,
        *,
        n_members: int = 100,
        tau: float = 0.3,
        combine: str = "bpm",
        sampling: str = "bernoulli",
        seed: int = 0,
        problem: int = 0,
        update: str = PERCEPTRON,
        C: float = 1.0,
    ) -> None:
        self.n_ranks = n_ranks
        self.n_members = n_members
        self.tau = tau
        self.combine = combine
        self.sampling = sampling
        self.seed = seed
        self.problem = problem
        self.update = update
        self.C = C

    def exported_state(self) -> tuple[str, ...]:
        """Return the attributes that scoring needs: the mean rule, or all members."""
        rules = ("coef_", "thresholds_") if self.combine == "bpm" else _MEMBERS
        return rules + super().exported_state()

    def train_members(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        first: int = 0,
        last: int | None = None,
        resume: Any = None,
    ) -> Any:
        """Return members first..last−1 (all by default) trained on a sequence; `self` is unchanged.

        `resume` is the same group after the preceding part of the sequence. So a sequence can be
        streamed in parts, in O(N d + k·part) memory.
        """
        self.check_parameters()
        features = check_examples(X, None if resume is None else resume.coef.shape[1])
        ranks = read_only(check_ranks(y, len(features), self._rank_count()))
        if resume is None:
            end = self.n_members if last is None else last
            resume = self._groups().start(self._design(), first, end, features.shape[1])
        self._check_design(resume.design)
        return resume.learn(features, ranks)

    def combine_groups(self, groups: Sequence[Any], X: ArrayLike, y: ArrayLike) -> Self:
        """Join all `groups`, in any order, that were trained on the sequence `X`, `y`."""
        ordered = sorted(groups, key=lambda group: group.first)
        ends = [0, *(group.last for group in ordered)]
        if [group.first for group in ordered] != ends[:-1] or ends[-1] != self.n_members:
            ranges = ", ".join(f"{group.first}–{group.last - 1}" for group in ordered) or "none"
            raise InvalidDataError(
                f"groups must have members 0–{self.n_members - 1} once each, not {ranges}"
            )
        with self._unchanged_by_failure():
            self.combine_sums(reduce(add, [group.sums() for group in ordered]), X, y)
            self._take_members(self._groups().join(ordered))
        return self

    def combine_sums(self, sums: Sums, X: ArrayLike, y: ArrayLike) -> Self:
        """Take the mean rule and the online curve from the sums over all members.

        `X`, `y` are the examples that the members learned from. The sums of a sequence's first part
        reset the ensemble; those of later parts continue it.
        """
        self.check_parameters()
        if sums.n_members != self.n_members:
            raise InvalidDataError(
                f"the sums are over {sums.n_members} members, not over all {self.n_members}"
            )
        features = check_examples(X, sums.width)
        if len(features) != sums.n_rounds:
            raise InvalidDataError(
                f"X has {len(features)} rows, but the sums are over {sums.n_rounds} rounds"
            )
        ranks = check_ranks(y, len(features), self._rank_count())
        if sums.origin is not None:
            self._check_origin(*sums.origin, ranks)
        done = 0 if sums.first_round == 0 else self._learned("n_rounds_")
        if sums.first_round != done:
            raise InvalidDataError(
                f"the sums start after round {sums.first_round}, but {done} rounds "
                "were combined so far: combine the parts of a sequence in their order"
            )
        replayed = self._replay(sums, features)
        if sums.first_round == 0:
            self._reset()
            self._note_columns(X, features.shape[1])
        self._count(self._take_sums(sums, replayed, ranks))
        return self

    def to_row(self) -> Row:
        """Return the mean rule; of bagging and voting the members' rules and their votes."""
        if self.combine == "bpm":
            return super().to_row()
        rules = self.member_coef_, self.member_thresholds_
        return {"kernel": "linear", "members": rules, "member_votes": self.votes()}

    def _scores(self, X: ArrayLike) -> FloatArray:
        """Return w̃·x, or the (weighted) mean of the members' ranks as a real number."""
        if self.combine == "bpm":
            return linear_scores(check_examples(X, self._n_features()), self.coef_)
        sums, total = self._rank_sums(X)
        return sums / total

    def _ranks(self, X: ArrayLike) -> IntArray:
        if self.combine == "bpm":
            return ranks_from_scores(self._scores(X), self.thresholds_)
        return nearest_rank(*self._rank_sums(X))

    def votes(self) -> IntArray:
        """Return the weight of each member's rank: 1 for bagging, v_j for voted (1 if all 0)."""
        correct: IntArray = self._learned("member_correct_")
        if self.combine != "voted" or not correct.any():
            return np.ones_like(correct)
        return correct

    def member_scores(self, X: ArrayLike) -> FloatArray:
        """Return ``w_j·x``, one row per row of `X`, one column per member."""
        coef = self._learned("member_coef_")
        features = check_examples(X, coef.shape[1])
        return np.column_stack([linear_scores(features, row) for row in coef])

    def _n_features(self) -> int:
        name = "coef_" if self.combine == "bpm" else "member_coef_"
        return int(self._learned(name).shape[-1])

    def _design(self) -> Design:
        C = self.C if self.update == "pa" else 1.0
        return Design(
            self._rank_count(), self.n_members, self.tau, self.sampling, self.seed, self.problem,
            self.update, C,
        )  # fmt: skip

    def _groups(self) -> Any:
        """Return the class of groups of members that move in this way."""
        return MemberGroup if self.update == PERCEPTRON else MarginGroup

    def _check_origin(self, design: Design, seen: bytes, ranks: IntArray) -> None:
        """Raise `InvalidDataError` unless this ensemble's members learned from these ranks."""
        self._check_design(design)
        if seen != digest(ranks, self._rank_count()):
            raise InvalidDataError("the members learned from other ranks: give the same y")

    def _check_design(self, design: Design) -> None:
        if design != self._design():
            raise InvalidDataError(
                f"the members belong to another ensemble, {design}: this one is {self._design()}"
            )

    def _start(self, n_features: int) -> None:
        self._group = self._groups().start(self._design(), 0, self.n_members, n_features)

    def _learn(self, X: FloatArray, ranks: IntArray) -> IntArray:
        if not hasattr(self, "_group"):
            raise not_fitted("an ensemble without its members cannot learn further: call fit")
        group = self._group.learn(X, ranks)
        sums = group.sums()
        losses = self._take_sums(sums, self._replay(sums, X), ranks)
        self._take_members(group)
        return losses

    def _replay(self, sums: Any, X: FloatArray) -> tuple[IntArray, RuleSum | None]:
        replayed: tuple[IntArray, RuleSum | None] = sums.round_ranks(
            self.combine, X, getattr(self, "_replayed", None)
        )
        return replayed

    def _take_sums(
        self, sums: Sums, replayed: tuple[IntArray, RuleSum | None], ranks: IntArray
    ) -> IntArray:
        self.coef_, self.thresholds_ = sums.mean_rule()
        predicted, self._replayed = replayed
        return np.abs(predicted - ranks)

    def _take_members(self, group: Group) -> None:
        self._group = group
        self.member_coef_, self.member_thresholds_ = group.rules()
        self.member_correct_, self.member_presented_ = group.correct, group.presented
        self.member_updates_ = group.updates

    def _rank_sums(self, X: ArrayLike) -> tuple[IntArray, int]:
        """Return Σ v_j h_j(x) for every row and Σ v_j, with v_j = 1 for bagging."""
        features = check_examples(X, self._n_features())
        weights = self.votes()
        sums = np.empty(len(features), dtype=np.int64)
        rules = Rule(self.member_coef_, self.member_thresholds_)
        check_round(rank_sums(features, rules, weights, sums), features)
        return sums, int(weights.sum())
