"""Fits one learner to one user: on ratings, on ranks, or on landmarks of a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spark_rank.learners import Learner
from spark_rank.learners.errors import LearnerError
from spark_rank.learners.kernel_machine import KernelMachine
from spark_rank.learners.kernels import Kernel, scale_gamma
from spark_rank.learners.rows import Row
from spark_rank.users.landmarks import landmark_products, landmark_root
from spark_rank.users.rank_scale import RankScale
from spark_rank.users.specs import LearnerSpec, Params

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Ranks = NDArray[np.int64]


@dataclass(frozen=True)
class Sample:
    """A user's training part: features, ratings, the prior scores, and weights if any."""

    X: Matrix
    ratings: Vector
    offset: Vector | None
    weights: Vector | None = None

    def part(self, rows: Ranks | slice) -> Sample:
        """Return some of the rows."""
        offset = None if self.offset is None else self.offset[rows]
        weights = None if self.weights is None else self.weights[rows]
        return Sample(self.X[rows], self.ratings[rows], offset, weights)


@dataclass(frozen=True)
class Limits:
    """The settings of fitting that are the same for all users and learners."""

    scale: RankScale | None
    max_kernel_ratings: int
    landmarks: int
    folds: int


class Fitted(Protocol):
    """A fitted learner: returns scores for rows of X and their prior scores (`offset`)."""

    @property
    def learner(self) -> Learner:
        """Return the learner."""

    def scores(self, X: Matrix, offset: Vector | None) -> Vector:
        """Return a score for every row."""

    def training_scores(self, sample: Sample) -> Vector:
        """Return the scores of the training examples."""

    def ranks(self, X: Matrix, offset: Vector | None) -> Ranks | None:
        """Return a rank for every row; None if the learner predicts no ranks."""

    def to_row(self) -> Row:
        """Return the learner's own columns."""


@dataclass(frozen=True)
class Scorer:
    """A learner that starts from the offset and adds what it learned to it."""

    learner: Any

    def scores(self, X: Matrix, offset: Vector | None) -> Vector:
        """Return the learner's scores."""
        return _finite(self.learner.decision_function(X, offset=offset))

    def training_scores(self, sample: Sample) -> Vector:
        """Return the scores of the training examples; MPRank has them from its solution."""
        residuals = self.learner.training_residuals()
        if residuals is None:
            return self.scores(sample.X, sample.offset)
        return _finite(sample.ratings + residuals)

    def ranks(self, X: Matrix, offset: Vector | None) -> None:
        """Return nothing: scores have no ranks of their own."""

    def to_row(self) -> Row:
        """Return the learner's own columns."""
        row: Row = self.learner.to_row()
        return row


@dataclass(frozen=True)
class Ranker:
    """A learner of ranks; the offset, if any, is one more feature."""

    learner: Any

    def scores(self, X: Matrix, offset: Vector | None) -> Vector:
        """Return the learner's scores, which are only comparable with its thresholds."""
        return _finite(self.learner.decision_function(with_offset(X, offset)))

    def training_scores(self, sample: Sample) -> Vector:
        """Return the scores of the training examples."""
        return self.scores(sample.X, sample.offset)

    def ranks(self, X: Matrix, offset: Vector | None) -> Ranks:
        """Return the predicted ranks."""
        predicted: Ranks = self.learner.predict(with_offset(X, offset))
        return predicted

    def to_row(self) -> Row:
        """Return the learner's own columns."""
        row: Row = self.learner.to_row()
        return row


@dataclass(frozen=True)
class LandmarkScorer:
    """A kernel machine on the part of the kernel's space that some landmarks span (Nyström).

    With K the kernel matrix of L landmarks, ``φ(x) = K^(−1/2) k(x)`` are L features whose inner
    products are the kernel's wherever x is a landmark; a linear machine learns on them in
    O(m L²). Its w is ``Σ α_j Φ(landmark_j)`` with ``α = K^(−1/2) w``: a model like any other.
    """

    learner: Any
    kernel: Kernel
    landmarks: Matrix
    positions: NDArray[np.int64]
    root: Matrix

    @property
    def dual(self) -> Vector:
        """Return the landmarks' dual coefficients."""
        return np.asarray(self.root @ self.learner.coef_)

    def scores(self, X: Matrix, offset: Vector | None) -> Vector:
        """Return the scores."""
        features = landmark_products(self.kernel, X, self.landmarks, self.root)
        return _finite(self.learner.decision_function(features, offset=offset))

    def training_scores(self, sample: Sample) -> Vector:
        """Return the scores of the training examples."""
        return self.scores(sample.X, sample.offset)

    def to_row(self) -> Row:
        """Return the landmarks' dual coefficients: a kernel model on few examples."""
        name = self.kernel.name
        return {
            "intercept": self.learner.intercept_,
            "kernel": name,
            "gamma": None if name == "linear" else self.kernel.gamma,
            "dual": self.dual,
            "support": self.positions,
        }

    def ranks(self, X: Matrix, offset: Vector | None) -> None:
        """Return nothing: scores have no ranks of their own."""


def fit(spec: LearnerSpec, params: Params | None, sample: Sample, limits: Limits) -> Fitted:
    """Return `spec`'s learner, fitted with `params`.

    With a kernel that is not linear and more than `max_kernel_ratings` ratings, a kernel machine
    learns on landmarks, since the exact solution takes O(m³) time, and a kernel perceptron learns
    from the first `max_kernel_ratings` ratings, since all would take O(m²).
    """
    scale, max_ratings = limits.scale, limits.max_kernel_ratings
    learner: Any = spec.make(scale, params)
    if sample.weights is not None and not learner.takes_weights:
        raise LearnerError(f"{spec.learner} takes no weights")
    too_many = is_cut_short(learner, len(sample.ratings), max_ratings)
    if learner.of_ranks:
        if scale is None:
            raise LearnerError("a learner of ranks needs a rating scale with levels")
        used = sample.part(slice(0, max_ratings)) if too_many else sample
        return Ranker(learner.fit(with_offset(used.X, used.offset), scale.ranks(used.ratings)))
    if too_many:
        return _fit_on_landmarks(learner, sample, min(limits.landmarks, max_ratings))
    return Scorer(_fitted(learner, sample.X, sample))


def _fitted(learner: Any, X: Matrix, sample: Sample) -> Any:
    """Fit a learner of scores; weights are only passed on if there are any."""
    weights = {} if sample.weights is None else {"sample_weight": sample.weights}
    return learner.fit(X, sample.ratings, offset=sample.offset, **weights)


def is_cut_short(learner: Learner, n_ratings: int, max_kernel_ratings: int) -> bool:
    """Return whether this learner cannot use all of `n_ratings` exactly."""
    return getattr(learner, "kernel", "linear") != "linear" and n_ratings > max_kernel_ratings


def _fit_on_landmarks(learner: KernelMachine, sample: Sample, n_landmarks: int) -> LandmarkScorer:
    X = sample.X
    gamma = learner.gamma if learner.gamma is not None else scale_gamma(X)
    kernel = Kernel(learner.kernel, gamma, learner.degree, learner.coef0, learner.rbf_weight)
    positions = np.linspace(0, len(X) - 1, n_landmarks).astype(np.int64)
    landmarks = np.ascontiguousarray(X[positions])
    root = landmark_root(kernel, landmarks, balanced="linear" in kernel.name)
    linear: Any = type(learner)(**{**learner.get_params(), "kernel": "linear"})
    features = landmark_products(kernel, X, landmarks, root)
    _fitted(linear, features, sample)
    return LandmarkScorer(linear, kernel, landmarks, positions, root)


def with_offset(X: Matrix, offset: Vector | None) -> Matrix:
    """Return the features with the offset, if any, as the last column."""
    return X if offset is None else np.column_stack([X, offset])


def _finite(scores: Vector) -> Vector:
    if not np.isfinite(scores).all():
        raise LearnerError("a score is not finite")
    return scores
