"""What users choose: a low-rank model of which items a user rates at all.

``c_ui = 1`` for the items that user u rated and 0 for all others, which count less. Factors of
users and items are fitted to these by alternating least squares. A user's factors are then
regressed on the items that the user rated, as the prior mean of the factor model is: so nobody's
factors have to be stored or solved for, and every score is a product of an item's factors with a
sum over the rated items.

References
----------
Hu, Koren, Volinsky: Collaborative Filtering for Implicit Feedback Datasets, ICDM 2008.
Rendle, Krichene, Zhang, Koren: Revisiting the Performance of iALS, RecSys 2022 (the weight of all
pairs, apart from that of the rated ones).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import prange
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from spark_rank.compiled import njit
from spark_rank.features.expected import expected_weights

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

RANK, ROUNDS = 32, 8
# Chosen by NDCG over all items within the training parts of MovieLens-100K and 1M. The weight of
# every pair of user and item, where a rated pair has 1 more; and the ridge, over the root of the
# mean number of ratings of a row.
_ALL_PAIRS = 0.05
_RIDGE = 0.7
_START_SPREAD = 0.1
# ridge of the regression of users on their items, in numbers of users, as in `factor_model`
_CHOICE_RIDGE = 100.0


@dataclass(frozen=True)
class Choice:
    """A low-rank model of choices, in float32; both arrays may be mapped into memory.

    The chance that a user who rated the items J rates item i too is estimated by least squares:
    ``decoder_i · code`` with ``code = Σ_J encoder_j / √|J| + encoder_{−2} + encoder_{−1} log |J|``,
    as the prior weights of a user follow from the choice of items; in units of a scale that the
    decoder contains. `encoder` has two rows more than there are items.
    """

    decoder: NDArray[np.float32]
    encoder: NDArray[np.float32]

    def codes(self, items: NDArray[np.int32], ends: IntArray) -> FloatArray:
        """Return a row for every user; the items of user u are ``items[ends[u]:ends[u + 1]]``."""
        if len(items) and not 0 <= items.min() <= items.max() < len(self.encoder) - 2:
            raise IndexError("an item without features")  # compiled code does not check
        encoder, chosen = self.encoder.view(), items.view()
        encoder.flags.writeable = chosen.flags.writeable = False  # one type for the compiler
        return np.asarray(expected_weights(encoder, chosen, ends, np.diff(ends)))


def learn_choice(
    items: NDArray[np.int32],
    ends: IntArray,
    n_items: int,
    *,
    scale: float = 1.0,
    rank: int = RANK,
    rounds: int = ROUNDS,
    seed: int = 0,
) -> Choice:
    """Learn what users choose from the items that a sample of users rated.

    The items of user u are ``items[ends[u]:ends[u + 1]]``. O(rounds · (ratings · rank² + (users +
    items) · rank³)). The decoder is multiplied by `scale`. An item without a rating has zeros.
    """
    if len(items) == 0:
        return Choice(
            np.zeros((n_items, rank), np.float32), np.zeros((n_items + 2, rank), np.float32)
        )
    order = np.argsort(items, kind="stable")
    item_ends = np.concatenate([[0], np.cumsum(np.bincount(items, minlength=n_items))])
    users = np.repeat(np.arange(len(ends) - 1, dtype=np.int32), np.diff(ends))[order]
    rng = np.random.default_rng(seed)
    factors = rng.normal(0.0, _START_SPREAD / np.sqrt(rank), (n_items, rank))
    # sums in BLAS depend on the number of threads
    with threadpool_limits(1, user_api="blas"):
        for _ in range(rounds):
            weights = _solved(ends, items, factors)
            factors = _solved(item_ends, users, weights)
        weights = _solved(ends, items, factors)
        encoder = _encoder(items, ends, factors, weights)
    return Choice((scale * factors).astype(np.float32), encoder.astype(np.float32))


def _solved(ends: IntArray, others: NDArray[np.int32], vectors: FloatArray) -> FloatArray:
    """Return the least squares factors of every row, given those of the others."""
    ridge = _RIDGE * np.sqrt(len(others) / max(len(ends) - 1, 1))
    system = _ALL_PAIRS * (vectors.T @ vectors) + ridge * np.eye(vectors.shape[1])
    found = np.empty((len(ends) - 1, vectors.shape[1]))
    _fill_solved(ends, others, vectors, system, found)
    return found


@njit(cache=True, parallel=True)
def _fill_solved(ends: Any, others: Any, vectors: Any, system: Any, found: Any) -> None:
    for row in prange(len(ends) - 1):
        own = others[ends[row] : ends[row + 1]]
        X = np.empty((len(own), vectors.shape[1]))
        right = np.zeros(vectors.shape[1])
        for place in range(len(own)):
            for k in range(vectors.shape[1]):
                X[place, k] = vectors[own[place], k]
                right[k] += X[place, k]
        found[row] = np.linalg.solve(system + np.dot(X.T, X), right)


def _encoder(
    items: NDArray[np.int32], ends: IntArray, factors: FloatArray, weights: FloatArray
) -> FloatArray:
    """Regress the users' factors on the items they rated, and return the encoder."""
    rank = factors.shape[1]
    plain = np.vstack([factors, np.zeros((2, rank))]).astype(np.float32)
    sizes = np.diff(ends)
    sums = expected_weights(plain, items, ends, sizes)
    seen = np.column_stack([sums, np.log(np.maximum(sizes, 1))])
    centre, spread = seen.mean(axis=0), seen.std(axis=0)
    spread[spread < 1e-9] = 1.0
    x = (seen - centre) / spread
    gram = x.T @ x + _CHOICE_RIDGE * np.eye(x.shape[1])
    slopes = np.linalg.solve(gram, x.T @ weights) / spread[:, None]
    constants = weights.mean(axis=0) - centre @ slopes
    return np.vstack([factors @ slopes[:-1], constants, slopes[-1]])
