"""PRank: projects items on a line that ordered thresholds cut into ranks; learns online."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from spark_rank.learners.base import FloatArray, check_features
from spark_rank.learners.errors import InvalidParameterError, NumericFailureError
from spark_rank.learners.kernels import KERNELS, Kernel
from spark_rank.learners.parameters import Choice, Integer, Parameter, Real
from spark_rank.learners.perceptrons.margins import (
    PERCEPTRON,
    UPDATES,
    MarginRule,
    RuleMean,
    add_pending,
    margin_pass,
)
from spark_rank.learners.perceptrons.online import (
    OnlineLearner,
    check_examples,
    check_round,
    check_rule,
    linear_scores,
    read_only,
)
from spark_rank.learners.perceptrons.rounds import (
    IntArray,
    Rounds,
    Rule,
    add_rows,
    prank_pass,
    prank_round,
    prefix_rank_sums,
    voted_rank_sums,
)
from spark_rank.learners.rows import Row
from spark_rank.rank_rule import nearest_rank, ranks_from_scores

_LAST = ("last_coef_", "last_thresholds_", "timed_coef_")
_HISTORY = ("support_vectors_", "support_coef_", "support_rounds_", "rule_thresholds_")
# of a mean of rules that move by margins
_OF_MARGINS = ("last_coef_", "last_thresholds_", "summed_coef_", "summed_thresholds_",
               "pending_rounds_")  # fmt: skip
_BLOCK = 2**22  # kernel values in memory at once while scoring


class PRank(OnlineLearner):
    """Ranks with ``ŷ = min { r : w·x − b_r < 0 }`` and moves the rule when ŷ is wrong.

    Crammer and Singer (NIPS 2001, fig. 1). Starting from w = 0, b = 0 (the first prediction is
    k), a wrong prediction moves each threshold on the wrong side by one, ``b_r −= τ_r``, and
    ``w += (Σ τ_r) x``. Thresholds stay ordered (lemma 1); on a sequence that a unit-norm rule
    ranks with margin γ the total rank loss is at most ``(k−1)(R²+1)/γ²`` (theorem 2).

    The linear form costs O(d + k) a round. Other kernels keep the S examples that moved the rule
    and cost O(S d) a round: ``Σ_t (Σ_r τ_r^t) K(x_t, x)`` stands for w·x. The polynomial kernel
    with the defaults below is linear PRank on `polynomial_features`, which is cheaper.

    Parameters
    ----------
    n_ranks : number of ranks k; None: the ranks are those of the levels of y.
    kernel, gamma, degree, coef0 : see `Kernel`. γ has no default from the data, because an online
        learner has not seen the data when it starts.
    epochs : how many times `fit` goes through the sequence; `partial_fit` goes once.
    readout : which rule of the run is the result. ``last``: the last rule. ``averaged``: the mean
        of (w, b) over all rounds. ``voted``: every rule votes for the rank that it predicts; its
        weight is the number of rounds that it ranked correctly before it was moved (Harrington
        2003, sec. 3.1). The prediction is the weighted mean rank, rounded half up. If no rule
        ranked a round correctly, the last one decides. Voting keeps all S + 1 rules and scores in
        O(S (d + k)), also for the linear kernel.
    update : how the rule moves. ``perceptron``: as above. ``romma``: to the shortest (w, b) with
        enough margin at this example and no less at the rule before (Harrington's proposal, with
        the update of Li and Long 2002). ``aggressive-romma``: also where a margin is below 1.
        ``pa``: a step of at most `C` towards the margin 1 (Crammer et al. 2006). See `margins`.
        These are for the linear kernel: `polynomial_features` has the coordinates of another one.
        Their thresholds are real numbers, ``averaged`` is the mean of rules of length 1, and there
        is no ``voted``.
    C : the greatest step of ``pa``.

    Attributes
    ----------
    coef_ : w (d) of the linear form; of other kernels the weight of each support (S).
    thresholds_ : b_1 ≤ … ≤ b_{k−1}. Both are the mean rule if ``averaged``, else the last.
    online_loss_ : average rank loss of the predictions so far, after each round.
    n_rounds_, total_loss_ : rounds learned, and the sum of their rank losses.
    support_vectors_, support_coef_, support_rounds_, rule_thresholds_ : kernel form or voting:
        the S examples that moved the rule, Σ τ_r and round (from 1) of each, and the thresholds
        before the first and after each of these moves (S + 1 rows).

    One example, or equal ranks, need no special case: the rule moves until it is right, or stays at
    zero if all ranks are k.
    """

    parameters: ClassVar[dict[str, Parameter]] = {
        "n_ranks": Integer("number of ranks k; null: as many as levels", at_least=2, optional=True),
        "kernel": Choice("kernel between items", options=KERNELS[:-1]),
        "epochs": Integer("passes over the sequence", at_least=1),
        "readout": Choice("rule of the run", options=("last", "averaged", "voted")),
        "gamma": Real("width of the Gaussian, factor of the polynomial", above=0.0),
        "degree": Integer("degree of the polynomial kernel", at_least=1),
        "coef0": Real("constant of the polynomial kernel", at_least=0.0),
        "update": Choice("how the rule moves", options=UPDATES),
        "C": Real("pa: greatest step", above=0.0),
    }
    state = ("coef_", "thresholds_", "n_rounds_", "total_loss_")
    fixed = ("n_ranks", "kernel", "readout", "gamma", "degree", "coef0", "update", "C")

    def __init__(
        self,
        n_ranks: int | None = None,
        *,
        kernel: str = "linear",
        epochs: int = 1,
        readout: str = "last",
        gamma: float = 1.0,
        degree: int = 2,
        coef0: float = 1.0,
        update: str = PERCEPTRON,
        C: float = 1.0,
    ) -> None:
        self.n_ranks = n_ranks
        self.kernel = kernel
        self.epochs = epochs
        self.readout = readout
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.update = update
        self.C = C

    def check_parameters(self) -> None:
        """Raise `InvalidParameterError` unless every parameter is in its range and they agree."""
        super().check_parameters()
        if self.update != PERCEPTRON and self.kernel != "linear":
            raise InvalidParameterError(
                f"update={self.update!r} is for kernel='linear': give it polynomial_features"
            )
        if self.update != PERCEPTRON and self.readout == "voted":
            raise InvalidParameterError(
                f"update={self.update!r} has no voted read-out: use readout='averaged'"
            )

    def exported_state(self) -> tuple[str, ...]:
        """Return the attributes that scoring and further learning need."""
        names = super().exported_state()
        if self.update != PERCEPTRON:
            return (*names, "unit_", *(_OF_MARGINS if self.readout == "averaged" else ()))
        names += _HISTORY if self._keeps_history() else ()
        if self.readout != "averaged":
            return names
        return names + ("summed_thresholds_",) + (_LAST if self.kernel == "linear" else ())

    def to_row(self) -> Row:
        """Return weights and thresholds; for kernels and votes, the coefficient of each example."""
        if self.kernel == "linear" and self.readout != "voted":
            return super().to_row()
        voted = self.readout == "voted"
        n_examples = self.n_rounds_ // self.epochs
        return {
            "kernel": self.kernel,
            "gamma": None if self.kernel == "linear" else self.gamma,
            "thresholds": (self.rule_thresholds_ if voted else self.thresholds_).ravel(),
            "votes": self.votes() if voted else None,
            "dual": self.support_coef_ if voted else self.coef_,
            "support": (self.support_rounds_ - 1) % n_examples,
        }

    def _scores(self, X: ArrayLike) -> FloatArray:
        """Return w·x, or the weighted mean of the predicted ranks if the read-out is voted."""
        if self.readout == "voted":
            return self._vote_sums(X) / self.votes().sum()
        if self.kernel == "linear":
            return linear_scores(check_examples(X, self._n_features()), self.coef_)
        return np.concatenate([values @ self.coef_ for values in self._kernel_blocks(X)])

    def _ranks(self, X: ArrayLike) -> IntArray:
        if self.readout == "voted":
            return nearest_rank(self._vote_sums(X), int(self.votes().sum()))
        return ranks_from_scores(self._scores(X), self.thresholds_)

    def votes(self) -> IntArray:
        """Return the number of rounds that each of the S + 1 rules survived."""
        rounds = self._learned("support_rounds_")
        votes = np.diff(rounds, prepend=0, append=self.n_rounds_ + 1) - 1
        if not votes.any():
            votes[-1] = 1
        return votes

    def _keeps_history(self) -> bool:
        return self.kernel != "linear" or self.readout == "voted"

    def _n_features(self) -> int:
        name = "support_vectors_" if self.kernel != "linear" else "coef_"
        return int(self._learned(name).shape[-1])

    def _start(self, n_features: int) -> None:
        n_weights, n_thresholds = (
            n_features if self.kernel == "linear" else 0,
            self._rank_count() - 1,
        )
        self.coef_, self.thresholds_ = np.zeros(n_weights), np.zeros(n_thresholds)
        if self.update != PERCEPTRON:
            self._start_by_margins()
            return
        if self.readout == "averaged":
            self.last_coef_, self.last_thresholds_ = self.coef_, self.thresholds_
            self.timed_coef_, self.summed_thresholds_ = self.coef_, self.thresholds_
        if self._keeps_history():
            self.support_vectors_ = np.empty((0, n_features))
            self.support_coef_ = np.empty(0)
            self.support_rounds_ = np.empty(0, dtype=np.int64)
            self.rule_thresholds_ = np.zeros((1, n_thresholds))

    def _start_by_margins(self) -> None:
        self.unit_ = 1.0
        if self.readout == "averaged":
            self.last_coef_, self.last_thresholds_ = self.coef_, self.thresholds_
            self.summed_coef_, self.summed_thresholds_ = self.coef_, self.thresholds_
            self.pending_rounds_ = 0

    def _learn(self, X: FloatArray, ranks: IntArray) -> IntArray:
        if self.update != PERCEPTRON:
            return self._margin_pass(X, ranks)
        if self.kernel == "linear":
            done = self._linear_pass(X, ranks)
        else:
            done = self._kernel_pass(check_features(X), ranks)
        if self._keeps_history():
            self._remember_moves(X, done)
        if self.readout == "averaged":
            self._average(X, done)
        return done.losses

    def _linear_pass(self, X: FloatArray, ranks: IntArray) -> Rounds:
        averaged = self.readout == "averaged"
        coef = self.last_coef_ if averaged else self.coef_
        thresholds = self.last_thresholds_ if averaged else self.thresholds_
        rule = Rule(coef.copy(), thresholds.copy())
        done = room_for_rounds(len(X), len(thresholds), traced=self.readout != "last")
        check_round(prank_pass(X, ranks, rule, done), X)
        check_rule(rule.coef)
        self.coef_, self.thresholds_ = rule
        return done

    def _margin_pass(self, X: FloatArray, ranks: IntArray) -> IntArray:
        averaged = self.readout == "averaged"
        coef = self.last_coef_ if averaged else self.coef_
        thresholds = self.last_thresholds_ if averaged else self.thresholds_
        rule = MarginRule(coef.copy(), thresholds.copy(), np.array([self.unit_]))
        mean = self._mean_so_far()
        losses = np.empty(len(X), dtype=np.int64)
        update = UPDATES.index(self.update)
        check_round(margin_pass(X, ranks, update, float(self.C), rule, mean, losses), X)
        check_rule(rule.coef)
        self.coef_, self.thresholds_, self.unit_ = rule.coef, rule.thresholds, float(rule.unit[0])
        if averaged:
            self._take_mean(rule, mean, self.n_rounds_ + len(X))
        return losses

    def _mean_so_far(self) -> RuleMean:
        """Return copies of the sums of earlier rules; without room where no mean is asked for."""
        if self.readout != "averaged":
            return RuleMean(np.empty(0), np.empty(0), np.zeros(1, np.int64))
        pending = np.array([self.pending_rounds_])
        return RuleMean(self.summed_coef_.copy(), self.summed_thresholds_.copy(), pending)

    def _take_mean(self, rule: MarginRule, mean: RuleMean, n_rounds: int) -> None:
        """Replace the last rule by the mean, over all rounds, of the rules with length 1."""
        self.last_coef_, self.last_thresholds_ = rule.coef, rule.thresholds
        # rounds since the last move stay apart, so that cutting the sequence changes no bit
        self.summed_coef_, self.summed_thresholds_ = mean.coef.copy(), mean.thresholds.copy()
        self.pending_rounds_ = int(mean.pending[0])
        add_pending(rule, mean)
        self.coef_, self.thresholds_ = mean.coef / n_rounds, mean.thresholds / n_rounds

    def _kernel_pass(self, X: FloatArray, ranks: IntArray) -> Rounds:
        """Learn the rows of `X` one by one, so that cutting the sequence changes no result."""
        kernel, thresholds = self._kernel(), self.rule_thresholds_[-1].copy()
        done, size = room_for_rounds(len(X), len(thresholds)), len(self.support_coef_)
        vectors = np.concatenate([self.support_vectors_, X])  # room for an error in every round
        weights = np.concatenate([self.support_coef_, np.empty(len(X))])
        for t, row in enumerate(X):
            values = finite_values(kernel, row[None, :], vectors[:size])[0]
            score, done.losses[t], done.amounts[t] = prank_round(
                values, weights[:size], ranks[t], thresholds
            )
            if not np.isfinite(score):
                check_round(t, X)
            if done.losses[t] > 0:
                vectors[size], weights[size] = row, done.amounts[t]
                size += 1
            done.thresholds[t] = thresholds
        self.coef_, self.thresholds_ = weights[:size].copy(), thresholds
        return done

    def _remember_moves(self, X: FloatArray, done: Rounds) -> None:
        moved = np.flatnonzero(done.losses)
        self.support_vectors_ = np.concatenate([self.support_vectors_, X[moved]])
        self.support_coef_ = np.append(self.support_coef_, done.amounts[moved])
        self.support_rounds_ = np.append(self.support_rounds_, self.n_rounds_ + 1 + moved)
        self.rule_thresholds_ = np.concatenate([self.rule_thresholds_, done.thresholds[moved]])

    def _average(self, X: FloatArray, done: Rounds) -> None:
        """Replace the last rule by the mean, over rounds 1..T, of the rule after each round.

        A move Δ at round t is in T − t + 1 of these rules, so the mean is ((T+1) Σ Δ − Σ t Δ) / T:
        rounds without a move cost nothing.
        """
        n_rounds = self.n_rounds_ + len(X)
        self.summed_thresholds_ = self.summed_thresholds_ + done.thresholds.sum(axis=0)
        if self.kernel == "linear":
            self.last_coef_, self.last_thresholds_ = self.coef_, self.thresholds_
            self.timed_coef_ = self.timed_coef_.copy()
            rounds = np.arange(self.n_rounds_ + 1, n_rounds + 1)
            add_rows(rounds * done.amounts, X, self.timed_coef_)
            self.coef_ = ((n_rounds + 1) * self.last_coef_ - self.timed_coef_) / n_rounds
        else:
            self.coef_ = self.support_coef_ * (n_rounds + 1 - self.support_rounds_) / n_rounds
        self.thresholds_ = self.summed_thresholds_ / n_rounds

    def _kernel(self) -> Kernel:
        return Kernel(self.kernel, self.gamma, self.degree, self.coef0)

    def _kernel_blocks(self, X: ArrayLike) -> Iterator[FloatArray]:
        """Yield K(x, supports) for blocks of rows of `X` of bounded size, at least one block."""
        features = check_features(X, self._n_features())
        kernel, vectors = self._kernel(), self._learned("support_vectors_")
        step = max(1, _BLOCK // max(1, len(vectors)))
        for start in range(0, max(1, len(features)), step):
            yield finite_values(kernel, features[start : start + step], vectors)

    def _vote_sums(self, X: ArrayLike) -> IntArray:
        votes, blocks = self.votes(), []
        if self.kernel == "linear":
            features = check_examples(X, self._n_features())
            sums = np.empty(len(features), dtype=np.int64)
            vectors = read_only(self.support_vectors_)
            rules = vectors, self.support_coef_, self.rule_thresholds_
            check_round(voted_rank_sums(features, *rules, votes, sums), features)
            return sums
        for values in self._kernel_blocks(X):
            sums = np.empty(len(values), dtype=np.int64)
            prefix_rank_sums(values, self.support_coef_, self.rule_thresholds_, votes, sums)
            blocks.append(sums)
        return np.concatenate(blocks)


def finite_values(kernel: Kernel, A: FloatArray, B: FloatArray) -> FloatArray:
    """Return the kernel values of the rows of `A` and `B`, or raise `NumericFailureError`."""
    with np.errstate(over="ignore", invalid="ignore"):
        values = kernel(A, B)
    if not np.isfinite(values).all():
        raise NumericFailureError("the kernel overflowed: scale the features down")
    return values


def room_for_rounds(n_rounds: int, n_thresholds: int, *, traced: bool = True) -> Rounds:
    """Return arrays for the results of a pass; with thresholds only if they are `traced`."""
    losses, amounts = np.empty((2, n_rounds), dtype=np.int64)
    return Rounds(losses, amounts, np.empty((n_rounds if traced else 0, n_thresholds)))
