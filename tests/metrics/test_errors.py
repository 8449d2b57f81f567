"""RMSE and MAE against scikit-learn, with scores clipped to the scale."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.metrics import mean_absolute_error as sklearn_mae
from sklearn.metrics import root_mean_squared_error as sklearn_rmse

from spark_rank.metrics import batch_metrics, mean_absolute_error, root_mean_squared_error

SCALE = (1.0, 5.0)
pairs = st.lists(
    st.tuples(st.floats(-3, 9), st.sampled_from([1.0, 2.0, 3.0, 4.0, 5.0])), min_size=1, max_size=30
)


@given(pairs)
def test_errors_are_those_of_scikit_learn_after_clipping(items: list[tuple[float, float]]) -> None:
    h, y = map(np.array, zip(*items, strict=True))
    for limits in (SCALE, (-math.inf, math.inf)):
        clipped = np.clip(h, *limits)
        assert_allclose(root_mean_squared_error(h, y, limits), sklearn_rmse(y, clipped), rtol=1e-12)
        assert_allclose(mean_absolute_error(h, y, limits), sklearn_mae(y, clipped), rtol=1e-12)


def test_a_single_item_has_an_error_and_none_has_none() -> None:
    assert root_mean_squared_error([2.0], [4.0]) == 2.0
    assert mean_absolute_error([9.0], [4.0], SCALE) == 1.0
    assert root_mean_squared_error([], []) is None
    assert mean_absolute_error([], []) is None


def test_huge_scores_are_clipped_before_they_are_squared() -> None:
    h, y = [1e300, -1e300], [5.0, 3.0]
    assert root_mean_squared_error(h, y, SCALE) == math.sqrt(2.0)
    # without a scale the squares are beyond the largest float, their root is not
    assert_allclose(root_mean_squared_error(h, y), 1e300, rtol=1e-12)


def test_limits_out_of_order_are_refused() -> None:
    with pytest.raises(ValueError, match="least and the greatest"):
        root_mean_squared_error([1.0], [1.0], (5.0, 1.0))
    with pytest.raises(ValueError, match="least and the greatest"):
        batch_metrics(
            [1.0], [1.0], [0, 1], on_rating_scale=[True], top=1, relevant_from=1.0, epsilon=0.0,
            levels=None, limits=(5.0, math.nan),
        )  # fmt: skip
