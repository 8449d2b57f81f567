"""The base class of online ordinal learners: rounds, the running loss, and checked examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spark_rank.learners.base import (
    FloatArray,
    Learner,
    check_features,
    check_ranks,
    check_weights,
)
from spark_rank.learners.errors import (
    InvalidDataError,
    InvalidParameterError,
    NumericFailureError,
)
from spark_rank.learners.perceptrons.levels import check_levels, ordered_levels
from spark_rank.learners.perceptrons.rounds import OK, IntArray, row_scores
from spark_rank.learners.sparse import check_sparse, dense_parts, is_sparse

Array = TypeVar("Array", bound=NDArray[Any])


class OnlineLearner(Learner):
    """A learner that predicts an example's rank, then sees the true rank and learns from it.

    Subclasses define the start (`_start`), one pass over a sequence (`_learn`, which changes
    nothing if it fails), scores (`_scores`) and ranks (`_ranks`). The example of round t is ranked
    before it is learned.

    With ``n_ranks=None`` the ranks are those of the levels of `y`: any values with an order. These
    are the `levels` that `fit` is given, else the categories of an ordered categorical `y`, else
    the different values of `y`. `predict` returns levels then.
    """

    on_rating_scale: ClassVar[bool] = False
    of_ranks: ClassVar[bool] = True

    fixed: ClassVar[tuple[str, ...]] = ("n_ranks",)
    # learned attributes whose names do not end in _
    learned_privately: ClassVar[tuple[str, ...]] = ()
    n_ranks: int | None
    epochs: int
    levels_: NDArray[Any]
    n_rounds_: int
    total_loss_: int

    def fit(self, X: ArrayLike, y: ArrayLike, levels: ArrayLike | None = None) -> Self:
        """Start again, and pass `epochs` times over the rows of `X` in their order.

        `y` are ranks 1..n_ranks, or levels, see above. Sparse rows are filled in some at a time. A
        call that fails leaves the learner unchanged, also for `partial_fit`.
        """
        self.check_parameters()
        features = _checked(X)
        scale = self._levels_of(y, levels)
        ranks = self._ranks_of(y, features.shape[0], scale)
        with self._unchanged_by_failure():
            self._reset()
            self._begin(X, features, scale)
            for _ in range(self.epochs):
                self._one_pass(features, ranks)
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike, levels: ArrayLike | None = None) -> Self:
        """Pass once over the rows of `X`, continuing from earlier calls, if any.

        However a sequence is cut into parts, the learned rule has the same bits. With
        ``n_ranks=None`` the first call needs all levels: its `y` has them, or `levels` says them.
        """
        self.check_parameters()
        has_started = hasattr(self, "n_rounds_")
        if has_started:
            self._check_unchanged()
            self._check_columns(X)
        features = _checked(X, self._n_features() if has_started else None)
        scale = getattr(self, "levels_", None) if has_started else self._levels_of(y, levels)
        ranks = self._ranks_of(y, features.shape[0], scale)
        with self._unchanged_by_failure():
            if not has_started:
                self._reset()
                self._begin(X, features, scale)
            self._one_pass(features, ranks)
        return self

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Return a score for every row."""
        return np.asarray(self._of_rows(self._scores, X))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the rank of every row, or its level with ``n_ranks=None``."""
        ranks = np.asarray(self._of_rows(self._ranks, X))
        return ranks if self.n_ranks is not None else self.levels_[ranks - 1]

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> float:
        """Return minus the rank loss: 0 is perfect, −1 is one rank beside it on average."""
        if offset is not None:
            raise InvalidDataError("a learner of ranks takes no offset: give it as a feature")
        predicted = np.asarray(self._of_rows(self._ranks, X))
        truth = self._ranks_of(y, len(predicted), getattr(self, "levels_", None))
        weights = None if sample_weight is None else check_weights(sample_weight, len(truth))
        return -float(np.average(np.abs(predicted - truth), weights=weights))

    def exported_state(self) -> tuple[str, ...]:
        """Return the attributes that scoring and further learning need."""
        return self.state + self._levels_state()

    @classmethod
    def from_params(cls, params: dict[str, Any]) -> Self:
        """Rebuild a learner from `to_params`; it scores and learns further with the same bits."""
        learner = super().from_params(params)
        learner._begun_with = learner._fixed_values()
        return learner

    def _scores(self, X: ArrayLike) -> FloatArray:
        """Return the scores of dense rows."""
        raise NotImplementedError

    def _ranks(self, X: ArrayLike) -> IntArray:
        """Return the ranks of dense rows."""
        raise NotImplementedError

    def _start(self, n_features: int) -> None:
        raise NotImplementedError

    def _learn(self, X: FloatArray, ranks: IntArray) -> IntArray:
        """Learn from every row and return the rank loss of every round."""
        raise NotImplementedError

    def _takes_sparse(self) -> bool:
        return True

    def _width_in(self) -> int:
        return self._n_features()

    def _levels_state(self) -> tuple[str, ...]:
        return ("levels_",) if self.n_ranks is None else ()

    def _rank_count(self) -> int:
        """Return the number of ranks, which with ``n_ranks=None`` is known once learning began."""
        return self.n_ranks if self.n_ranks is not None else len(self._learned("levels_"))

    def _levels_of(self, y: Any, levels: ArrayLike | None) -> NDArray[Any] | None:
        """Return the levels in their order; None if the ranks are given by `n_ranks`."""
        if self.n_ranks is not None:
            if levels is not None:
                raise InvalidParameterError("levels are for n_ranks=None: leave one of them out")
            return None
        return ordered_levels(y, levels)

    def _ranks_of(self, y: Any, n_examples: int, scale: NDArray[Any] | None) -> IntArray:
        if scale is None:
            return read_only(check_ranks(y, n_examples, self._rank_count()))
        return read_only(check_levels(y, n_examples, scale))

    def _n_features(self) -> int:
        """Return the number of features learned from, or raise `NotFittedError`."""
        return int(self._learned("coef_").shape[-1])

    def _begin(self, X: Any, features: Any, scale: NDArray[Any] | None) -> None:
        if scale is not None:
            self.levels_ = scale
        self._note_columns(X, int(features.shape[1]))
        self._start(int(features.shape[1]))

    def _reset(self) -> None:
        """Remove everything that was learned, but no attributes that other tools have set."""
        for name in [*vars(self)]:
            if name.endswith("_") or name in self.learned_privately:
                delattr(self, name)
        self.n_rounds_, self.total_loss_ = 0, 0
        self._begun_with = self._fixed_values()

    def _one_pass(self, X: Any, ranks: IntArray) -> None:
        if not is_sparse(X):
            self._count(self._learn(X, ranks))
            return
        for rows, part in dense_parts(X):
            self._count(self._learn(check_examples(part), ranks[rows]))

    def _of_rows(self, function: Callable[[ArrayLike], NDArray[Any]], X: Any) -> NDArray[Any]:
        """Return a function of every row, for sparse rows some at a time."""
        self._check_columns(X)
        if not is_sparse(X):
            return function(X)
        parts = dense_parts(check_sparse(X, self._n_features()))
        values = [function(part) for _, part in parts]
        return np.concatenate(values) if values else function(np.empty((0, X.shape[1])))

    def _count(self, losses: IntArray) -> None:
        """Append the running average (1/T) Σ |ŷ − y| after each new round to the curve.

        A learner from `from_params` has its totals but not its curve: the curve then starts with
        the next round.
        """
        totals = self.total_loss_ + np.cumsum(losses)
        averages = totals / (self.n_rounds_ + np.arange(1, len(losses) + 1))
        self.online_loss_ = np.append(getattr(self, "online_loss_", np.empty(0)), averages)
        self.total_loss_, self.n_rounds_ = int(totals[-1]), self.n_rounds_ + len(losses)


def _checked(X: Any, n_features: int | None = None) -> Any:
    return (check_sparse if is_sparse(X) else check_examples)(X, n_features)


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
