"""Compiled updates of PRank's rule by margins: ROMMA and passive-aggressive steps.

The rule is the vector v = (w, b). An example x of rank y has a margin ``y_r (w·x − b_r)`` for every
threshold, with y_r = −1 if y ≤ r and +1 otherwise. For the thresholds E of too small margins,
``z = (Σ_E y_r x, −Σ_E y_r e_r)`` and ``v·z`` is the sum of their margins.

* ROMMA takes the shortest v′ with ``v′·z ≥ |E|`` and ``v′·v ≥ ‖v‖²``. E are the margins up to 0 of
  an example that is ranked wrongly, or, in the aggressive form, all margins below 1.
* The passive-aggressive step is ``v + min(C, (|E| − v·z)/‖z‖²) z`` with E the margins below 1.

The thresholds are sorted after each step. By the rearrangement inequality this brings them no
further from any ordered thresholds.

On noise the length of ROMMA's v grows geometrically. Only directions count for ranks, so a long v
is halved many times, and with it the unit in which margins are measured.

References
----------
Li, Long: The Relaxed Online Maximum Margin Algorithm, Machine Learning 46, 2002.
Crammer, Dekel, Keshet, Shalev-Shwartz, Singer: Online Passive-Aggressive Algorithms, JMLR 7, 2006.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spark_rank.compiled import njit
from spark_rank.learners.base import FloatArray
from spark_rank.learners.compiled.dot import dot
from spark_rank.learners.perceptrons.rounds import OK, IntArray
from spark_rank.rank_rule import predicted_rank

UPDATES = ("perceptron", "romma", "aggressive-romma", "pa")
PERCEPTRON = UPDATES[0]
_ROMMA, _PASSIVE = 1, 3  # positions in UPDATES
_LONG = 2.0**100  # squared length from which a rule is shortened
_SHORTER = 2.0**-50
_PARALLEL = 1e-14  # share of ‖z‖²‖v‖² below which v and z have one direction, up to rounding


class MarginRule(NamedTuple):
    """The rule that moves: w, b_1 ≤ … ≤ b_{k−1}, and the unit of margins, of length 1."""

    coef: FloatArray
    thresholds: FloatArray
    unit: FloatArray


class RuleMean(NamedTuple):
    """The sum of the rules after earlier rounds, each of length 1, and what is not yet added.

    `pending` is the number of rounds since the last move, which have the present rule.
    """

    coef: FloatArray
    thresholds: FloatArray
    pending: IntArray


@njit(cache=True, nogil=True)
def margin_pass(
    X: FloatArray, ranks: IntArray, update: int, C: float, rule: MarginRule, mean: RuleMean,
    losses: IntArray,
) -> int:  # fmt: skip
    """Run the update over the rows of `X`, in O(d + k²) a round; write the rank losses.

    `rule` and `mean` are updated in place; a mean without room for sums is not computed. Returns
    the first round whose score is not finite, or ``OK``.
    """
    for t in range(X.shape[0]):
        score = dot(rule.coef, X[t])
        if not np.isfinite(score):
            return t
        losses[t] = abs(predicted_rank(score, rule.thresholds) - ranks[t])
        if errs(score, ranks[t], update, rule.thresholds, rule.unit[0]):
            if mean.coef.shape[0] > 0:
                add_pending(rule, mean)
            move_by_margin(X[t], score, ranks[t], update, C, rule)
        mean.pending[0] += 1
    return OK


@njit(cache=True, nogil=True)
def add_pending(rule: MarginRule, mean: RuleMean) -> None:
    """Add the present rule, of length 1, for all rounds in which it was in force."""
    length = np.sqrt(dot(rule.coef, rule.coef) + dot(rule.thresholds, rule.thresholds))
    if length > 0.0 and mean.pending[0] > 0:
        factor = mean.pending[0] / length
        for i in range(rule.coef.shape[0]):
            mean.coef[i] += factor * rule.coef[i]
        for r in range(rule.thresholds.shape[0]):
            mean.thresholds[r] += factor * rule.thresholds[r]
    mean.pending[0] = 0


@njit(cache=True, nogil=True)
def errs(score: float, rank: int, update: int, thresholds: FloatArray, unit: float) -> bool:
    """Tell whether an example moves the rule."""
    if update == _ROMMA:
        return bool(predicted_rank(score, thresholds) != rank)
    for r in range(thresholds.shape[0]):
        side = -1.0 if rank <= r + 1 else 1.0
        if (score - thresholds[r]) * side < unit:
            return True
    return False


@njit(cache=True, nogil=True)
def move_by_margin(
    x: FloatArray, score: float, rank: int, update: int, C: float, rule: MarginRule
) -> None:
    """Do the update for an example that moves the rule; `score` is w·x."""
    coef, thresholds, unit = rule.coef, rule.thresholds, rule.unit[0]
    n_small = 0
    direction = margins = 0.0
    sides = np.zeros(thresholds.shape[0])
    for r in range(thresholds.shape[0]):
        side = -1.0 if rank <= r + 1 else 1.0
        margin = (score - thresholds[r]) * side
        if (margin <= 0.0) if update == _ROMMA else (margin < unit):
            n_small += 1
            direction += side
            margins += margin
            sides[r] = side
    square = direction * direction * dot(x, x) + n_small  # ‖z‖²
    wanted = n_small * unit
    if update == _PASSIVE:
        kept, added = 1.0, min(C, (wanted - margins) / square)
    else:
        length = dot(coef, coef) + dot(thresholds, thresholds)  # ‖v‖²
        spread = square * length - margins * margins
        if spread <= _PARALLEL * square * length or square * length <= wanted * margins:
            # v says nothing beside z: the shortest vector with the wanted margins
            rule.unit[0] = 1.0
            kept, added = 0.0, n_small / square
        else:
            kept = (square * length - wanted * margins) / spread
            added = length * (wanted - margins) / spread
    for i in range(coef.shape[0]):
        coef[i] = kept * coef[i] + added * direction * x[i]
    for r in range(thresholds.shape[0]):
        thresholds[r] = kept * thresholds[r] - added * sides[r]
    sort_in_place(thresholds)
    if dot(coef, coef) + dot(thresholds, thresholds) > _LONG:
        rule.unit[0] *= _SHORTER
        for i in range(coef.shape[0]):
            coef[i] *= _SHORTER
        for r in range(thresholds.shape[0]):
            thresholds[r] *= _SHORTER


@njit(cache=True, nogil=True)
def sort_in_place(values: FloatArray) -> None:
    """Sort a few numbers that are nearly sorted, by insertion."""
    for i in range(1, values.shape[0]):
        value = values[i]
        j = i
        while j > 0 and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value
