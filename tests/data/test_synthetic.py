"""Generated ratings are shaped like Netflix's, and do not depend on batches."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from spark_rank.data.synthetic import SCHEMA, Population, generate_batches, user_ratings

POPULATION = Population(seed=5, items=1500, median_ratings=60.0, activity_spread=1.2, levels=5)


def test_a_user_depends_on_seed_and_number_alone() -> None:
    first = user_ratings(POPULATION, 17)
    list(map(lambda u: user_ratings(POPULATION, u), (3, 1)))
    for ours, again in zip(first, user_ratings(POPULATION, 17), strict=True):
        np.testing.assert_array_equal(ours, again)
    other = user_ratings(Population(6, 1500, 60.0, 1.2, 5), 17)
    assert len(other[0]) != len(first[0]) or (other[0] != first[0]).any()


def test_batches_do_not_matter() -> None:
    def made(*batches: list[int]) -> pa.Table:
        source = [pa.record_batch({"id": pa.array(users)}) for users in batches]
        return pa.Table.from_batches(generate_batches(iter(source), POPULATION), SCHEMA)

    assert made([0, 1, 2, 3]).equals(made([0], [1, 2], [3]))


def test_the_shape_is_that_of_a_rating_site() -> None:
    users = [user_ratings(POPULATION, user) for user in range(800)]
    sizes = np.array([len(items) for items, _, _ in users])
    assert 45 < np.median(sizes) < 80
    assert sizes.mean() > 1.5 * np.median(sizes), "activity has a heavy tail"
    assert sizes.max() > 10 * np.median(sizes)
    counts = np.sort(np.bincount(np.concatenate([items for items, _, _ in users]), minlength=1500))
    assert counts[-150:].sum() > 0.25 * counts.sum(), (
        "a tenth of the items has far more than its share"
    )
    assert counts[750:].sum() > 2 * counts[:750].sum()
    ratings = np.concatenate([levels for _, levels, _ in users])
    assert set(np.unique(ratings)) == {1, 2, 3, 4, 5}
    assert 3.0 < ratings.mean() < 4.2
    for items, _, times in users:
        assert len(np.unique(items)) == len(items)
        assert times.min() >= 941_000_000


def test_taste_can_be_learned() -> None:
    """Some items are better for everybody: the item mean explains part of the ratings."""
    users = [user_ratings(POPULATION, user) for user in range(800)]
    items = np.concatenate([u[0] for u in users])
    centred = np.concatenate([u[1] - u[1].mean() for u in users])
    counts = np.bincount(items, minlength=1500)
    means = np.bincount(items, centred, minlength=1500) / np.maximum(counts, 1)
    known = counts[items] > 30
    assert np.corrcoef(means[items][known], centred[known])[0, 1] > 0.3
