"""The baselines that every learner should beat: a constant, and the item offset alone."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from spark_rank.learners.base import (
    FloatArray,
    Learner,
    check_features,
    check_targets,
    check_weights,
)
from spark_rank.learners.errors import InvalidDataError
from spark_rank.learners.parameters import Parameter
from spark_rank.learners.ridge.many_users import shift_users
from spark_rank.learners.rows import ManyFitted, ManyUsers
from spark_rank.learners.sparse import is_sparse


class Baseline(Learner):
    """Base of the baselines: of the features only the shape counts."""

    parameters: ClassVar[dict[str, Parameter]] = {}
    state: ClassVar[tuple[str, ...]] = ("intercept_",)
    takes_weights = True
    ignores_features = True

    intercept_: float

    def predict(self, X: ArrayLike, offset: ArrayLike | None = None) -> FloatArray:
        """Return the scores, which are on the rating scale."""
        return self.decision_function(X, offset)

    def decision_function(self, X: ArrayLike, offset: ArrayLike | None = None) -> FloatArray:
        """Return the scores."""
        raise NotImplementedError

    def _takes_sparse(self) -> bool:
        return True

    def _learn(
        self,
        X: ArrayLike,
        shape: tuple[int, int],
        targets: FloatArray,
        sample_weight: ArrayLike | None,
    ) -> None:
        if sample_weight is None:
            mean = float(targets.mean())
        else:
            weights = check_weights(sample_weight, len(targets))
            mean = float(np.average(targets, weights=weights))
        self.intercept_ = mean
        self._note_columns(X, shape[1])


class ConstantScorer(Baseline):
    """Scores every item with the user's mean training rating; features and offset are ignored."""

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        offset: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> ConstantScorer:
        """Remember the mean of `y`."""
        shape = _shape(X)
        self._learn(X, shape, check_targets(y, shape[0]), sample_weight)
        return self

    def fit_many(self, users: ManyUsers) -> ManyFitted:
        """Learn all users with a training rating."""
        return _shifted(users)

    def decision_function(self, X: ArrayLike, offset: ArrayLike | None = None) -> FloatArray:
        """Return the constant, once per row of `X`."""
        return np.full(_shape(X)[0], self._learned("intercept_"))


class ItemOffsetScorer(Baseline):
    """Scores an item with its offset, shifted to the user's mean training rating."""

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        offset: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> ItemOffsetScorer:
        """Remember the mean of ``y − offset``."""
        shape = _shape(X)
        targets = check_targets(y, shape[0]) - _required(offset, shape[0])
        self._learn(X, shape, targets, sample_weight)
        return self

    def fit_many(self, users: ManyUsers) -> ManyFitted:
        """Learn all users with a training rating."""
        return _shifted(users)

    def decision_function(self, X: ArrayLike, offset: ArrayLike | None = None) -> FloatArray:
        """Return the shifted offsets."""
        return _required(offset, _shape(X)[0]) + self._learned("intercept_")


def _shifted(users: ManyUsers) -> ManyFitted:
    learned = users.n_train > 0
    fitted = ManyFitted(learned, np.zeros(len(learned)), np.zeros(len(users.offset)))
    shift_users(
        users.ratings, users.offset, users.ends, users.n_train, learned, fitted.intercepts,
        fitted.scores,
    )  # fmt: skip
    return fitted


def _shape(X: Any) -> tuple[int, int]:
    """Return the shape of X; its values do not count, so they are not looked at."""
    rows, columns = X.shape if is_sparse(X) else check_features(X, finite=False).shape
    return int(rows), int(columns)


def _required(offset: ArrayLike | None, size: int) -> FloatArray:
    if offset is None:
        raise InvalidDataError("the item-offset baseline needs an offset per row of X")
    return check_targets(offset, size, "offset")
