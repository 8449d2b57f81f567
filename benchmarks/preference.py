"""Calls and time of the rankings by preference, and time and proof of the aggregations.

On one thread; sizes and seeds are fixed, times are of this machine.
Run: ``python benchmarks/preference.py``.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import statistics
import time
from collections.abc import Callable

import numpy as np

from spark_rank.preference import (
    Counted,
    Preference,
    aggregate_majorities,
    count_majorities,
    degree_rank,
    from_scores,
    quicksort_rank,
)
from spark_rank.preference.theorems import expected_calls
from spark_rank.preference.tournaments import random_tournament

TOP = 20
RUNS = 5
TIME_LIMIT = 60.0


def timed(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def measure(n: int, rank: Callable[[Preference, np.random.Generator], object]) -> tuple[str, float]:
    """Return mean calls and median seconds over some runs on random scores."""
    rng = np.random.default_rng(n)
    calls, seconds = [], []
    for _ in range(RUNS):
        prefer = Counted(from_scores(rng.normal(size=n)))
        seconds.append(timed(lambda prefer=prefer: rank(prefer, rng)))
        calls.append(prefer.calls)
    return f"{statistics.mean(calls):14,.0f} calls", statistics.median(seconds)


def rankings() -> None:
    print(f"rankings of n items by scores, mean of {RUNS} runs")
    for n in (100, 1_000, 10_000, 100_000):
        calls, seconds = measure(n, lambda prefer, rng, n=n: quicksort_rank(range(n), prefer, rng))
        expected = expected_calls(n, n)
        print(f"  n = {n:<7} quicksort {calls} {seconds * 1e3:10.1f} ms (expected {expected:,.0f})")
        calls, seconds = measure(
            n, lambda prefer, rng, n=n: quicksort_rank(range(n), prefer, rng, top=TOP)
        )
        expected = expected_calls(n, TOP)
        print(
            f"  n = {n:<7} top {TOP}    {calls} {seconds * 1e3:10.1f} ms (expected {expected:,.0f})"
        )
        if n <= 10_000:
            calls, seconds = measure(n, lambda prefer, _, n=n: degree_rank(range(n), prefer))
            print(f"  n = {n:<7} degree    {calls} {seconds * 1e3:10.1f} ms")


def electorate(n: int, n_voters: int) -> np.ndarray:
    """Return the counts of voters whose rankings are all random: the least agreement there is."""
    rng = np.random.default_rng(n + n_voters)
    return count_majorities([rng.permutation(n).tolist() for _ in range(n_voters)], range(n))[0]


def heuristics() -> None:
    print("aggregation of 40 random voters: seconds, relative gap to the sum of minima")
    for n in (30, 100, 300, 1_000):
        counts = electorate(n, 40)
        for method in ("borda", "copeland", "quicksort", "local_search"):
            aggregate_majorities(counts[:3, :3], method)  # compiles
            started = time.perf_counter()
            result = aggregate_majorities(counts, method)
            seconds = time.perf_counter() - started
            print(f"  n = {n:<5} {method:<13} {seconds:8.3f} s  gap {result.gap:.4f}")


def exact() -> None:
    print(f"exact order, at most {TIME_LIMIT:.0f} s each")
    problems = [(f"{n} items, 40 random voters", electorate(n, 40)) for n in (30, 60, 80)]
    for n, seed in ((15, 0), (20, 0), (25, 0), (30, 0), (30, 1), (30, 2), (30, 3)):
        tournament = random_tournament(n, np.random.default_rng(seed))
        problems.append((f"{n} items, fair coins, seed {seed}", tournament))
    for name, counts in problems:
        started = time.perf_counter()
        result = aggregate_majorities(counts, "exact", time_limit=TIME_LIMIT)
        seconds = time.perf_counter() - started
        proof = "optimal" if result.optimal else f"gap {result.gap:.4f}"
        print(f"  {name:<32} {seconds:7.2f} s  score {result.score:8.0f}  {proof}")


def main() -> None:
    rankings()
    heuristics()
    exact()


if __name__ == "__main__":
    main()
