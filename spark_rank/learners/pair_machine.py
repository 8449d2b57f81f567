"""What SVRank and RankSVM share: a kernel machine under a pair loss."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from spark_rank.learners.base import FloatArray
from spark_rank.learners.bundle import GramProduct, Solution, minimise
from spark_rank.learners.errors import InvalidDataError, NumericFailureError
from spark_rank.learners.kernel_machine import KERNEL_PARAMETERS, KernelMachine, check_gram
from spark_rank.learners.kernels import scale_gamma
from spark_rank.learners.pair_losses import PairLoss
from spark_rank.learners.parameters import Integer, Parameter, Real

_INDEFINITE = 1e-8


class PairMachine(KernelMachine):
    """Base of the learners that minimise ``½‖w‖² + R(h)``, ``h = w·Φ(x)``, R a pair loss.

    Linear kernel with d < m: the primal, a product with K is ``X(Xᵀg)``, O(m d) in time and no
    memory beyond X. Otherwise the m×m kernel matrix is held and a product is O(m²). A pair loss
    is blind to a constant, so α sums to 0 and features may be centred.
    """

    parameters: ClassVar[dict[str, Parameter]] = {
        **KERNEL_PARAMETERS,
        "tol": Real("relative duality gap to reach", above=0.0),
        "max_iter": Integer("most rounds of the bundle method", at_least=1),
    }
    state: ClassVar[tuple[str, ...]] = (
        *KernelMachine.state,
        "duality_gap_",
        "n_iter_",
        "converged_",
    )

    tol: float
    max_iter: int

    def _fit_machine(self, X: FloatArray, loss: PairLoss) -> float:
        """Learn everything but the constant; return the mean raw score of the training items."""
        fit_kernel = self._fit_linear if self.kernel == "linear" else self._fit_kernel
        with np.errstate(over="ignore", invalid="ignore"):  # the solver reports what overflows
            solution, mean_score = fit_kernel(X, loss)
        self.objective_ = solution.objective
        self.duality_gap_ = solution.gap
        self.n_iter_ = solution.n_iter
        self.converged_ = solution.converged
        return mean_score

    def _fit_linear(self, X: FloatArray, loss: PairLoss) -> tuple[Solution, float]:
        means = X.mean(axis=0)
        centred = X - means
        if X.shape[1] < len(X):
            solution = self._solve(loss, lambda g: centred @ (g @ centred), len(X))
        else:
            gram = centred @ centred.T
            solution = self._solve(loss, lambda g: gram @ g, len(X))
        self.coef_ = solution.dual @ centred
        self.dual_coef_, self.support_, self.gamma_ = None, None, None
        return solution, float(means @ self.coef_)

    def _fit_kernel(self, X: FloatArray, loss: PairLoss) -> tuple[Solution, float]:
        precomputed = self.kernel == "precomputed"
        self.gamma_ = None if precomputed else self.gamma or scale_gamma(X)
        gram = check_gram(X) if precomputed else self._kernel()(X, X)
        product = _checked_product(gram) if precomputed else lambda g: gram @ g
        solution = self._solve(loss, product, len(X))
        self.coef_ = None
        self.dual_coef_ = solution.dual
        self.support_ = None if precomputed else X.copy()
        return solution, float(gram.mean(axis=0) @ solution.dual)

    def _solve(self, loss: PairLoss, product: GramProduct, n_examples: int) -> Solution:
        solution = minimise(loss, product, n_examples, tol=self.tol, max_iter=self.max_iter)
        if not np.isfinite(solution.objective):
            raise NumericFailureError("the solution overflowed: lower C, or scale X down")
        return solution


def _checked_product(gram: FloatArray) -> GramProduct:
    """Return g ↦ Kg, which raises `InvalidDataError` when it meets a g with gᵀKg < 0."""
    limit = -_INDEFINITE * np.abs(gram).max(initial=0.0)

    def product(vector: FloatArray) -> FloatArray:
        image = gram @ vector
        if vector @ image < limit * (vector @ vector):
            raise InvalidDataError(
                "the precomputed kernel is not positive semi-definite: clip its negative "
                "eigenvalues to 0"
            )
        return image

    return product
