"""The door for batches beside the one for single users: the same bits, however users are cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from spark_rank.metrics import (
    BATCH_METRICS,
    auc,
    average_precision,
    batch_metrics,
    batch_metrics_and_roc,
    batch_roc,
    exact_rank_rate,
    mean_1norm_difference,
    mean_absolute_error,
    mean_squared_difference,
    ndcg,
    nearest_ranks,
    pair_cost,
    pairwise_misranking,
    precision,
    rank_loss,
    recall,
    roc_curve,
    root_mean_squared_error,
)

LEVELS = [1.0, 2.0, 3.0, 4.0, 5.0]
SETTINGS: dict[str, Any] = {"top": 3, "relevant_from": 4.0, "epsilon": 0.3, "levels": LEVELS,
                            "limits": (1.0, 5.0)}  # fmt: skip
NEEDS_RATINGS = {"msd", "m1d", "rmse", "mae", "hmp1", "hmp2", "svr1", "svr2", "rank_loss",
                 "exact_rank"}  # fmt: skip
User = tuple[list[float], list[float]]

users = st.integers(0, 25).flatmap(
    lambda m: st.tuples(
        st.lists(st.sampled_from([1.0, 2.5, 4.0]) | st.floats(0, 6), min_size=m, max_size=m),
        st.lists(st.sampled_from(LEVELS), min_size=m, max_size=m),
    )
)
batches = st.lists(users, max_size=6)


def flat(batch: list[User]) -> tuple[list[float], list[float], list[int]]:
    scores = [v for h, _ in batch for v in h]
    ratings = [v for _, y in batch for v in y]
    return scores, ratings, np.cumsum([0, *(len(y) for _, y in batch)]).tolist()


def by_scalar_functions(h: list[float], y: list[float]) -> dict[str, float | None]:
    ranks = nearest_ranks(h, LEVELS), nearest_ranks(y, LEVELS)
    top = SETTINGS["top"], SETTINGS["relevant_from"]
    return {
        "msd": mean_squared_difference(h, y),
        "m1d": mean_1norm_difference(h, y),
        "rmse": root_mean_squared_error(h, y, SETTINGS["limits"]),
        "mae": mean_absolute_error(h, y, SETTINGS["limits"]),
        "misranking": pairwise_misranking(h, y),
        "hr1": pair_cost(h, y, "hr", 1),
        "hmp1": pair_cost(h, y, "hmp", 1),
        "hmp2": pair_cost(h, y, "hmp", 2),
        "svr1": pair_cost(h, y, "svr", 1, SETTINGS["epsilon"]),
        "svr2": pair_cost(h, y, "svr", 2, SETTINGS["epsilon"]),
        "rank_loss": rank_loss(*ranks),
        "exact_rank": exact_rank_rate(*ranks),
        "auc": auc(h, np.array(y) >= 4.0),
        "ndcg": ndcg(h, y, top[0]),
        "precision": precision(h, y, *top),
        "recall": recall(h, y, *top),
        "average_precision": average_precision(h, y, *top),
    }


@given(batches)
def test_a_batch_is_its_users_bit_for_bit(batch: list[User]) -> None:
    measured = batch_metrics(*flat(batch), on_rating_scale=[True] * len(batch), **SETTINGS)
    assert tuple(measured) == BATCH_METRICS
    for user, (h, y) in enumerate(batch):
        for name, value in by_scalar_functions(h, y).items():
            got = measured[name][user]
            assert np.isnan(got) if value is None else got == value, name


@given(batches, st.integers(0, 6))
def test_the_cut_into_batches_changes_no_bit(batch: list[User], cut: int) -> None:
    scores, ratings, ends = flat(batch)
    scales = np.arange(len(batch)) % 2 == 0
    whole = batch_metrics(scores, ratings, ends, on_rating_scale=scales, **SETTINGS)
    curves = batch_roc(scores, ratings, ends, relevant_from=4.0, grid=[0.0, 0.3, 1.0])
    both, same_curves = batch_metrics_and_roc(
        scores, ratings, ends, on_rating_scale=scales, grid=[0.0, 0.3, 1.0], **SETTINGS
    )
    np.testing.assert_array_equal(same_curves, curves)
    for name, values in whole.items():
        np.testing.assert_array_equal(both[name], values)
    for part in (slice(0, cut), slice(cut, None)):
        # each part on its own, and as a window on the arrays of all
        own = batch_metrics(*flat(batch[part]), on_rating_scale=scales[part], **SETTINGS)
        own_ends = ends[part.start : (cut + 1 if part.stop is not None else None)]
        for name in BATCH_METRICS:
            assert_array_equal(own[name], whole[name][part])
        if own_ends:
            window = batch_metrics(
                scores, ratings, own_ends, on_rating_scale=scales[part], **SETTINGS
            )
            for name in BATCH_METRICS:
                assert_array_equal(window[name], whole[name][part])
        rows = batch_roc(*flat(batch[part]), relevant_from=4.0, grid=[0.0, 0.3, 1.0])
        assert_array_equal(rows, curves[part])


def test_off_the_rating_scale_only_the_order_counts() -> None:
    h, y = [1.0, 2.0, 5.0, 4.0], [1.0, 2.0, 3.0, 4.0]
    measured = batch_metrics(h * 2, y * 2, [0, 4, 8], on_rating_scale=[False, True], **SETTINGS)
    for name, values in measured.items():
        assert np.isnan(values[0]) == (name in NEEDS_RATINGS), name
        assert not np.isnan(values[1]), name
        if name not in NEEDS_RATINGS:
            assert values[0] == values[1]


def test_without_levels_there_are_no_ranks() -> None:
    settings = SETTINGS | {"levels": None}
    measured = batch_metrics([1.0, 2.0], [1.0, 5.0], [0, 2], on_rating_scale=[True], **settings)
    undefined = {name for name, values in measured.items() if np.isnan(values).all()}
    assert undefined == {"rank_loss", "exact_rank"}


def test_users_without_items_and_batches_without_users() -> None:
    empty = batch_metrics([], [], [0, 0], on_rating_scale=[True], **SETTINGS)
    assert all(np.isnan(values).tolist() == [True] for values in empty.values())
    nobody = batch_metrics([], [], [0], on_rating_scale=[], **SETTINGS)
    assert all(len(values) == 0 for values in nobody.values())
    assert batch_roc([], [], [0], relevant_from=4.0, grid=[0.5]).shape == (0, 1)


@given(users, st.lists(st.floats(0, 1) | st.sampled_from([0.0, 0.5, 1.0]), max_size=8))
def test_the_roc_grid_lies_on_the_curve(user: User, grid: list[float]) -> None:
    h, y = user
    rates = sorted(grid)
    (row,) = batch_roc(h, y, [0, len(h)], relevant_from=4.0, grid=rates)
    assert row.dtype == np.float32
    curve = roc_curve(h, np.array(y) >= 4.0)
    if curve is None:
        assert np.isnan(row).all()
        return
    false, true, _ = curve
    for rate, got in zip(rates, row, strict=True):
        # the highest point up to the rate, then straight to the next one
        last = max(t for t in range(len(false)) if false[t] <= rate)
        expected = true[last]
        if last + 1 < len(false):
            share = (rate - false[last]) / (false[last + 1] - false[last])
            expected += share * (true[last + 1] - true[last])
        assert_allclose(got, expected, rtol=1e-6, atol=1e-6)
    assert (np.diff(row) >= -1e-6).all()


def test_read_only_views_are_welcome() -> None:
    scores, ratings = np.array([1.0, 2.0]), np.array([1.0, 5.0])
    for vector in (scores, ratings):
        vector.setflags(write=False)
    measured = batch_metrics(scores, ratings, [0, 2], on_rating_scale=[True], **SETTINGS)
    assert measured["misranking"].tolist() == [0.0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": [1.0]}, "one length"),
        ({"scores": [1.0, 2.0, np.nan]}, "user 1 of the batch"),
        ({"ratings": [np.inf, 2.0, 3.0]}, "user 0 of the batch"),
        ({"ends": []}, "ends must be"),
        ({"ends": [0, 3, 2]}, "ends must be"),
        ({"ends": [0, 2, 4]}, "between 0 and 3"),
        ({"ends": [-1, 2, 3]}, "between 0 and 3"),
    ],
)
def test_wrong_batches_are_refused(change: dict[str, Any], message: str) -> None:
    good = {"scores": [1.0, 2.0, 3.0], "ratings": [1.0, 2.0, 3.0], "ends": [0, 2, 3]}
    with pytest.raises(ValueError, match=message):
        batch_metrics(**(good | change), on_rating_scale=[True, True], **SETTINGS)
    with pytest.raises(ValueError, match=message):
        batch_roc(**(good | change), relevant_from=4.0, grid=[0.0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"top": 0}, "top must be"),
        ({"epsilon": -1.0}, "epsilon must be"),
        ({"relevant_from": np.nan}, "relevant_from must be"),
        ({"levels": [2.0, 1.0]}, "levels must ascend"),
        ({"on_rating_scale": [True, True]}, "one entry per user"),
    ],
)
def test_wrong_settings_are_refused(change: dict[str, Any], message: str) -> None:
    settings = {"on_rating_scale": [True]} | SETTINGS | change
    with pytest.raises(ValueError, match=message):
        batch_metrics([1.0], [1.0], [0, 1], **settings)


@pytest.mark.parametrize("grid", [[1.5], [-0.1], [0.5, 0.2], [np.nan], [[0.5]]])
def test_wrong_grids_are_refused(grid: list[Any]) -> None:
    with pytest.raises(ValueError, match="grid must"):
        batch_roc([1.0], [1.0], [0, 1], relevant_from=4.0, grid=grid)
    with pytest.raises(ValueError, match="relevant_from must be"):
        batch_roc([1.0], [1.0], [0, 1], relevant_from=np.nan, grid=[0.5])


def test_cuts_decide_the_ranks_of_a_cut_scale() -> None:
    scores = np.array([-6.0, -5.0, 7.0, 8.0, 9.0])
    ratings = np.array([-5.0, -5.0, 8.0, 8.0, -9.0])
    settings = SETTINGS | {"levels": [-7.5, 1.5, 9.0], "cuts": [-5.0, 8.0]}
    found = batch_metrics(scores, ratings, [0, 5], on_rating_scale=[True], **settings)
    # ranks 1 2 2 3 3 against 2 2 3 3 1: a cut belongs to the level above
    assert found["rank_loss"][0] == (1 + 0 + 1 + 0 + 2) / 5
    assert found["exact_rank"][0] == 2 / 5
