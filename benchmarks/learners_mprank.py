"""MPRank against its own BLAS/LAPACK calls made bare, against KernelRidge, and over a grid of C.

Ratios of medians of one run, on one thread. Run: ``python benchmarks/learners_mprank.py``.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import statistics
import time
from collections.abc import Callable

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.lapack import dposv
from sklearn.kernel_ridge import KernelRidge
from sklearn.preprocessing import KernelCenterer

from spark_rank.learners import MPRank
from spark_rank.learners.kernels import Kernel

D, GAMMA, C = 20, 0.02, 30.0


def problem(m: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(m)
    return rng.normal(size=(m, D)), rng.integers(1, 6, m).astype(float)


def bare(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """One matrix product, one exponential, one Cholesky solve: what cannot be left out."""
    half_norms = 0.5 * np.einsum("ij,ij->i", X, X)
    gram = X @ X.T
    gram -= half_norms[:, None]
    gram -= half_norms
    gram *= 2.0 * GAMMA
    np.exp(gram, out=gram)
    gram.flat[:: len(y) + 1] += len(y) / (2.0 * C)
    right = np.column_stack([y, np.ones(len(y))])
    _, solution, _ = dposv(gram.T, right, lower=1, overwrite_a=1)
    return np.asarray(solution)


def ours(X: np.ndarray, y: np.ndarray) -> MPRank:
    return MPRank(C, kernel="rbf", gamma=GAMMA).fit(X, y)


def kernel_ridge(X: np.ndarray, y: np.ndarray) -> KernelRidge:
    """The same model from scikit-learn: kernel, centring, ridge."""
    squared = ((X**2).sum(1)[:, None] + (X**2).sum(1)[None, :]) - 2.0 * X @ X.T
    gram = KernelCenterer().fit_transform(np.exp(-GAMMA * squared))
    return KernelRidge(alpha=len(y) / (2 * C), kernel="precomputed").fit(gram, y - y.mean())


def grid(X: np.ndarray, y: np.ndarray) -> object:
    return MPRank.path(X, y, np.logspace(-2, 4, 20), kernel="rbf", gamma=GAMMA)


def decomposition(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    gram = Kernel("rbf", GAMMA)(X, X)
    return np.asarray(eigh(gram, driver="evd", check_finite=False)[0])


def medians(
    rivals: dict[str, Callable[[np.ndarray, np.ndarray], object]], m: int, repeats: int
) -> dict[str, float]:
    """Time the rivals in turns, so that a busy machine is busy for all of them."""
    X, y = problem(m)
    times: dict[str, list[float]] = {name: [] for name in rivals}
    for _ in range(repeats + 1):
        for name, run in rivals.items():
            started = time.perf_counter()
            run(X, y)
            times[name].append(time.perf_counter() - started)
    return {name: statistics.median(values[1:]) for name, values in times.items()}


def main() -> None:
    print("MPRank dual, Gaussian kernel, d = 20: time over that of its bare BLAS/LAPACK calls")
    for m, repeats in ((100, 400), (700, 40), (2000, 7)):
        times = medians({"bare": bare, "MPRank": ours, "KernelRidge": kernel_ridge}, m, repeats)
        print(
            f"  m = {m:<5} {times['MPRank'] * 1e3:9.3f} ms  {times['MPRank'] / times['bare']:.2f} x"
            f" bare; KernelRidge + centring {times['KernelRidge'] / times['MPRank']:.2f} x MPRank"
        )
    print("20 values of C with leave-pair-out, over one fit plus one eigendecomposition")
    for m, repeats in ((100, 40), (700, 5), (2000, 3)):
        times = medians({"fit": ours, "eigh": decomposition, "grid": grid}, m, repeats)
        ratio = times["grid"] / (times["fit"] + times["eigh"])
        print(f"  m = {m:<5} {times['grid'] * 1e3:9.1f} ms  {ratio:.2f} x")


if __name__ == "__main__":
    main()
