"""Calibration counted in Spark against a loop over the models."""

from __future__ import annotations

import numpy as np
import pytest

from spark_rank.stages.calibration import calibration_points
from spark_rank.store.run import Run
from spark_rank.tables.contracts import RATINGS
from tests.predicted import predicted


def test_bins_hold_the_means_of_all_held_out_ratings(finished: Run) -> None:
    pairs: dict[str, list[tuple[float, float]]] = {}
    for (_, learner), own in predicted(finished).items():
        for score, rating in zip(own.scores, own.ratings, strict=True):
            assert score is not None
            pairs.setdefault(learner, []).append((score, rating))
    ratings = [row["rating"] for row in finished.read(RATINGS).collect()]
    low, high = min(ratings), max(ratings)
    expected = {}
    for learner, both in pairs.items():
        scores, true = np.array(both).T
        bins = np.clip(np.floor((scores - low) / ((high - low) / 20)), 0, 19)
        for place in np.unique(bins):
            inside = bins == place
            means = scores[inside].mean(), true[inside].mean()
            expected[learner, int(inside.sum()), round(float(means[0]), 4)] = means[1]
    found = calibration_points(finished)
    assert {p.learner for p in found} == {"constant", "item_offset", "linear", "rbf"}
    assert len(found) == len(expected)
    for point in found:
        key = point.learner, point.ratings, round(point.predicted, 4)
        assert point.rating == pytest.approx(expected[key], abs=1e-5)
