"""Preferences from the results of learners. Their items are the row numbers 0 … n−1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from spark_rank.preference.errors import InvalidPreferenceError, InvalidSettingError
from spark_rank.preference.majorities import checked_majorities
from spark_rank.preference.preferences import FloatArray, ItemArray, Preference

# greatest difference of h(u, v) + h(v, u) from 1 in a matrix
_CONSISTENCY = 1e-9


Merge = Callable[[FloatArray, FloatArray], FloatArray]


class _RowPreference(Preference):
    """Answers one pair through `against`."""

    def __call__(self, u: Any, v: Any) -> float:
        return float(self.against(u, np.array([v]))[0])


class _ScorePreference(_RowPreference):
    def __init__(self, scores: FloatArray, temperature: float | None) -> None:
        self.scores = scores
        self.temperature = temperature

    def against(self, u: Any, others: ItemArray) -> FloatArray:
        if self.temperature is None:
            return _wins(self.scores[u], self.scores[others])
        gaps = (self.scores[u] - self.scores[others]) / self.temperature
        return np.asarray(expit(gaps), dtype=np.float64)


class _VotePreference(_RowPreference):
    def __init__(self, member_scores: FloatArray) -> None:
        # one row per item, because comparisons take whole rows
        self.scores = np.ascontiguousarray(member_scores.T)

    def against(self, u: Any, others: ItemArray) -> FloatArray:
        return np.asarray(_wins(self.scores[u], self.scores[others]).mean(axis=1))


class _MatrixPreference(_RowPreference):
    def __init__(self, matrix: FloatArray) -> None:
        self.matrix = matrix

    def against(self, u: Any, others: ItemArray) -> FloatArray:
        return np.asarray(self.matrix[u, others])


class _DifferencePreference(_RowPreference):
    """Merges a model's predictions for x_u − x_v and x_v − x_u."""

    def __init__(self, ask: Callable[[FloatArray], FloatArray], merge: Merge, X: FloatArray):
        self.ask = ask
        self.merge = merge
        self.features = X

    def against(self, u: Any, others: ItemArray) -> FloatArray:
        if not len(others):
            return np.empty(0)  # classifiers raise an error on empty input
        gaps = self.features[u] - self.features[others]
        both = np.asarray(self.ask(np.concatenate([gaps, -gaps])), dtype=np.float64)
        return self.merge(both[: len(gaps)], both[len(gaps) :])


def from_scores(scores: ArrayLike, temperature: float | None = None) -> Preference:
    """Return the preference for the higher score: O(1) per pair.

    Without `temperature`, h(u, v) is 1, 0, or ½ for a tie; with it, the logistic function of
    ``(s_u − s_v) / temperature``, in the unit of the scores.
    """
    if temperature is not None and not 0.0 < temperature < np.inf:
        raise InvalidSettingError(f"temperature={temperature!r} is not allowed: give a number > 0")
    return _ScorePreference(_finite(scores, "scores", 1), temperature)


def from_votes(member_scores: ArrayLike) -> Preference:
    """Return the share of members that score u above v, a tie counting ½: O(N) per pair.

    `member_scores` has a row per member and a column per item, N × n; for an `OAP` ensemble it is
    ``ensemble.member_coef_ @ X.T``.
    """
    votes = _finite(member_scores, "member_scores", 2)
    if not len(votes):
        raise InvalidPreferenceError("there are no members: give a row of scores per member")
    return _VotePreference(votes)


def from_classifier(model: Any, features: ArrayLike) -> Preference:
    """Return the preference of a classifier of feature differences x_u − x_v, made antisymmetric.

    With `predict_proba` (whose last column is the probability that u wins) h is the mean of the
    probability for ``x_u − x_v`` and the complement of that for ``x_v − x_u``. With only
    `decision_function`, the larger of the two scores wins and a tie is ½. Both predict two rows per
    pair.
    """
    rows = _finite(features, "features", 2)
    if hasattr(model, "predict_proba"):
        return _DifferencePreference(lambda X: model.predict_proba(X)[:, -1], _mean_chance, rows)
    if hasattr(model, "decision_function"):
        return _DifferencePreference(model.decision_function, _wins, rows)
    raise InvalidPreferenceError(
        f"{type(model).__name__} has neither predict_proba nor decision_function: give a fitted "
        "classifier of differences of features"
    )


def from_matrix(matrix: ArrayLike) -> Preference:
    """Return the preference h(u, v) = matrix[u, v]; the diagonal is not read."""
    values = _finite(matrix, "matrix", 2)
    if values.shape[0] != values.shape[1]:
        raise InvalidPreferenceError(f"the matrix is {values.shape}: give a square one")
    off_diagonal = np.eye(len(values)) == 0.0
    if (np.abs(values + values.T - 1.0) > _CONSISTENCY)[off_diagonal].any():
        raise InvalidPreferenceError("h(u, v) + h(v, u) must be 1: complete the matrix by 1 − hᵀ")
    if ((values < 0.0) | (values > 1.0))[off_diagonal].any():
        raise InvalidPreferenceError("preferences must lie in [0, 1]: rescale the matrix")
    return _MatrixPreference(values)


def from_majorities(majorities: ArrayLike) -> Preference:
    """Return the majority tournament: h(u, v) = 1 if more voters put u above v, ½ if equal."""
    counts = checked_majorities(majorities)
    return _MatrixPreference(_wins(counts, counts.T))


def _wins(left: Any, right: Any) -> FloatArray:
    """Return 1 where left > right, ½ where equal, else 0."""
    return np.asarray(np.greater(left, right) + 0.5 * np.equal(left, right), dtype=np.float64)


def _mean_chance(ahead: FloatArray, behind: FloatArray) -> FloatArray:
    """Return ½ (p(x_u − x_v) + 1 − p(x_v − x_u))."""
    return np.asarray(0.5 * (ahead + (1.0 - behind)))


def _finite(values: ArrayLike, name: str, n_axes: int) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != n_axes:
        raise InvalidPreferenceError(f"{name} has {array.ndim} axes: give {n_axes}")
    if not np.isfinite(array).all():
        raise InvalidPreferenceError(f"{name} holds NaN or infinity: give finite numbers")
    return array
