"""Finds the best items of many users: screens in single precision, decides in double precision.

A matrix product of weights and features in float32 rules out nearly all items. The few that may be
among a user's best, given the rounding error of the product, are scored again in float64, feature
by feature in a fixed order. So the choice depends neither on the shape of the product nor on the
library that computed it.

Equal scores are ordered by position, so items must be sorted by id.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spark_rank.compiled import njit
from spark_rank.learners.compiled.dot import dot

Single = NDArray[np.float32]
Double = NDArray[np.float64]
Values = NDArray[np.floating[Any]]  # compiled for both precisions
IntArray = NDArray[np.int64]

TOP, BOTTOM = 1.0, -1.0
NONE = -1
_CHUNK, _FEW, _LANES = 128, 16, 256
_UNIT = 2.0**-24  # of float32; that of float64 is its square, and smaller still
_TINY = 2.0**-126
_SAFE = 1e30


class BestItems(NamedTuple):
    """Per user the best items so far: scores, positions (`NONE` behind the last), how many.

    `screened` are the greatest screening scores so far, signed; an item is scored again only if
    it comes near the last of them.
    """

    scores: Double
    positions: IntArray
    counts: IntArray
    screened: Single


class LinearScores(NamedTuple):
    """The parameters of linear models: ``(w·x + offset_weight·offset) + intercept``."""

    weights: Double
    offset_weights: Double
    intercepts: Double


def no_items(users: int, size: int) -> BestItems:
    """Return empty lists with room for `size` items each."""
    return BestItems(
        np.full((users, size), np.nan),
        np.full((users, size), NONE, dtype=np.int64),
        np.zeros(users, dtype=np.int64),
        np.full((users, size), -np.inf, dtype=np.float32),
    )


def put_items(best: BestItems, users: IntArray, others: BestItems) -> None:
    """Replace the lists of some users."""
    best.scores[users], best.positions[users] = others.scores, others.positions
    best.counts[users], best.screened[users] = others.counts, others.screened


def best_at(best: BestItems, places: IntArray) -> BestItems:
    """Return the lists of the items at these places of every row; `NONE`: no item."""
    is_item = places != NONE
    scores = np.where(is_item, np.take_along_axis(best.scores, places, axis=1), np.nan)
    positions = np.where(is_item, np.take_along_axis(best.positions, places, axis=1), NONE)
    screened = np.take_along_axis(best.screened, places, axis=1)
    return BestItems(scores, positions, (positions != NONE).sum(axis=1), screened)


def product_errors(models: LinearScores, longest: float, largest_offset: float) -> Double:
    """Return how far a float32 product of weights and features can be off, user by user.

    The K products of a sum of length K are off by at most ``K u Σ|w_f x_f| ≤ K u ‖w‖‖x‖``, with
    u = 2⁻²⁴. A little more is allowed for the rounding of offsets and intercept and for underflow.
    Infinite where single precision might overflow. `longest` is the greatest ‖x‖,
    `largest_offset` the greatest |offset|.
    """
    terms = models.weights.shape[1] + 5
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.sqrt(np.einsum("uf,uf->u", models.weights, models.weights))
        size = norms * longest + np.abs(models.offset_weights) * largest_offset
        errors = 1.01 * terms * (_UNIT * size + _TINY) + 8.0 * _UNIT**2 * np.abs(models.intercepts)
        # false where a value is NaN
        safe = size + norms + np.abs(models.offset_weights) < _SAFE
    return np.where(safe, errors, np.inf)


@njit(cache=True, nogil=True)
def forget(values: Values, rows: IntArray, positions: IntArray, ends: IntArray, start: int) -> None:
    """Set the scores of seen items to NaN: positions[ends[u]:ends[u + 1]] are those of user u.

    Row r of `values` is user ``rows[r]``, its columns are the positions from `start` on.
    """
    for row in range(values.shape[0]):
        for entry in range(ends[rows[row]], ends[rows[row] + 1]):
            column = positions[entry] - start
            if 0 <= column < values.shape[1]:
                values[row, column] = np.nan


@njit(cache=True, nogil=True)
def add_linear(
    best: BestItems,
    sign: float,
    products: Single,
    rows: IntArray,
    errors: Double,
    models: LinearScores,
    features: Single,
    offsets: Double,
    start: int,
) -> None:
    """Add the items of a block to users' lists; `products` are their screening scores.

    Row r of `products` is user ``rows[r]``. `features` (at least as wide as the weights) and
    `offsets` are those of the block's items, which begin at position `start`. NaN is never chosen.
    O(n) per user and block, with vectorised comparisons, plus O(d + k) for each item that may
    belong to the best k.
    """
    found = np.empty(products.shape[1], np.int64)
    x = np.empty(models.weights.shape[1])
    for row in range(products.shape[0]):
        user = rows[row]
        slack = 2.0 * errors[user]
        possible = _candidates(products[row], sign, slack, best.screened[user], found)
        for entry in range(possible):
            column = found[entry]
            for f in range(x.shape[0]):
                x[f] = features[column, f]
            score = dot(models.weights[user], x) + models.offset_weights[user] * offsets[column]
            _insert(best, user, sign, score + models.intercepts[user], start + column)


@njit(cache=True, nogil=True)
def linear_scores(
    models: LinearScores,
    rows: IntArray,
    positions: IntArray,
    features: Single,
    offsets: Double,
    scores: Double,
) -> None:
    """Write the score of user ``rows[n]`` for the item at ``positions[n]``, for every n.

    The same bits as in `add_linear`. `features` are at least as wide as the weights.
    """
    x = np.empty(models.weights.shape[1])
    for entry in range(len(rows)):
        user, position = rows[entry], positions[entry]
        for f in range(x.shape[0]):
            x[f] = features[position, f]
        score = dot(models.weights[user], x) + models.offset_weights[user] * offsets[position]
        scores[entry] = score + models.intercepts[user]


@njit(cache=True, nogil=True)
def add_scored(best: BestItems, user: int, sign: float, scores: Double, start: int) -> None:
    """Add the items of a block, from position `start` on, to one user's list by their scores.

    NaN is never chosen. O(n + k² log n).
    """
    found = np.empty(scores.shape[0], np.int64)
    greatest = np.full(best.scores.shape[1], -np.inf)
    possible = _candidates(scores, sign, 0.0, greatest, found)
    for entry in range(possible):
        _insert(best, user, sign, scores[found[entry]], start + found[entry])


@njit(cache=True, nogil=True)
def _candidates(
    values: Values, sign: float, slack: float, greatest: Values, found: IntArray
) -> int:
    """Write to `found`, ascending, the positions within `slack` of the k-th greatest signed value.

    `greatest` are the k greatest values of the blocks before, updated with those of this one. A
    value that is skipped is less than the final k-th value, which only grows.
    """
    flip = values.dtype.type(sign)
    n, n_found = values.shape[0], 0
    floor = _floor(values, flip, greatest.shape[0])
    least = _lowered(max(greatest[-1], floor), slack)
    for chunk in range(0, n, _CHUNK):
        end = min(chunk + _CHUNK, n)
        if not _any_reaches(values, chunk, end, flip, least):
            continue
        for start in range(chunk, end, _FEW):
            stop = min(start + _FEW, end)
            if _any_reaches(values, start, stop, flip, least):
                for i in range(start, stop):
                    if flip * values[i] >= least:
                        found[n_found] = i
                        n_found += 1
                        _keep_greatest(greatest, flip * values[i])
                        least = _lowered(max(greatest[-1], floor), slack)
    n_left = 0
    for entry in range(n_found):
        if flip * values[found[entry]] >= least:
            found[n_left] = found[entry]
            n_left += 1
    return n_left


@njit(cache=True, nogil=True)
def _floor(values: Values, flip: Any, k: int) -> Any:
    """Return a lower bound of the k-th greatest signed value.

    It is the k-th greatest of 256 maxima, each over every 256th value, which vectorise well. The
    bound is close: without it most of the first values would be compared one by one.
    """
    greatest = np.full(k, -np.inf, values.dtype)
    if values.shape[0] < 8 * _LANES or k > _LANES // 8:
        return greatest[-1]
    maxima = np.full(_LANES, -np.inf, values.dtype)
    rows = np.uint64(values.shape[0] // _LANES)
    for row in range(rows):
        for lane in range(np.uint64(_LANES)):
            value = flip * values[row * np.uint64(_LANES) + lane]
            maxima[lane] = value if value > maxima[lane] else maxima[lane]
    for value in maxima:
        _keep_greatest(greatest, value)
    return greatest[-1]


@njit(cache=True, nogil=True)
def _lowered(value: Any, slack: float) -> Any:
    """Return the value minus the slack in its own type, rounded down."""
    kind = type(value)
    return value if slack == 0.0 else np.nextafter(kind(value - slack), kind(-np.inf))


@njit(cache=True, nogil=True)
def _keep_greatest(greatest: Values, value: Any) -> None:
    """Insert a value into `greatest`, in descending order, if it is one of them."""
    place = greatest.shape[0] - 1
    if not value > greatest[place]:
        return
    while place > 0 and greatest[place - 1] < value:
        greatest[place] = greatest[place - 1]
        place -= 1
    greatest[place] = value


@njit(cache=True, nogil=True)
def _any_reaches(values: Values, start: int, stop: int, flip: Any, least: Any) -> Any:
    """Tell whether any of the signed values from `start` to before `stop` is at least `least`.

    It has no branch, so that it vectorises. (A slice would take longer to make than to compare;
    unsigned indices spare the check for a negative index.)
    """
    hits = np.int32(0)
    for i in range(np.uint64(start), np.uint64(stop)):
        hits = np.int32(hits | np.int32(flip * values[i] >= least))
    return hits > 0


@njit(cache=True, nogil=True)
def _insert(best: BestItems, user: int, sign: float, score: float, position: int) -> None:
    """Insert an item after all that are as good; positions come in ascending order."""
    size = best.scores.shape[1]
    place = best.counts[user]
    if place == size:
        if not sign * score > sign * best.scores[user, size - 1]:
            return
        place = size - 1
    else:
        best.counts[user] += 1
    while place > 0 and sign * best.scores[user, place - 1] < sign * score:
        best.scores[user, place] = best.scores[user, place - 1]
        best.positions[user, place] = best.positions[user, place - 1]
        place -= 1
    best.scores[user, place] = score
    best.positions[user, place] = position
