"""Training metrics of a batch: the same bits as those of one user, however users are cut."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from spark_rank.metrics import (
    TRAINING_METRICS,
    batch_training_metrics,
    margin_loss,
    mean_1norm_difference,
    mean_squared_difference,
    pairwise_misranking,
)

User = tuple[list[float], list[float], bool]
users = st.integers(0, 20).flatmap(
    lambda m: st.tuples(
        st.lists(st.sampled_from([1.0, 2.5, 4.0]) | st.floats(0, 6), min_size=m, max_size=m),
        st.lists(st.sampled_from([1.0, 2.0, 5.0]), min_size=m, max_size=m),
        st.booleans(),
    )
)


def measured(batch: list[User], rho: float) -> dict[str, np.ndarray]:
    ends = np.cumsum([0, *(len(y) for _, y, _ in batch)])
    return batch_training_metrics(
        [v for h, _, _ in batch for v in h], [v for _, y, _ in batch for v in y], ends,
        on_rating_scale=[scale for _, _, scale in batch],
        with_margin=[len(y) % 3 > 0 for _, y, _ in batch], rho=rho,
    )  # fmt: skip


@given(st.lists(users, max_size=6), st.sampled_from([0.1, 1.0, 3.0]))
def test_a_batch_is_its_users(batch: list[User], rho: float) -> None:
    found = measured(batch, rho)
    assert tuple(found) == TRAINING_METRICS
    expected = [
        (
            mean_squared_difference(h, y) if scale else None,
            mean_1norm_difference(h, y) if scale else None,
            pairwise_misranking(h, y),
            margin_loss(h, y, rho) if len(y) % 3 > 0 else None,
        )
        for h, y, scale in batch
    ]
    for position, name in enumerate(TRAINING_METRICS):
        values = [np.nan if row[position] is None else row[position] for row in expected]
        assert_array_equal(found[name], np.array(values, dtype=float))


@pytest.mark.parametrize(
    ("score", "flags", "rho", "named"),
    [
        (1.0, [True], 0.0, "rho"),
        (1.0, [], 1.0, "one entry per user"),
        (np.nan, [True], 1.0, "user 0 .* has others"),
    ],
)
def test_bad_arguments_are_refused(score: float, flags: list[bool], rho: float, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        batch_training_metrics(
            [score], [1.0], [0, 1], on_rating_scale=flags, with_margin=flags, rho=rho
        )
