"""The baselines that every learner should beat: a constant, and the item offset alone."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from spark_rank.learners.base import FloatArray, Learner, check_targets, check_weights
from spark_rank.learners.errors import InvalidDataError
from spark_rank.learners.parameters import Parameter
from spark_rank.learners.ridge.many_users import shift_users
from spark_rank.learners.rows import ManyFitted, ManyUsers


class ConstantScorer(Learner):
    """Scores every item with the user's mean training rating; features and offset are ignored."""

    parameters: ClassVar[dict[str, Parameter]] = {}
    state: ClassVar[tuple[str, ...]] = ("intercept_",)
    takes_weights = True

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        offset: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> ConstantScorer:
        """Remember the mean of `y`."""
        self.intercept_ = _mean(check_targets(y, len(np.asarray(X))), sample_weight)
        return self

    def fit_many(self, users: ManyUsers) -> ManyFitted:
        """Learn all users with a training rating."""
        return _shifted(users)

    def decision_function(self, X: ArrayLike, offset: ArrayLike | None = None) -> FloatArray:
        """Return the constant, once per row of `X`."""
        return np.full(len(np.asarray(X)), self._learned("intercept_"))


class ItemOffsetScorer(Learner):
    """Scores an item with its offset, shifted to the user's mean training rating."""

    parameters: ClassVar[dict[str, Parameter]] = {}
    state: ClassVar[tuple[str, ...]] = ("intercept_",)
    takes_weights = True

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        offset: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> ItemOffsetScorer:
        """Remember the mean of ``y − offset``."""
        size = len(np.asarray(X))
        self.intercept_ = _mean(check_targets(y, size) - _required(offset, size), sample_weight)
        return self

    def fit_many(self, users: ManyUsers) -> ManyFitted:
        """Learn all users with a training rating."""
        return _shifted(users)

    def decision_function(self, X: ArrayLike, offset: ArrayLike | None = None) -> FloatArray:
        """Return the shifted offsets."""
        return _required(offset, len(np.asarray(X))) + self._learned("intercept_")


def _shifted(users: ManyUsers) -> ManyFitted:
    learned = users.n_train > 0
    fitted = ManyFitted(learned, np.zeros(len(learned)), np.zeros(len(users.offset)))
    shift_users(
        users.ratings, users.offset, users.ends, users.n_train, learned, fitted.intercepts,
        fitted.scores,
    )  # fmt: skip
    return fitted


def _mean(targets: FloatArray, sample_weight: ArrayLike | None) -> float:
    if sample_weight is None:
        return float(targets.mean())
    return float(np.average(targets, weights=check_weights(sample_weight, len(targets))))


def _required(offset: ArrayLike | None, size: int) -> FloatArray:
    if offset is None:
        raise InvalidDataError("the item-offset baseline needs an offset per row of X")
    return check_targets(offset, size, "offset")
