"""Greedy coverage, against the same algorithm without a heap."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_rank.features.coverage import cover


def chosen_of(rated: list[list[int]], demand: list[int], size: int) -> list[int]:
    items = np.array([i for row in rated for i in row], dtype=np.int64)
    ends = np.cumsum([0, *[len(row) for row in rated]])
    return cover(items, ends, np.array(demand, dtype=np.int64), size)


def greedy(rated: list[list[int]], demand: list[int], size: int) -> list[int]:
    """Take the first candidate of the greatest gain, again and again, without any upper bounds."""
    chosen: list[int] = []
    while len(chosen) < min(size, len(rated)):
        members = [sum(i in rated[c] for c in chosen) for i in range(len(demand))]
        gains = [
            -1 if c in chosen else sum(demand[i] * 2**20 // (members[i] + 1) for i in row)
            for c, row in enumerate(rated)
        ]
        chosen.append(int(np.argmax(gains)))
    return chosen


@given(st.data())
@settings(max_examples=150)
def test_the_heap_chooses_what_counting_anew_chooses(data: st.DataObject) -> None:
    n_items = data.draw(st.integers(1, 8))
    rows = st.lists(st.integers(0, n_items - 1), unique=True)
    rated = data.draw(st.lists(rows, min_size=1, max_size=12))
    demand = data.draw(st.lists(st.integers(0, 5), min_size=n_items, max_size=n_items))
    size = data.draw(st.integers(1, 14))
    assert chosen_of(rated, demand, size) == greedy(rated, demand, size)


def test_a_first_opinion_counts_more_than_a_second() -> None:
    rated = [[0, 1, 2], [0, 1], [3]]
    # the second reviewer would add 10/2 + 10/2, the third 6 or 11
    assert chosen_of(rated, [10, 10, 1, 6], 2) == [0, 1]
    assert chosen_of(rated, [10, 10, 1, 11], 2) == [0, 2]


def test_large_demands_do_not_overflow() -> None:
    rng = np.random.default_rng(0)
    rated = [rng.choice(50, 20, replace=False).tolist() for _ in range(40)]
    demand = [d * 250_000 for d in rng.integers(1, 100, 50).tolist()]
    assert chosen_of(rated, demand, 10) == greedy(rated, demand, 10)
