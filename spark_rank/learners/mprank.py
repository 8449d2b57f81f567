"""MPRank: magnitude-preserving ranking with the squared pair cost (n = 2)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from spark_rank.learners.base import FloatArray, check_targets, check_weights
from spark_rank.learners.errors import (
    InvalidDataError,
    InvalidParameterError,
    NumericFailureError,
    not_fitted,
)
from spark_rank.learners.kernel_machine import (
    KERNEL_PARAMETERS,
    KernelMachine,
    check_digits,
    check_gram,
    check_items,
    check_training,
)
from spark_rank.learners.kernels import scale_gamma
from spark_rank.learners.parameters import Choice, Integer, Parameter, Real
from spark_rank.learners.ridge import online
from spark_rank.learners.ridge.grouped import Centring, check_groups
from spark_rank.learners.ridge.many_users import can_learn, fit_users
from spark_rank.learners.ridge.pairs import PairRidge
from spark_rank.learners.ridge.path import MPRankPath, trace_path
from spark_rank.learners.ridge.systems import ridge_of
from spark_rank.learners.rows import ManyFitted, ManyUsers, Row
from spark_rank.learners.sparse import is_sparse

_NO_COSTS: FloatArray = np.empty(0)
_BEGUN = (
    "gamma_",
    "n_rounds_",
    "cost_path_",
    "y_min_",
    "y_max_",
    "n_features_in_",
    "_stream",
    "_weighted",
)


class MPRank(PairRidge):
    """Scores items so that differences of scores match differences of ratings.

    Minimises ``‖w‖² + (C/m²) Σ_ij ((h_j − h_i) − (y_j − y_i))²`` with ``h = w·Φ(x)``
    (Cortes, Mohri, Rastogi, eq. 8, n = 2). The double sum is ``2m Σ (r_i − r̄)²`` with residuals
    ``r = h − y``: kernel ridge regression with an unpenalised intercept and ridge ``m/(2C)``.
    Scores sit on the rating scale: their mean over the training items is the mean rating.

    Parameters
    ----------
    C : trade-off between fit and norm.
    kernel, gamma, degree, coef0, rbf_weight : see `Kernel`; ``gamma=None`` is `scale_gamma`.
        With ``precomputed``, `fit` takes the m×m matrix of kernel values, `decision_function`
        the n×m matrix between new and training items.
    solver : ``primal`` costs O(m d² + d³) and is for the linear kernel only, ``dual``
        O(m² d + m³), ``online`` O(m²) a round (§2.5); ``auto`` takes the cheaper exact solver.
    ridge : ``per-example`` is the paper's m/(2C); ``fixed`` is 1/C, a noise variance that does
        not grow with m.
    growth : added to the ridge for every example, by default 0. It is for features that were
        learned from the same ratings: the more ratings there are, the more of them such features
        already explain.
    tol, max_rounds, eta : for the on-line solver: stop when a round changes the cost by less than
        the share `tol`, or after `max_rounds`; ``eta=None`` takes the exact step
        1/(2K̃_ii + m/C), which always converges.

    Attributes
    ----------
    coef_ : w for the linear kernel, else None.
    dual_coef_ : α with ``h(x) = Σ α_j K(x_j, x) + intercept_``, Σ α = 0; None after ``primal``.
    support_ : the training rows that kernels other than the linear one need, else None.
    intercept_, gamma_, objective_ : the constant, the width used, the value of the minimum.
    n_rounds_, cost_path_ : rounds of the on-line solver and the cost after each; else 0, empty.
    converged_ : False if the on-line solver ended by `max_rounds`, or after `partial_fit`, which
        goes through the examples once.

    A user whose ratings are all equal, or with one rating, gets the constant model ``w = 0``.
    """

    parameters: ClassVar[dict[str, Parameter]] = {
        **KERNEL_PARAMETERS,
        "solver": Choice("how to solve", options=("auto", "primal", "dual", "online")),
        "ridge": Choice("how the ridge follows from C", options=("per-example", "fixed")),
        "growth": Real("added to the ridge for every example", at_least=0.0),
        "tol": Real("online: stop below this relative change of the cost", above=0.0),
        "max_rounds": Integer("online: most rounds over the examples", at_least=1),
        "eta": Real("online: fixed step", above=0.0, optional=True),
    }
    state: ClassVar[tuple[str, ...]] = (
        *KernelMachine.state,
        "y_min_",
        "y_max_",
        "n_rounds_",
        "cost_path_",
    )
    fixed = ("kernel", "gamma", "degree", "coef0", "rbf_weight")
    exact_leave_pair_out = True
    takes_weights = True
    has_stability_bound = True

    _stream: online.Stream | None
    _fitted_params: dict[str, Any]
    _fitted_ridge: float
    _fitted_size: int
    _weighted: bool

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: str = "linear",
        gamma: float | None = None,
        degree: int = 2,
        coef0: float = 1.0,
        rbf_weight: float = 1.0,
        solver: str = "auto",
        ridge: str = "per-example",
        growth: float = 0.0,
        tol: float = 1e-4,
        max_rounds: int = 1000,
        eta: float | None = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.rbf_weight = rbf_weight
        self.solver = solver
        self.ridge = ridge
        self.growth = growth
        self.tol = tol
        self.max_rounds = max_rounds
        self.eta = eta

    def check_parameters(self) -> None:
        """Raise `InvalidParameterError` unless every parameter is in its range and they agree."""
        super().check_parameters()
        if self.solver == "primal" and self.kernel != "linear":
            raise InvalidParameterError("solver='primal' is for kernel='linear': use 'dual'")

    @classmethod
    def cost(cls, params: Row, n_train: float, width: int) -> float:
        """Return about how many core seconds a user takes; linear models are learned together."""
        if params.get("kernel", "linear") == "linear":
            return 7e-6 + n_train * width * (4e-9 + 2e-11 * min(n_train, width))
        return super().cost(params, n_train, width) / 2.0

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        offset: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        qid: ArrayLike | None = None,
    ) -> MPRank:
        """Learn from the m×d matrix `X` and ratings `y`; with an `offset`, from ``y − offset``.

        An example with weight 2 counts as two examples, one with weight 0 as none: a pair has the
        product of its weights, and m is the sum of all weights. With `qid`, an id of a query per
        example, only pairs of one query count: all queries share one w, and the sum over the pairs
        of a query with m_q examples has the factor C/(m m_q). The on-line solver takes neither.

        A sparse `X` is for the linear kernel; its zeros cost nothing, and it is not centred.
        """
        with self._unchanged_by_failure(), np.errstate(over="ignore", invalid="ignore"):
            if qid is not None or is_sparse(X):
                self._fit_groups(X, y, offset, sample_weight, qid)
            elif sample_weight is None:
                self._fit(*self._begin(X, y, offset))
            else:
                features, targets, weights = self._begin_weighted(X, y, offset, sample_weight)
                self._fit_weighted(features, targets, weights)
            self._check_solution()
        return self

    def _fit_groups(
        self,
        X: ArrayLike,
        y: ArrayLike,
        offset: ArrayLike | None,
        sample_weight: ArrayLike | None,
        qid: ArrayLike | None,
    ) -> None:
        if self.solver == "online":
            raise InvalidParameterError("solver='online' takes no qid and no sparse X: use 'auto'")
        weights: FloatArray | None = None
        if sample_weight is None:
            features, targets = self._begin(X, y, offset)
        else:
            features, targets, weights = self._begin_weighted(X, y, offset, sample_weight)
        ones = np.ones(len(targets)) if weights is None else weights
        centring = Centring(ones, check_groups(qid, len(targets)))
        self._weighted = self._weighted or qid is not None
        self._fit_centred(features, targets, centring)

    def _begin_weighted(
        self, X: ArrayLike, y: ArrayLike, offset: ArrayLike | None, sample_weight: ArrayLike
    ) -> tuple[Any, FloatArray, FloatArray]:
        """Check all input; examples of weight 0 have no effect, not even on widths and ranges."""
        if self.solver == "online":
            raise InvalidParameterError("solver='online' takes no sample_weight: use 'auto'")
        features, targets = self._begin(X, y, offset)
        weights = check_weights(sample_weight, len(targets))
        counted = weights > 0.0
        if self.kernel not in ("linear", "precomputed") and self.gamma is None:
            self.gamma_ = scale_gamma(features, weights)
        ratings = np.asarray(y, dtype=np.float64)[counted]
        self.y_min_, self.y_max_ = float(ratings.min()), float(ratings.max())
        used = targets[counted]
        self._fitted_constant = bool((used == used[0]).all())
        self._note_fit(float(weights.sum()))
        self._weighted = True
        return features, targets, weights

    def partial_fit(self, X: ArrayLike, y: ArrayLike, offset: ArrayLike | None = None) -> MPRank:
        """Learn the rows of `X` one by one, after those of earlier calls (§2.5, streaming).

        The i-th example of the stream costs one row of kernel values and O(i). One pass comes
        near the batch solution; `fit` on all examples reaches it. With ``gamma=None`` the rows of
        the first call decide the width. After `fit` a new stream begins. A model from `from_params`
        has no stream and raises `NotFittedError`.
        """
        if self.kernel == "precomputed":
            raise InvalidParameterError("kernel='precomputed' cannot stream: use fit")
        with self._unchanged_by_failure():
            self._learn_stream(X, y, offset)
            self._check_solution()
        return self

    def _learn_stream(self, X: ArrayLike, y: ArrayLike, offset: ArrayLike | None) -> None:
        if hasattr(self, "intercept_") and not hasattr(self, "_stream"):
            raise not_fitted("a model from from_params cannot learn further: call fit")
        previous: online.Stream | None = getattr(self, "_stream", None)
        features, targets = self._begin(X, y, offset, stream=previous)
        d = features.shape[1]
        if previous is None:
            stream = online.Stream(self._kernel(), self._near_origin(features[:1])[1], d)
            self._begun_with = self._fixed_values()
        else:
            stream = previous.branch()
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is not finite below
            for row, target in zip(features, targets, strict=True):
                stream.learn(row, target, self._ridge(len(stream) + 1))
            points = stream.points()
            self._stream, self._residuals = stream, None
            self._note_fit(len(stream))
            alpha = stream.dual()
            check_digits(alpha, stream.greatest, stream.targets() - stream.targets().mean())
            self._accept_dual(points, alpha, stream.intercept(), stream.origin)
            self.objective_ = stream.objective(self._fitted_ridge)
            self.converged_ = False

    def _check_solution(self) -> None:
        if not math.isfinite(self.objective_):
            raise NumericFailureError(
                "the solution overflowed: lower C, or scale the features down"
            )

    def training_residuals(self) -> FloatArray | None:
        """Return ``h(x) − y`` of the training examples, which `fit` has computed.

        None with ``solver="online"``, which does not solve the problem exactly, and in a copy by
        pickle, which has no training examples.
        """
        return getattr(self, "_residuals", None)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: without the residuals, as many as training examples."""
        return {name: value for name, value in vars(self).items() if name != "_residuals"}

    def predict(self, X: ArrayLike, offset: ArrayLike | None = None) -> FloatArray:
        """Return the scores, clipped to the range of the training ratings."""
        return np.clip(self.decision_function(X, offset), self.y_min_, self.y_max_)

    def fit_many(self, users: ManyUsers) -> ManyFitted | None:
        """Learn all users with a linear kernel in one compiled call."""
        if self.kernel != "linear" or self.solver == "online" or users.matrix.shape[1] == 0:
            return None
        self.check_parameters()
        learned = can_learn(users.ratings, users.ends, users.n_train, users.min_ratings)
        ridges = ridge_of(self.C, self.ridge, self.growth, users.n_train.astype(np.float64))
        coefs = np.zeros((len(learned), users.matrix.shape[1]))
        fitted = ManyFitted(
            learned, np.zeros(len(learned)), np.zeros(len(users.offset)), coefs
        )  # fmt: skip
        fit_users(
            users.matrix, users.rows, users.excluded, users.ratings - users.offset, users.ends,
            users.n_train, ridges, learned, coefs, fitted.intercepts, fitted.scores,
        )  # fmt: skip
        fitted.scores[:] += users.offset
        return fitted

    def leave_pair_out(self, X: ArrayLike, y: ArrayLike, offset: ArrayLike | None = None) -> float:
        """Return the exact leave-pair-out error (eq. 17) of the fitted problem, ridge held fixed.

        This is the mean over pairs of the squared cost when both examples are left out of training:
        O(m²) after the hat matrix, O(m² min(m, d)), instead of m(m − 1)/2 refits. `X`, `y` and
        `offset` are those of `fit`, which does not keep them; at least three examples. Uses the
        hyper-parameters of `fit`, even if they were changed since.
        """
        fitted = type(self)(**self._learned("_fitted_params"))
        if self._weighted:
            raise InvalidDataError(
                "leave-pair-out takes no weights and no queries: fit without sample_weight and qid"
            )
        features = check_items(X, self.n_features_in_)
        targets = check_targets(y, len(features))
        if offset is not None:
            targets = targets - check_targets(offset, len(features), "offset")
        if len(targets) < 3:
            raise InvalidDataError("leave-pair-out needs at least three examples")
        if len(targets) != self._fitted_size:
            raise InvalidDataError(
                f"leave-pair-out is of the {self._fitted_size} examples of fit: give these, not "
                f"{len(targets)}"
            )
        fitted.gamma_ = self.gamma_
        return fitted._leave_pair_out(features, targets, self._fitted_ridge)

    @classmethod
    def path(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        Cs: Iterable[float],
        *,
        offset: ArrayLike | None = None,
        **params: Any,
    ) -> MPRankPath:
        """Return objective, leave-pair-out error and solution for every C of a grid.

        All share one decomposition of K̃ (of the centred X with a linear kernel and d < m). Each C
        then costs one symmetric product, O(m² min(m, d)), in single precision if that changes the
        leave-pair-out error by less than a share of 1e-5.
        """
        if not isinstance(Cs, Iterable):
            raise InvalidParameterError(f"Cs={Cs!r} is not allowed: give a list of values of C")
        models = [cls(C, **params) for C in Cs]
        if not models:
            raise InvalidParameterError("Cs is empty: give at least one value of C")
        for model in models:
            model.check_parameters()
        first = models[0]
        features, targets = first._begin(X, y, offset)
        ridges = np.array([model._ridge(len(targets)) for model in models])
        matrix, primal, origin = first._path_matrix(features, float(ridges.min()))
        solutions = trace_path(matrix, targets, ridges, primal=primal)
        for position, model in enumerate(models):
            for name in _BEGUN:
                setattr(model, name, getattr(first, name))
            model._note_columns(X, features.shape[1])
            model._note_fit(len(targets))
            model._accept_dual(
                features, solutions.dual[position], solutions.intercepts[position], origin
            )
            if solutions.weights is not None:
                model.coef_ = solutions.weights[position]
            model.objective_ = float(solutions.objectives[position])
        return MPRankPath(
            np.array([model.C for model in models], float),
            solutions.objectives,
            solutions.errors,
            tuple(models),
        )

    def _begin(
        self,
        X: ArrayLike,
        y: ArrayLike,
        offset: ArrayLike | None,
        *,
        stream: online.Stream | None = None,
    ) -> tuple[Any, FloatArray]:
        """Check all input, store the range of the ratings, and return features and targets.

        The features are a copy if the model keeps them.
        """
        self.check_parameters()
        if stream is None:
            features = check_training(X, self.kernel)
        else:
            self._check_columns(X)
            features = check_items(X, stream.width)
        if self.kernel not in ("linear", "precomputed"):
            features = features.copy()
        ratings = check_targets(y, features.shape[0])
        base = 0.0 if offset is None else check_targets(offset, len(ratings), "offset")
        lowest, highest = float(ratings.min()), float(ratings.max())
        if stream is None:
            if self.kernel == "precomputed":
                check_gram(features)
            self.gamma_, self.n_rounds_, self.cost_path_ = self._width(features), 0, _NO_COSTS
            self.y_min_, self.y_max_ = lowest, highest
        else:
            self._check_unchanged()
            self.y_min_, self.y_max_ = min(self.y_min_, lowest), max(self.y_max_, highest)
        self._stream = stream
        targets = ratings - base
        self._fitted_constant = (
            lowest == highest if offset is None else bool((targets == targets[0]).all())
        )
        self._weighted, self.converged_ = False, True
        self._note_columns(X, features.shape[1])
        self._note_fit(len(ratings))
        return features, targets

    def _note_fit(self, m: float) -> None:
        """Store the hyper-parameters and the ridge of this fit, in case they are changed later."""
        self._fitted_params, self._fitted_ridge = self.get_params(), self._ridge(m)
        self._fitted_size = int(m)
