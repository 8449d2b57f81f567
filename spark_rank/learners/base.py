"""The base class of learners: parameters, checks of arrays, and export as plain data."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.blas import ddot

from spark_rank.learners.errors import (
    InvalidDataError,
    InvalidParameterError,
    NoNumbersError,
    not_fitted,
)
from spark_rank.learners.goodness import ordered_share, r_squared
from spark_rank.learners.parameters import Parameter, plain
from spark_rank.learners.rows import ManyFitted, ManyUsers, Row

FloatArray = NDArray[np.float64]


class Learner:
    """Base class: the constructor stores, `fit` learns, learned attributes end in ``_``.

    Subclasses declare `parameters` (every constructor argument) and `state` (every learned
    attribute that scoring needs).
    """

    parameters: ClassVar[dict[str, Parameter]] = {}
    state: ClassVar[tuple[str, ...]] = ()
    # whether differences of scores are differences of ratings; if not, only their order counts
    on_rating_scale: ClassVar[bool] = True
    # whether it learns from ranks 1..n_ranks and predicts ranks; if not, it learns from ratings
    of_ranks: ClassVar[bool] = False
    # whether a score is a weighted sum of the features, unless another kernel is set
    scores_linearly: ClassVar[bool] = False
    # whether it has `path`, with the exact leave-pair-out error of every C of a grid
    exact_leave_pair_out: ClassVar[bool] = False
    # whether the stability bound of Cortes, Mohri and Rastogi holds for it
    has_stability_bound: ClassVar[bool] = False
    # whether `fit` takes `sample_weight`
    takes_weights: ClassVar[bool] = False
    # whether NaN in X is a missing value
    takes_missing: ClassVar[bool] = False
    # whether of the features only their number of rows counts
    ignores_features: ClassVar[bool] = False
    # hyper-parameters that cannot change between two calls of `partial_fit`
    fixed: ClassVar[tuple[str, ...]] = ()

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the hyper-parameters by name; `deep` exists only for scikit-learn."""
        return {name: getattr(self, name) for name in self.parameters}

    def set_params(self, **params: Any) -> Self:
        """Change hyper-parameters by name."""
        for name, value in params.items():
            if name not in self.parameters:
                names = ", ".join(self.parameters) or "none"
                raise InvalidParameterError(
                    f"{type(self).__name__} has no parameter {name!r}; it has: {names}"
                )
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        """Return the tags that scikit-learn's tools ask for; nothing else does."""
        from sklearn.utils import InputTags, RegressorTags, Tags, TargetTags

        predicts = hasattr(self, "predict")
        pairwise = getattr(self, "kernel", None) == "precomputed"
        return Tags(
            estimator_type="regressor" if predicts else None,
            target_tags=TargetTags(required=True),
            # the score of learners of ranks is no R²
            regressor_tags=RegressorTags(poor_score=self.of_ranks or self.ignores_features)
            if predicts
            else None,
            input_tags=InputTags(
                sparse=self._takes_sparse(), pairwise=pairwise, allow_nan=self.takes_missing
            ),
            no_validation=self.ignores_features,
        )

    def _takes_sparse(self) -> bool:
        """Tell whether `fit` takes a sparse X, with the parameters as they are."""
        return False

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> float:
        """Return how well the learner does on these examples; more is better, 1 is perfect.

        This is R² of the predictions, or, for a learner that only orders items, the share of the
        pairs with different `y` that its scores order correctly.
        """
        given = {} if offset is None else {"offset": offset}
        learner: Any = self
        predicts = hasattr(self, "predict")
        found = (learner.predict if predicts else learner.decision_function)(X, **given)
        targets = check_targets(y, len(found))
        weights = None if sample_weight is None else check_weights(sample_weight, len(found))
        return (r_squared if predicts else ordered_share)(found, targets, weights)

    def check_parameters(self) -> None:
        """Raise `InvalidParameterError` unless every hyper-parameter is in its range.

        NumPy scalars become Python numbers: compiled functions and exports expect these.
        """
        values = [getattr(self, name) for name in self.parameters]
        for name, value in _check_parameters(type(self), *values):
            setattr(self, name, value)

    def exported_state(self) -> tuple[str, ...]:
        """Return the attributes that `to_params` exports: `state`, unless a subclass differs."""
        return self.state

    def to_params(self) -> dict[str, Any]:
        """Export as a plain dict of scalars and flat arrays; `from_params` reads it back."""
        exported = self.get_params()
        for name in self.exported_state():
            value = self._learned(name)
            if isinstance(value, np.ndarray):
                exported[name] = value.ravel().copy()
                if value.ndim != 1:
                    exported[name + "shape"] = np.array(value.shape, dtype=np.int64)
            else:
                exported[name] = value
        return exported

    def to_row(self) -> Row:
        """Return what scoring needs, in the columns that `spark_rank.learners.rows` describes.

        A learner with ``coef_`` and ``intercept_``, or with ``coef_`` and ``thresholds_``, need not
        override this.
        """
        row: Row = {"intercept": getattr(self, "intercept_", 0.0)}
        for column, name in (("weights", "coef_"), ("thresholds", "thresholds_")):
            if getattr(self, name, None) is not None:
                row |= {column: getattr(self, name), "kernel": "linear"}
        return row

    @classmethod
    def cost(cls, params: Row, n_train: float, width: int) -> float:
        """Return about how many core seconds it takes to learn one user's model.

        An order of magnitude is enough: it decides which users are learned first, and plans show
        it. `params` are the hyper-parameters that are set, `width` is the number of features.
        """
        if params.get("kernel", "linear") == "linear":
            return 1e-4 + 4e-9 * n_train * width
        return 2e-4 + n_train * n_train * (1e-8 + 8e-11 * width)

    def training_residuals(self) -> FloatArray | None:
        """Return ``h(x) − y`` of the training examples, if `fit` knows them; otherwise None."""
        return None

    def fit_many(self, users: ManyUsers) -> ManyFitted | None:
        """Learn many users in one call; None if the learner can only learn one user at a time."""
        return None

    _begun_with: dict[str, Any]
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]

    @classmethod
    def from_params(cls, params: dict[str, Any]) -> Self:
        """Rebuild a fitted learner from what `to_params` returned; scores are bit-equal.

        Arrays may be lists.
        """
        learner = cls(**{name: _exported(params, name) for name in cls.parameters})
        for name in learner.exported_state():
            value = _exported(params, name)
            if isinstance(value, list):  # from JSON
                value = np.asarray(value)
            if name + "shape" in params:
                value = np.asarray(value).reshape(tuple(params[name + "shape"]))
            setattr(learner, name, value)
        width = learner._width_in()
        if width is not None:
            learner.n_features_in_ = width
        return learner

    def _width_in(self) -> int | None:
        """Return the number of features that a learner from `from_params` learned from."""
        coef = getattr(self, "coef_", None)
        return None if coef is None else int(coef.shape[-1])

    def _note_columns(self, X: Any, n_features: int) -> None:
        """Store how many columns `fit` got, and their names if it got a DataFrame."""
        self.n_features_in_ = n_features
        names = column_names(X)
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _check_columns(self, X: Any) -> None:
        """Raise `InvalidDataError` if the columns of a DataFrame are not those of `fit`."""
        known = getattr(self, "feature_names_in_", None)
        names = None if known is None else column_names(X)
        if names is None or known is None or np.array_equal(names, known):
            return
        if sorted(names) == sorted(known):
            raise InvalidDataError(
                "the columns of X are in another order than in fit: give X[feature_names_in_]"
            )
        missing, unknown = (
            ", ".join(sorted(set(left) - set(right))) or "none"
            for left, right in ((known, names), (names, known))
        )
        raise InvalidDataError(
            f"the columns of X are not those of fit (missing: {missing}; unknown: {unknown}): give "
            "the columns of feature_names_in_"
        )

    def _fixed_values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.fixed}

    def _check_unchanged(self) -> None:
        """Raise `InvalidParameterError` if a fixed parameter changed since learning began."""
        for name, first_value in self._begun_with.items():
            if getattr(self, name) != first_value:
                raise InvalidParameterError(
                    f"{name} was {first_value!r} when learning began: call fit to start again"
                )

    def _unchanged_by_failure(self) -> _UnchangedByFailure:
        """Restore the learner's attributes if the block of code raises an error."""
        return _UnchangedByFailure(vars(self))

    def _learned(self, name: str) -> Any:
        if not hasattr(self, name):
            raise not_fitted(f"{type(self).__name__} has not learned yet: call fit first")
        return getattr(self, name)

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({inside})"


class _UnchangedByFailure:
    """Restores attributes after an error; a generator would take four times as long per user."""

    __slots__ = ("attributes", "before")

    def __init__(self, attributes: dict[str, Any]) -> None:
        self.attributes = attributes

    def __enter__(self) -> None:
        self.before = self.attributes.copy()

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self.attributes.clear()
            self.attributes.update(self.before)


def _exported(params: dict[str, Any], name: str) -> Any:
    if name not in params:
        raise InvalidParameterError(f"{name} is missing: give all entries that to_params returned")
    return params[name]


_Plain = tuple[tuple[str, Any], ...]


@lru_cache(maxsize=1024, typed=True)
def _valid_values(learner: Any, *values: Any) -> _Plain:
    for (name, parameter), value in zip(learner.parameters.items(), values, strict=True):
        parameter.check(name, value)
    named = zip(learner.parameters, values, strict=True)
    return tuple((name, plain(value)) for name, value in named if isinstance(value, np.generic))


def _check_parameters(learner: Any, *values: Any) -> _Plain:
    """Check each parameter; return those that are NumPy scalars as Python numbers.

    Valid values are cached, because the same ones come again for every user.
    """
    try:
        return _valid_values(learner, *values)
    except TypeError:  # a value that cannot be hashed is checked without the cache
        return _valid_values.__wrapped__(learner, *values)


def column_names(X: Any) -> NDArray[np.object_] | None:
    """Return the names of a DataFrame's columns; None without names, or if some are no text."""
    columns = getattr(X, "columns", None)
    if columns is None:
        return None
    names = list(columns)
    return np.array(names, dtype=object) if all(isinstance(n, str) for n in names) else None


def _real_numbers(values: ArrayLike, name: str) -> FloatArray:
    """Return `values` as a float64 array or raise `InvalidDataError`."""
    if hasattr(values, "toarray"):
        raise InvalidDataError(f"{name} is sparse: give {name}.toarray()")
    problem: Exception | str = ""
    try:
        array = np.asarray(values)
        if array.dtype.kind in "biufO":
            return array.astype(np.float64, copy=False)
        if array.dtype.kind == "c":
            problem = ". Complex data not supported"
    except (TypeError, ValueError) as error:  # rows of different lengths, or no numbers
        problem = error
    message = f"{name} must be an array of real numbers, with rows of one length"
    if isinstance(problem, TypeError):
        raise NoNumbersError(f"{message}: {problem}")
    raise InvalidDataError(f"{message}{problem}" if isinstance(problem, str) else message)


def _all_finite(values: FloatArray) -> bool:
    """Return whether all values are finite; a finite sum of squares proves it quickly.

    Unlike NumPy, BLAS gives no warning when the sum overflows.
    """
    flat = values.reshape(-1)
    return flat.size == 0 or math.isfinite(ddot(flat, flat)) or bool(np.isfinite(values).all())


def check_features(
    X: ArrayLike, n_features: int | None = None, *, finite: bool = True
) -> FloatArray:
    """Return `X` as a finite m×d float64 array or raise `InvalidDataError`.

    ``finite=False`` skips the check for NaN and infinity, for learners that notice these while
    they learn.
    """
    features = _real_numbers(X, "X")
    if features.ndim != 2:
        raise InvalidDataError(
            f"X must have two dimensions (examples × features), not {features.ndim}. Reshape your "
            "data: X.reshape(1, -1) is one example, X.reshape(-1, 1) one feature"
        )
    check_width(features.shape[1], n_features)
    if finite and not _all_finite(features):
        raise InvalidDataError("X holds NaN or infinity: fill or drop those entries first")
    return features


def check_width(width: int, n_features: int | None) -> None:
    """Raise `InvalidDataError` unless X has as many columns as in `fit`; None: any number."""
    if n_features is not None and width != n_features:
        raise InvalidDataError(
            f"X has {width} features, but it is expecting {n_features} features as input: the "
            f"learner was fitted on {n_features}"
        )


def check_targets(y: ArrayLike, n_examples: int, name: str = "y") -> FloatArray:
    """Return `y` as a finite vector of length `n_examples` or raise `InvalidDataError`."""
    if y is None:
        raise InvalidDataError(f"{name} should be a 1d array, one number per row of X, not None")
    targets = _real_numbers(y, name)
    if targets.shape != (n_examples,):
        raise InvalidDataError(
            f"{name} must be a vector of {n_examples} numbers, one per row of X, "
            f"but has shape {targets.shape}"
        )
    if n_examples == 0:
        raise InvalidDataError("no examples: at least one is needed to learn")
    if not _all_finite(targets):
        raise InvalidDataError(f"{name} holds NaN or infinity: drop those examples first")
    return targets


def check_weights(sample_weight: ArrayLike, n_examples: int) -> FloatArray:
    """Return the weights as a vector, or raise `InvalidDataError`: 0 or more, not all of them 0."""
    weights = check_targets(sample_weight, n_examples, "sample_weight")
    if weights.min() < 0.0:
        raise InvalidDataError("sample_weight must not be negative: 0 leaves an example out")
    if not weights.any():
        raise InvalidDataError("sample_weight is 0 everywhere, all zero: let one example count")
    return weights


def check_ranks(y: ArrayLike, n_examples: int, n_ranks: int) -> NDArray[np.int64]:
    """Return `y` as whole ranks in 1..n_ranks or raise `InvalidDataError`."""
    values = check_targets(y, n_examples)
    ranks = values.astype(np.int64)
    if (ranks != values).any() or ranks.min() < 1 or ranks.max() > n_ranks:
        raise InvalidDataError(
            f"ranks must be whole numbers from 1 to {n_ranks}: map the rating levels first"
        )
    return ranks
