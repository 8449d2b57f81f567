"""Lists end at gaps: against a loop that follows the words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_rank.users.list_cut import CUTS, list_length

SCORES = st.lists(st.integers(-8, 8).map(lambda n: n / 2.0), max_size=12).map(
    lambda scores: sorted(scores, reverse=True)
)


def twin(scores: list[float], cut: str, gap: float, share: float, least: int) -> tuple[int, float]:
    gaps = {i: scores[i - 1] - scores[i] for i in range(max(least, 1), len(scores))}
    if cut == "gap":
        places = [i for i in gaps if gaps[i] >= gap]
    elif cut == "largest_gap" and gaps:
        limit = share * (scores[0] - scores[-1])
        places = [i for i in gaps if gaps[i] == max(gaps.values()) and gaps[i] > limit]
    else:
        places = []
    return (places[0], gaps[places[0]]) if places else (len(scores), 0.0)


@settings(max_examples=300, deadline=None)
@given(
    SCORES, st.sampled_from(CUTS), st.sampled_from([0.5, 1.0, 3.0]), st.sampled_from([0.0, 0.3]),
    st.integers(0, 5),
)  # fmt: skip
def test_a_list_ends_where_the_words_say(
    scores: list[float], cut: str, gap: float, share: float, least: int
) -> None:
    assert list_length(scores, cut, gap, share, least) == twin(scores, cut, gap, share, least)


def test_examples() -> None:
    scores = np.array([4.5, 4.4, 3.9, 3.8, 2.0])
    assert list_length(scores, "none", 0.1, 0.0, 1) == (5, 0.0)
    assert list_length(scores, "gap", 0.4, 0.0, 1) == (2, pytest.approx(0.5))
    assert list_length(scores, "gap", 0.4, 0.0, 3) == (4, pytest.approx(1.8))
    assert list_length(scores, "gap", 9.0, 0.0, 1) == (5, 0.0)
    assert list_length(scores, "largest_gap", 0.0, 0.5, 1) == (4, pytest.approx(1.8))
    assert list_length(scores, "largest_gap", 0.0, 0.9, 1) == (5, 0.0)


def test_a_list_of_equal_scores_is_not_cut() -> None:
    assert list_length([3.0, 3.0, 3.0], "largest_gap", 0.0, 0.0, 1) == (3, 0.0)


@pytest.mark.parametrize("cut", CUTS)
def test_lists_of_no_and_of_one_item_stay(cut: str) -> None:
    assert list_length([], cut, 0.0, 0.0, 1) == (0, 0.0)
    assert list_length([3.0], cut, 0.0, 0.0, 1) == (1, 0.0)


def test_what_is_no_list_is_refused() -> None:
    with pytest.raises(ValueError, match="descend"):
        list_length([1.0, 2.0], "gap", 0.5, 0.0, 1)
    with pytest.raises(ValueError, match="descend"):
        list_length([1.0, float("nan")], "gap", 0.5, 0.0, 1)
    with pytest.raises(ValueError, match="cut must be one of none"):
        list_length([2.0, 1.0], "end", 0.5, 0.0, 1)
