"""Finds the least Kemeny score by integer programming (the linear ordering problem).

A variable per pair says which item goes first; an assignment is an order if it has no directed
triangle. Triangles are forbidden only once a solution contains them (cutting planes). The items are
first split into the strong components of the strict-majority graph. Some optimal order keeps each
component together, because the pairs between two components can follow the majority for any order
within them.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, OptimizeResult, milp
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from spark_rank.preference.local_search import insertion_search
from spark_rank.preference.majorities import FloatArray, kemeny_lower_bound, kemeny_score

IntArray = NDArray[np.int64]

_TOLERANCE = 1e-6  # the solver's error in a triangle, and in costs of at most 1
_NEARLY_TIGHT = 0.2  # triangles this close to a violation get a row in the integer programme
_INFEASIBLE = 2


def exact_order(
    counts: FloatArray, start: Sequence[int], time_limit: float
) -> tuple[list[int], float]:
    """Return an order of least Kemeny score, and the bound that proves it.

    If `time_limit` (seconds) runs out, the order is the best so far, no worse than `start`, and the
    bound is below its score. Exponential time at worst. If adjacent items have equal majorities,
    the one with the smaller row goes first.
    """
    deadline = time.monotonic() + time_limit
    rank_in_start = {row: place for place, row in enumerate(start)}
    order: list[int] = []
    bound = kemeny_lower_bound(counts)
    for members in _components(counts):
        if len(members) > 1:
            rows = sorted(members, key=rank_in_start.__getitem__)
            part = _Component(counts[np.ix_(rows, rows)], deadline)
            part.solve()
            bound += part.bound - kemeny_lower_bound(part.counts)
            order += [rows[place] for place in part.best]
        else:
            order += members
    _settle_draws(order, counts)
    return order, bound


class _Component:
    """The state of solving the linear ordering problem of one component.

    `best` is the best order so far, at first that of the rows; `score` is its Kemeny score; `bound`
    is the proven bound. Any two scores differ by a multiple of `step`, which is 0 if unknown. The
    solver has absolute tolerances, so its costs are in `unit`, the largest cost.
    """

    def __init__(self, counts: FloatArray, deadline: float) -> None:
        self.counts = counts
        self.deadline = deadline
        self.n = len(counts)
        self.pairs = np.triu_indices(self.n, 1)
        self.costs = (counts.T - counts)[self.pairs]
        self.unit = float(np.abs(self.costs).max())
        self.constant = float(counts[self.pairs].sum())
        self.step = _common_divisor(self.costs)
        self.best = list(range(self.n))
        self.score = kemeny_score(self.best, counts)
        self.bound = kemeny_lower_bound(counts)
        self.cuts = np.empty((0, 3), dtype=np.int64)

    def solve(self) -> None:
        """Solve the relaxation with the triangles that it needs, then the integers if necessary."""
        choices = self._majority_choices()
        while not self.proven() and len(new := _triangles(choices, 2.0 + _TOLERANCE)):
            self.cuts = np.concatenate([self.cuts, new])
            result = self._minimise(integral=False)
            if result.status != 0:
                return
            self._raise_bound(result.fun)
            choices = self._choices(result.x)
            self._try_order(choices)
        self.cuts = _united(self.cuts, _triangles(choices, 2.0 - _NEARLY_TIGHT))
        while not self.proven():
            result = self._minimise(integral=True)
            if result.status == _INFEASIBLE:  # no order is better than the best so far
                self.bound = self.score
                return
            if result.mip_dual_bound is not None:
                self._raise_bound(result.mip_dual_bound)
            if result.x is None:
                return
            choices = self._choices(result.x)
            self._try_order(choices)
            new = _triangles(choices, 2.0 + _TOLERANCE)
            if result.status != 0 or not len(new):
                return
            self.cuts = np.concatenate([self.cuts, new])

    def proven(self) -> bool:
        """Return whether no order can be better than the best."""
        return self.bound >= self.score

    def _minimise(self, *, integral: bool) -> OptimizeResult:
        """Minimise the cost of the pairs under the cuts, within the remaining time."""
        costs = self.costs / self.unit
        constraints = [self._cut_rows()]
        if integral and self.step:
            # only strictly better orders, which are better by at least a step
            better = (self.score - self.constant - self.step / 2.0) / self.unit
            constraints.append(LinearConstraint(costs[None, :], -np.inf, better))
        return milp(
            costs,
            integrality=np.full(len(self.costs), int(integral)),
            bounds=Bounds(0.0, 1.0),
            constraints=constraints,
            options={
                "time_limit": max(self.deadline - time.monotonic(), 0.0),
                "mip_rel_gap": 0.0,
            },
        )

    def _cut_rows(self) -> LinearConstraint:
        """Return ``x_uv + x_vw + x_wu ≤ 2`` for every cut, where x_wv is 1 − x_vw."""
        first, second = self.cuts, np.roll(self.cuts, -1, axis=1)
        forward = first < second
        low, high = np.minimum(first, second), np.maximum(first, second)
        columns = low * self.n - low * (low + 1) // 2 + (high - low - 1)
        rows = np.repeat(np.arange(len(self.cuts)), 3)
        signs = np.where(forward, 1.0, -1.0)
        matrix = csr_array(
            (signs.ravel(), (rows, columns.ravel())), shape=(len(self.cuts), len(self.costs))
        )
        return LinearConstraint(matrix, -np.inf, 2.0 - (~forward).sum(axis=1))

    def _majority_choices(self) -> FloatArray:
        """Return the solution without any forbidden triangle."""
        return self._choices((self.costs < 0.0).astype(np.float64))

    def _choices(self, x: FloatArray) -> FloatArray:
        """Return the solution as a matrix with x_uv + x_vu = 1."""
        choices = np.zeros((self.n, self.n))
        choices[self.pairs] = x
        choices.T[self.pairs] = 1.0 - x
        return choices

    def _try_order(self, choices: FloatArray) -> None:
        """Take the order that a solution suggests, improved, if it is better than the best.

        The suggestion of a solution without fractions and triangles is that solution itself.
        """
        suggestion = np.argsort(-choices.sum(axis=1), kind="stable")
        order = insertion_search([int(place) for place in suggestion], self.counts)
        score = kemeny_score(order, self.counts)
        if score < self.score:
            self.best, self.score = order, score

    def _raise_bound(self, objective: float) -> None:
        """Raise the bound to that of a relaxation; with a known step, to the next possible score.

        `objective` is in `unit`, and off by the solver's tolerance. Without a step, a bound that
        meets the score to that tolerance counts as the score.
        """
        missing = self.score - (objective * self.unit + self.constant)
        if self.step:
            missing = math.floor((missing + _TOLERANCE * self.unit) / self.step) * self.step
        elif missing <= _TOLERANCE * self.unit:
            missing = 0.0
        self.bound = max(self.bound, self.score - max(missing, 0.0))


def _components(counts: FloatArray) -> list[list[int]]:
    """Return the strong components of the strict-majority graph, winners first.

    Among components that may come next, the one with the smallest row comes next.
    """
    beats = counts > counts.T
    n_components, labels = connected_components(csr_array(beats), connection="strong")
    indicator = np.eye(n_components)[labels]
    beats_component = (indicator.T @ beats @ indicator) > 0.0
    np.fill_diagonal(beats_component, False)
    members = [np.flatnonzero(labels == c).tolist() for c in range(n_components)]
    waiting_for = beats_component.sum(axis=0)
    ready = [(members[c][0], c) for c in np.flatnonzero(waiting_for == 0).tolist()]
    heapq.heapify(ready)
    ordered = []
    while ready:
        _, component = heapq.heappop(ready)
        ordered.append(members[component])
        for beaten in np.flatnonzero(beats_component[component]).tolist():
            waiting_for[beaten] -= 1
            if waiting_for[beaten] == 0:
                heapq.heappush(ready, (members[beaten][0], beaten))
    return ordered


def _triangles(choices: FloatArray, above: float) -> IntArray:
    """Return the directed triangles u → v → w → u with x_uv + x_vw + x_wu > above; u smallest."""
    found = [np.empty((0, 3), dtype=np.int64)]
    for u in range(len(choices) - 2):
        rest = slice(u + 1, None)
        sums = choices[u, rest, None] + choices[rest, rest] + choices[None, rest, u]
        np.fill_diagonal(sums, 0.0)
        v, w = np.nonzero(sums > above)
        found.append(np.stack([np.full_like(v, u), v + u + 1, w + u + 1], axis=1))
    return np.concatenate(found)


def _united(cuts: IntArray, new: IntArray) -> IntArray:
    return np.asarray(np.unique(np.concatenate([cuts, new]), axis=0))


def _common_divisor(costs: FloatArray) -> float:
    """Return the greatest common divisor of whole costs, 0 if a cost is not whole."""
    whole = np.rint(costs)
    if (whole != costs).any() or np.abs(costs).max() >= 2.0**53:
        return 0.0
    return float(np.gcd.reduce(whole.astype(np.int64)))


def _settle_draws(order: list[int], counts: FloatArray) -> None:
    """Swap adjacent items with equal majorities until the smaller row is first; same score."""
    for end in range(1, len(order)):
        place = end
        while place > 0:
            before, after = order[place - 1], order[place]
            if before < after or counts[before, after] != counts[after, before]:
                break
            order[place - 1], order[place] = after, before
            place -= 1
