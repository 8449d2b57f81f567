"""Calibration counted in Spark against a loop over the models."""

from __future__ import annotations

import numpy as np
import pytest

from spark_rank.stages.calibration import calibration_points
from spark_rank.store.run import Run
from spark_rank.tables.contracts import MODELS


def test_bins_hold_the_means_of_all_held_out_ratings(finished: Run) -> None:
    pairs: dict[str, list[tuple[float, float]]] = {}
    for row in finished.read(MODELS).collect():
        for score, rating in zip(row["test_scores"] or [], row["test_ratings"], strict=False):
            pairs.setdefault(row["learner"], []).append((score, rating))
    ratings = [rating for own in pairs.values() for _, rating in own]
    low, high = min(ratings), max(ratings)
    expected = {}
    for learner, own in pairs.items():
        scores, true = np.array(own).T
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
