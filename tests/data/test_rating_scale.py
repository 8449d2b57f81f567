"""The rating scale: known properties are kept, the others are found in the ratings."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_rank.config import InputConfig
from spark_rank.data.rating_scale import find_scale, known_scale

STARS = [1.0, 2.0, 3.0, 4.0, 5.0]
FIFTHS = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
TEN = [float(i) for i in range(1, 11)]
MANY = [i / 8 for i in range(-50, 51)]


@pytest.mark.parametrize(
    ("name", "settings", "ratings", "levels", "ends"),
    [
        ("csv", {}, [2.0, 5.0], [2.0, 5.0], (2.0, 5.0)),
        ("csv", {"levels": STARS[::-1]}, [2.0, 5.0], STARS, (1.0, 5.0)),
        # bounds are ends, but say nothing of levels
        ("csv", {"rating_min": 1.0, "rating_max": 5.0}, [2.0, 3.0], [2.0, 3.0], (1.0, 5.0)),
        ("csv", {"rating_min": -10.0}, MANY, [], (-10.0, 6.25)),
        ("netflix", {}, [3.0, 4.0], STARS, (1.0, 5.0)),
        ("netflix", {"rating_max": 3.0}, [1.0, 3.0], [1.0, 3.0], (1.0, 3.0)),
        ("eachmovie", {}, [0.2], FIFTHS, (0.0, 1.0)),
        ("book-crossing", {}, [7.0], TEN, (1.0, 10.0)),
        ("book-crossing", {"keep_implicit": True}, [7.0], [0.0, *TEN], (0.0, 10.0)),
        # MovieLens had whole stars first, half ones later
        ("movielens-dat", {}, [2.0, 4.0], STARS, (1.0, 5.0)),
        ("movielens-csv", {}, [2.5, 4.0], [i / 2 for i in range(1, 11)], (0.5, 5.0)),
        # a continuous scale is one, however few the ratings
        ("jester", {}, [-7.82, 8.79], [], (-10.0, 10.0)),
        ("jester", {"rating_max": 9.0}, [-7.82, 8.79], [], (-7.82, 9.0)),
        ("jester", {"cuts": [0.0]}, [-7.5, 8.5], [-5.0, 5.0], (-10.0, 10.0)),
    ],
)  # fmt: skip
def test_what_is_known_of_the_scale_holds(
    spark: SparkSession, name: str, settings: dict[str, Any], ratings: list[float],
    levels: list[float], ends: tuple[float, float],
) -> None:  # fmt: skip
    config = InputConfig(format=name, **settings)  # type: ignore[arg-type]
    given = spark.createDataFrame([(rating,) for rating in ratings], "rating float")
    found, scale = find_scale(given, config.cuts, known_scale(config))
    assert [level[0] for level in found] == list(range(1, len(levels) + 1))
    assert [level[1] for level in found] == pytest.approx(levels)
    assert (scale.low, scale.high) == pytest.approx(ends)
    assert scale.levels == len(levels)
    assert scale.kind == ("cut" if config.cuts else "levels" if levels else "continuous")
    assert sum(level[3] for level in found) == (len(ratings) if levels else 0)
    if not config.cuts:
        assert {level[1] for level in found if level[3]} <= {row[0] for row in given.collect()}
