"""How numbers spread over test users: quantiles by NumPy, and what the picture says."""

from __future__ import annotations

import numpy as np
from pyspark.sql import SparkSession

from spark_rank.report.spreads import SHARES, Spread, spread_plot
from spark_rank.stages.experiment_report import user_spreads

SCHEMA = "part string, metric string, method string, x double, target string, value double"


def test_quantiles_are_those_of_the_users_means(spark: SparkSession) -> None:
    rng = np.random.default_rng(3)
    values = {(f"u{user}", method): rng.normal(size=1 + user % 3)
              for user in range(23) for method in ("a", "b")}  # fmt: skip
    rows = [("p", "loss", method, None, user, float(value))
            for (user, method), found in values.items() for value in found]  # fmt: skip
    rows += [("p", "loss", "a", None, None, 99.0), ("p", "loss", "a", 1.0, "u1", 99.0),
             ("p", "loss", "a", None, "u50", None)]  # fmt: skip
    rows += [("few", "loss", "a", None, f"u{user}", 1.0) for user in range(9)]
    summary = [
        {"part": part, "metric": "loss", "method": method, "x": x}
        for part, method, x in (("few", "a", None), ("p", "b", None), ("p", "b", 2.0),
                                ("p", "a", None), ("p", "none", None))
    ]  # fmt: skip
    found = user_spreads(spark.createDataFrame(rows, SCHEMA), summary)
    assert [(one.part, one.method, one.users) for one in found] == [("p", "b", 23), ("p", "a", 23)]
    for one in found:
        means = [own.mean() for (_, method), own in values.items() if method == one.method]
        np.testing.assert_allclose(one.quantiles, np.quantile(means, SHARES), rtol=1e-12)
        np.testing.assert_allclose(one.mean, np.mean(means), rtol=1e-12)


def test_the_picture_is_told_in_words() -> None:
    def spread(part: str, method: str, median: float) -> Spread:
        return Spread(part, "MSD", method, 30, median + 0.1, (0.0, 0.1, median, 2.0, 3.0))

    one = spread_plot("MSD", [spread("all", "$a_b", 0.5), spread("all", "<other>", 0.7)])
    assert one.alt == "MSD by test user; medians: $a_b 0.5, <other> 0.7."
    assert "&lt;other&gt;" in one.svg
    several = [spread("a", "one", 0.5), spread("a", "two", 0.25), spread("b", "one", 0.7)]
    words = "MSD by test user; medians: a: one 0.5, two 0.25; b: one 0.7."
    assert spread_plot("MSD", several).alt == words


def test_parts_on_very_different_scales_share_a_logarithmic_axis() -> None:
    near = Spread("near", "MSD", "m", 30, 1.0, (0.5, 0.7, 0.9, 1.5, 3.0))
    far = Spread("far", "MSD", "m", 30, 40.0, (7.0, 20.0, 37.0, 60.0, 200.0))
    ticks = [spread_plot("MSD", spreads).svg for spreads in ([near, far], [near, near])]
    # 1, 10 and 100 are written at once on a logarithmic axis alone
    assert [all(f">{tick}<" in svg for tick in (1, 10, 100)) for svg in ticks] == [True, False]
