"""Means, intervals, published figures and claims against scipy and hand counts."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import stats

from spark_rank.experiments import EXPERIMENTS
from spark_rank.experiments.frame import Claim, Experiment, Published, Result
from spark_rank.experiments.summary import Found, compare, summarise

VALUES = {"a": [1.0, 2.0, 4.0, 3.0], "b": [2.5, 3.0, 5.5, 3.5]}


def found(values: dict[str, list[float | None]], repeats: int | None = None) -> list[Found]:
    return [
        Found(unit, Result(name, "loss", value, repeat=unit % (repeats or len(sample))))
        for name, sample in values.items()
        for unit, value in enumerate(sample)
    ]


def experiment(**changes: object) -> Experiment:
    return dataclasses.replace(EXPERIMENTS["prank_synthetic"], claims=lambda s: (), **changes)


def test_means_have_student_intervals() -> None:
    rows = {row.method: row for row in summarise(experiment(), None, found(VALUES))}
    for name, values in VALUES.items():
        low, high = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
        row = rows[name]
        assert (row.n, row.undefined) == (4, 0)
        assert (row.mean, row.sd) == pytest.approx((np.mean(values), np.std(values, ddof=1)))
        assert (row.ci_low, row.ci_high) == pytest.approx((low, high))
        assert (row.published, row.difference, row.differs) == (None, None, None)


def test_undefined_values_are_counted_and_left_out() -> None:
    (row,) = summarise(experiment(), None, found({"a": [1.0, None, 3.0]}))
    assert (row.n, row.undefined, row.mean) == (2, 1, 2.0)
    (row,) = summarise(experiment(), None, found({"a": [None]}))
    assert (row.n, row.undefined, row.mean, row.ci_low) == (0, 1, None, None)
    (row,) = summarise(experiment(), None, found({"a": [5.0]}))
    assert (row.n, row.mean, row.sd, row.ci_low) == (1, 5.0, None, None)


def test_averages_over_repeats_come_before_the_interval() -> None:
    values = {"a": [1.0, 2.0, 4.0, 3.0]}
    (row,) = summarise(experiment(average="repeat"), None, found(values, repeats=2))
    # units 0 and 2 are repeat 0, units 1 and 3 repeat 1
    assert (row.n, row.mean) == (2, 2.5)
    assert row.sd == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("value", "reach", "differs"),
    [
        (2.5, None, False),
        (50.0, 1.0, True),
        (5.2, 1.0, False),
        (5.2, None, True),
        (-9.0, 2.0, True),
    ],
)
def test_published_figures_differ_when_intervals_are_apart(
    value: float, reach: float | None, differs: bool
) -> None:
    figure = Published("a", "loss", value, reach, source="table 1")
    rows = summarise(experiment(published=lambda s: [figure]), None, found(VALUES))
    low, high = stats.t.interval(0.95, 3, 2.5, stats.sem(VALUES["a"]))
    assert (rows[0].ci_low, rows[0].ci_high) == pytest.approx((low, high))  # 0.446 to 4.554
    assert (rows[0].published, rows[0].differs, rows[0].source) == (value, differs, "table 1")
    assert rows[0].difference == pytest.approx(2.5 - value)
    assert rows[0].published_high == (None if reach is None else value + reach)
    assert rows[1].published is None


def test_a_published_figure_that_was_not_measured_stays_in_sight() -> None:
    figure = Published("c", "loss", 1.0)
    rows = summarise(experiment(published=lambda s: [figure]), None, found(VALUES))
    assert (rows[2].method, rows[2].mean, rows[2].published, rows[2].differs) == (
        "c",
        None,
        1.0,
        None,
    )


def test_claims_compare_the_same_units() -> None:
    claims = [Claim("x", "loss", "a", "b"), Claim("y", "loss", "b", "a"),
              Claim("z", "loss", "a", "nobody")]  # fmt: skip
    tried = dataclasses.replace(experiment(), claims=lambda s: claims)
    rows = compare(tried, None, found({**VALUES, "b": [2.5, None, 5.5, 3.5]}))
    differences = [1.5, 1.5, 0.5]
    low, high = stats.t.interval(0.95, 2, np.mean(differences), stats.sem(differences))
    assert rows[0].n == 3
    assert (rows[0].difference, rows[0].ci_low, rows[0].ci_high) == pytest.approx(
        (np.mean(differences), low, high)
    )
    assert rows[0].holds is None  # three units: −0.27 to 2.6
    assert low < 0 < high
    whole = compare(tried, None, found(VALUES))  # 1.5, 1, 1.5, 0.5
    assert [row.holds for row in whole] == [True, False, None]
    assert whole[2].difference is None


def test_p_values_are_corrected_for_all_statements() -> None:
    claims = [Claim("x", "loss", "a", "b"), Claim("y", "loss", "a", "c"),
              Claim("z", "loss", "a", "nobody")]  # fmt: skip
    tried = dataclasses.replace(experiment(), claims=lambda s: claims)
    rng = np.random.default_rng(0)
    values = {name: (rng.random(30) + shift).tolist()
              for name, shift in (("a", 0.0), ("b", 0.3), ("c", 0.1))}  # fmt: skip
    rows = compare(tried, None, found(values))
    expected = [
        stats.wilcoxon(np.subtract(values[name], values["a"]), method="exact").pvalue
        for name in ("b", "c")
    ]
    assert [row.wilcoxon_p for row in rows[:2]] == pytest.approx(expected)
    smaller, larger = sorted(expected)
    corrected = sorted(row.wilcoxon_p_holm or 0.0 for row in rows[:2])
    assert corrected == pytest.approx([2 * smaller, max(2 * smaller, larger)])
    assert (rows[2].wilcoxon_p, rows[2].wilcoxon_p_holm) == (None, None)


def test_a_figure_that_is_shown_again_is_compared_once() -> None:
    figures = [Published("a", "loss", 9.0), Published("b", "loss", 9.0, again=True)]
    shown = experiment(published=lambda s: figures)
    a, b = summarise(shown, None, found(VALUES))
    assert (a.published, b.published) == (9.0, 9.0)
    assert b.difference == pytest.approx(np.mean(VALUES["b"]) - 9.0)
    assert (a.differs, b.differs) == (True, None)
    (alone,) = summarise(shown, None, found({"c": [1.0, 2.0]}))[1:]
    assert alone.method == "a"
