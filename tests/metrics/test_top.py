"""The metrics of the top beside their definitions, and beside scikit-learn without ties."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.metrics import average_precision_score, ndcg_score

from spark_rank.metrics import average_precision, ndcg, precision, recall

ratings = st.integers(0, 5).map(float)
vectors = st.integers(1, 30).flatmap(
    lambda m: st.tuples(
        st.lists(st.sampled_from([-1.0, 0.0, 0.5]) | st.floats(-3, 3), min_size=m, max_size=m),
        st.lists(ratings, min_size=m, max_size=m),
    )
)
tops = st.integers(1, 35)
ranks_of_relevance = st.sampled_from([1.0, 3.0, 4.5, 6.0])
RATES = (precision, recall, average_precision)


def in_order(h: list[float], y: list[float]) -> list[float]:
    return [y[i] for i in sorted(range(len(h)), key=lambda i: (-h[i], i))]


def gain(ordered: list[float], n: int) -> float:
    return sum((2**v - 1) / math.log2(place + 1) for place, v in enumerate(ordered[:n], 1))


def twin_average_precision(ordered: list[float], n: int, threshold: float) -> float:
    relevant = [v >= threshold for v in ordered]
    shares = [sum(relevant[: k + 1]) / (k + 1) for k in range(min(n, len(ordered))) if relevant[k]]
    return sum(shares) / min(n, sum(relevant))


@given(vectors, tops)
def test_ndcg_is_its_definition(pair: tuple[list[float], list[float]], n: int) -> None:
    h, y = pair
    ideal = gain(sorted(y, reverse=True), n)
    got = ndcg(h, y, n)
    if ideal == 0:
        assert got is None
    else:
        assert_allclose(got, gain(in_order(h, y), n) / ideal, rtol=1e-12)
        assert 0.0 <= got <= 1.0 + 1e-12  # type: ignore[operator]
        assert_allclose(ndcg(y, y, n), 1.0)


@given(vectors, tops, ranks_of_relevance)
def test_rates_are_their_definitions(
    pair: tuple[list[float], list[float]], n: int, threshold: float
) -> None:
    h, y = pair
    ordered = in_order(h, y)
    relevant = sum(v >= threshold for v in y)
    if relevant == 0:
        assert [rate(h, y, n, threshold) for rate in RATES] == [None] * 3
        return
    hits = sum(v >= threshold for v in ordered[:n])
    assert precision(h, y, n, threshold) == hits / min(n, len(y))
    assert recall(h, y, n, threshold) == hits / relevant
    expected = twin_average_precision(ordered, n, threshold)
    assert_allclose(average_precision(h, y, n, threshold), expected, rtol=1e-12)
    assert_allclose(average_precision(y, y, n, threshold), 1.0)


def test_scikit_learn_agrees_without_ties() -> None:
    rng = np.random.default_rng(3)
    for m in (2, 7, 40):
        h, y = rng.normal(size=m), rng.integers(0, 6, m).astype(float)
        y[0] = 5.0
        for n in (1, 3, m):
            # its gain is the relevance itself
            expected = ndcg_score([2**y - 1], [h], k=n)
            assert_allclose(ndcg(h, y, n), expected, rtol=1e-12)
        # over the whole list, as it knows no cut
        expected = average_precision_score(y >= 4, h)
        assert_allclose(average_precision(h, y, m, 4.0), expected, rtol=1e-12)


@given(vectors, tops, st.randoms())
def test_with_ids_the_order_of_the_rows_means_nothing(
    pair: tuple[list[float], list[float]], n: int, random: Random
) -> None:
    h, y = pair
    places = list(range(len(y)))
    random.shuffle(places)
    shuffled = [h[i] for i in places], [y[i] for i in places]
    assert ndcg(*shuffled, n, items=places) == ndcg(h, y, n)
    for rate in RATES:
        assert rate(*shuffled, n, 3.0, items=places) == rate(h, y, n, 3.0)


@given(vectors, tops)
def test_only_the_order_of_scores_counts(pair: tuple[list[float], list[float]], n: int) -> None:
    h, y = pair
    doubled = [2.0 * v for v in h]
    assert ndcg(doubled, y, n) == ndcg(h, y, n)
    for rate in RATES:
        assert rate(doubled, y, n, 3.0) == rate(h, y, n, 3.0)


def test_ties_go_to_the_lower_id() -> None:
    assert precision([1.0, 1.0], [5.0, 1.0], 1, 4.0) == 1.0
    assert precision([1.0, 1.0], [5.0, 1.0], 1, 4.0, items=[9, 2]) == 0.0


def test_where_ndcg_is_undefined() -> None:
    assert ndcg([], [], 5) is None
    assert ndcg([1.0, 2.0], [0.0, 0.0], 5) is None
    assert ndcg([1.0, 2.0], [-1.0, 3.0], 1) is None, "a negative gain"
    assert ndcg([1.0, 2.0], [1.0, 2000.0], 2) is None, "2^y overflows"
    assert ndcg([1.0], [4.0], 5) == 1.0


@pytest.mark.parametrize("metric", [ndcg, *(partial(r, relevant_from=4.0) for r in RATES)])
def test_wrong_input_is_refused(metric: Callable[..., object]) -> None:
    assert metric([], [], 1) is None
    with pytest.raises(ValueError, match="n must be at least 1"):
        metric([1.0], [1.0], 0)
    with pytest.raises(ValueError, match="one length"):
        metric([1.0], [1.0, 2.0], 1)
    with pytest.raises(ValueError, match="one length"):
        metric([[1.0]], [[1.0]], 1)
    with pytest.raises(ValueError, match="finite"):
        metric([1.0, 2.0], [1.0, np.inf], 1)
