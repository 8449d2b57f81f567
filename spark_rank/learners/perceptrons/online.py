"""The base class of online ordinal learners: rounds, the running loss, and checked examples."""

from __future__ import annotations

from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spark_rank.learners.base import FloatArray, Learner, check_features, check_ranks
from spark_rank.learners.errors import InvalidDataError, NumericFailureError
from spark_rank.learners.perceptrons.rounds import OK, IntArray, row_scores

Array = TypeVar("Array", bound=NDArray[Any])


class OnlineLearner(Learner):
    """A learner that predicts an example's rank, then sees the true rank and learns from it.

    Subclasses define the start (`_start`) and one pass over a sequence (`_learn`, which changes
    nothing if it fails). The example of round t is ranked before it is learned.
    """

    on_rating_scale: ClassVar[bool] = False
    of_ranks: ClassVar[bool] = True

    fixed: ClassVar[tuple[str, ...]] = ("n_ranks",)
    # learned attributes whose names do not end in _
    learned_privately: ClassVar[tuple[str, ...]] = ()
    n_ranks: int
    epochs: int
    n_rounds_: int
    total_loss_: int

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Start again, and pass `epochs` times over the rows of `X` in their order.

        `y` are ranks 1..n_ranks. A call that fails leaves the learner unchanged, also for
        `partial_fit`.
        """
        self.check_parameters()
        features = check_examples(X)
        ranks = read_only(check_ranks(y, len(features), self.n_ranks))
        with self._unchanged_by_failure():
            self._reset()
            self._start(features.shape[1])
            for _ in range(self.epochs):
                self._one_pass(features, ranks)
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Pass once over the rows of `X`, continuing from earlier calls, if any.

        However a sequence is cut into parts, the learned rule has the same bits.
        """
        self.check_parameters()
        has_started = hasattr(self, "n_rounds_")
        if has_started:
            self._check_unchanged()
        features = check_examples(X, self._n_features() if has_started else None)
        ranks = read_only(check_ranks(y, len(features), self.n_ranks))
        with self._unchanged_by_failure():
            if not has_started:
                self._reset()
                self._start(features.shape[1])
            self._one_pass(features, ranks)
        return self

    @classmethod
    def from_params(cls, params: dict[str, Any]) -> Self:
        """Rebuild a learner from `to_params`; it scores and learns further with the same bits."""
        learner = super().from_params(params)
        learner._begun_with = learner._fixed_values()
        return learner

    def _start(self, n_features: int) -> None:
        raise NotImplementedError

    def _learn(self, X: FloatArray, ranks: IntArray) -> IntArray:
        """Learn from every row and return the rank loss of every round."""
        raise NotImplementedError

    def _n_features(self) -> int:
        """Return the number of features learned from, or raise `NotFittedError`."""
        return int(self._learned("coef_").shape[-1])

    def _reset(self) -> None:
        """Remove everything that was learned, but no attributes that other tools have set."""
        for name in [*vars(self)]:
            if name.endswith("_") or name in self.learned_privately:
                delattr(self, name)
        self.n_rounds_, self.total_loss_ = 0, 0
        self._begun_with = self._fixed_values()

    def _one_pass(self, X: FloatArray, ranks: IntArray) -> None:
        self._count(self._learn(X, ranks))

    def _count(self, losses: IntArray) -> None:
        """Append the running average (1/T) Σ |ŷ − y| after each new round to the curve.

        A learner from `from_params` has its totals but not its curve: the curve then starts with
        the next round.
        """
        totals = self.total_loss_ + np.cumsum(losses)
        averages = totals / (self.n_rounds_ + np.arange(1, len(losses) + 1))
        self.online_loss_ = np.append(getattr(self, "online_loss_", np.empty(0)), averages)
        self.total_loss_, self.n_rounds_ = int(totals[-1]), self.n_rounds_ + len(losses)


def check_examples(X: ArrayLike, n_features: int | None = None) -> FloatArray:
    """Return `X` as the compiled kernels need it: float64, row by row, read-only.

    NaN and infinity are not checked here: the kernels notice them while they learn (`check_round`).
    """
    features = check_features(X, n_features, finite=False)
    return read_only(np.require(features, np.float64, ["C_CONTIGUOUS", "ALIGNED"]))


def read_only(values: Array) -> Array:
    """Return a read-only view; if all inputs are read-only, a kernel is compiled only once."""
    view = values.view()
    view.flags.writeable = False
    return view


def check_round(failed: int, X: FloatArray, remedy: str = "scale the features down") -> None:
    """Raise the error of the round at which a kernel stopped; do nothing if it did not stop."""
    if failed == OK:
        return
    if not np.isfinite(X[failed]).all():
        raise InvalidDataError(
            f"row {failed} of X holds NaN or infinity: fill or drop those entries first"
        )
    raise NumericFailureError(f"the scores overflowed at row {failed} of X: {remedy}")


def check_rule(coef: FloatArray, remedy: str = "scale the features down") -> None:
    """Raise `NumericFailureError` if the last update overflowed."""
    if not np.isfinite(coef).all():
        raise NumericFailureError(f"the coefficients overflowed: {remedy}")


def linear_scores(X: FloatArray, coef: FloatArray) -> FloatArray:
    """Return coef·x for every row of `X`, with the same bits as in the online rounds."""
    scores = np.empty(len(X))
    check_round(row_scores(X, read_only(coef), scores), X)
    return scores
