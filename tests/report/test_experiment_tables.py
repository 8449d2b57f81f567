"""Tables of experiments: what stands beside what was published, and how it is marked."""

from __future__ import annotations

from typing import Any

import pytest

from spark_rank.experiments import EXPERIMENTS
from spark_rank.experiments.rating_profile import rating_profile
from spark_rank.records.results import ExperimentFacts, Timing
from spark_rank.report.experiment_tables import (
    chosen_table,
    claims_table,
    figures_table,
    single_metrics,
    timing_parts,
)
from spark_rank.report.experiments import Outcome, experiment_page, reproduction_page
from spark_rank.report.page import Cell, Plot, Table
from tests.experiments.studies import generated_ratings

EXPERIMENT = EXPERIMENTS["mprank_table1"]


def summary_row(method: str, part: str, mean: float, **other: Any) -> dict[str, Any]:
    row = dict.fromkeys(
        ("x", "published", "published_low", "published_high", "difference", "differs", "source")
    )
    return row | {
        "method": method, "part": part, "metric": "MSD", "mean": mean, "sd": 0.25, "n": 10,
        "undefined": 0, "ci_low": mean - 0.1, "ci_high": mean + 0.1, **other,
    }  # fmt: skip


SUMMARY = [
    summary_row("MPRank", "a", 2.0, published=2.5, published_low=2.4, published_high=2.6,
                difference=-0.5, differs=True),
    summary_row("MPRank", "b", 2.0, published=1.5, difference=0.5, differs=True),
    summary_row("SVRank", "a", 2.0, published=1.95, difference=0.05, differs=False),
]  # fmt: skip
CLAIM = {"statement": "<less>", "part": "a", "metric": "MSD", "difference": -0.5, "ci_low": -0.7,
         "ci_high": -0.3, "n": 10, "holds": False}  # fmt: skip
TIMINGS = [Timing("t", m, x, 0.001 * x) for m in "ab" for x in (10.0, 2000.0)]


def test_figures_stand_by_part_beside_the_published_ones() -> None:
    table = figures_table(EXPERIMENT, SUMMARY, "MSD")
    headings = [row[0].text for row in table.rows if len(row) == 1]
    assert headings == ["a", "b"]
    rows = [[cell.text for cell in row] for row in table.rows if len(row) > 1]
    assert rows == [
        ["MPRank", "2 ± 0.25", "2.5 ± 0.1", "−0.5", "1.9 to 2.1", "10"],
        ["SVRank", "2 ± 0.25", "1.95", "+0.05", "1.9 to 2.1", "10"],
        ["MPRank", "2 ± 0.25", "1.5", "+0.5", "1.9 to 2.1", "10"],
    ]
    assert table.header[3] == "difference"
    marks = [(row[3].best, row[3].worse) for row in table.rows if len(row) > 1]
    assert marks == [(True, False), (True, False), (False, True)]


def test_a_figure_shown_again_stands_there_without_a_mark() -> None:
    again = summary_row("b", "a", 2.0, published=1.5, published_low=1.4, published_high=1.6,
                        difference=0.5, differs=None)  # fmt: skip
    (row,) = figures_table(EXPERIMENT, [again], "MSD").rows
    assert [cell.text for cell in row] == ["b", "2 ± 0.25", "1.5 ± 0.1", "+0.5", "1.9 to 2.1", "10"]
    assert [row[3].best, row[3].worse] == [False, False]


@pytest.mark.parametrize(
    ("difference", "differs", "best", "worse"),
    [(-0.1, True, False, True), (0.1, True, False, True), (-0.1, False, True, False),
     (0.0, None, True, False)],
)  # fmt: skip
def test_an_exact_figure_is_missed_on_either_side(
    difference: float, differs: bool | None, best: bool, worse: bool
) -> None:
    (metric, *_) = EXPERIMENTS["preference"].exact
    row = summary_row("random, 5 items", "all", 1.0 + difference, metric=metric, published=1.0,
                      difference=difference, differs=differs)  # fmt: skip
    table = figures_table(EXPERIMENTS["preference"], [row], metric)
    assert (table.rows[0][3].best, table.rows[0][3].worse) == (best, worse)
    assert "on either side" in table.caption


def test_equalities_of_the_theory_are_exact_and_bounds_are_not() -> None:
    preference = EXPERIMENTS["preference"]
    named = {figure.metric for figure in preference.published(preference.settings())}
    assert preference.exact < named
    for theorem in named:
        if "<=" in theorem or ">=" in theorem or "~" in theorem:
            assert theorem not in preference.exact
        else:
            assert theorem in preference.exact


def test_undecided_statements_are_counted() -> None:
    claims = [{**CLAIM, "holds": True}, {**CLAIM, "holds": None}]
    record = {"settings": {"name": EXPERIMENT.name, "settings": {}}, "seed": 0, "seconds": 1.5,
              "spark": {"parallelism": "2"}, "versions": {}, "started": "now"}  # fmt: skip
    facts = ExperimentFacts(units=7, data={}, missing=())
    html = reproduction_page({"one": Outcome(record, facts, [], SUMMARY, claims)})
    assert "<td>1 of 2, 1 undecided</td>" in html
    assert "1 of 2 statements hold, 1 undecided" in html


def test_points_of_curves_are_in_no_table() -> None:
    online = EXPERIMENTS["mprank_online"]
    rows = [{"metric": name, "x": None} for name in ("MSD", "excess cost", "MSD")]
    assert single_metrics(online, [*rows, {"metric": "other", "x": 1.0}]) == ["MSD"]


def test_claims_say_whether_they_hold() -> None:
    claims = [CLAIM, {**CLAIM, "holds": None}, {**CLAIM, "holds": True}]
    table = claims_table(claims)
    assert [row[3] for row in table.rows] == [
        Cell("no", worse=True), Cell("undecided"), Cell("yes", best=True)
    ]  # fmt: skip


def test_choices_are_shown_by_part_or_not() -> None:
    by_part = chosen_table({"p": {"MPRank": {"C": 10.0, "gamma": 1e-5}}})
    texts = [[cell.text for cell in row] for row in by_part.rows]
    assert texts == [["p"], ["MPRank", "C 10, gamma 1e-05"]]
    alone = chosen_table({"ALS": {"place": 1, "setting": "rank 50"}})
    assert [cell.text for cell in alone.rows[0]] == ["ALS", "rank 50"]


def test_times_are_a_table_and_a_plot() -> None:
    parts = timing_parts(TIMINGS)
    table = next(part for part in parts if isinstance(part, Table))
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["10", "10 ms", "10 ms"], ["2,000", "2.00 s", "2.00 s"]
    ]  # fmt: skip
    assert any(isinstance(part, Plot) for part in parts)
    assert timing_parts([]) == []


@pytest.mark.parametrize("several", [False, True])
def test_the_page_has_all_of_it(several: bool) -> None:
    profile = rating_profile(generated_ratings(4, 6), implicit=3)
    facts = ExperimentFacts(
        units=7,
        data={"MovieLens": "MovieLens-1M"},
        missing=("Jester: x",),
        profiles=(profile,),
        chosen={"a": {"MPRank": {"C": 10.0}}},
        timings=tuple(TIMINGS),
        seconds_by_step={"units of work": 0.6},
    )
    record = {"settings": {"name": EXPERIMENT.name, "settings": {}}, "seed": 0,
              "seconds": 1.5, "spark": {"parallelism": "2"}, "versions": {"numpy": "9.8.7"},
              "started": "now"}  # fmt: skip
    outcome = Outcome(record, facts, [], SUMMARY, [CLAIM])
    html = reproduction_page({"one": outcome}) if several else experiment_page("one", outcome)
    for words in (
        "2 of 3 published figures", "0 of 1 statements", "Missing data: Jester", "&lt;less&gt;",
        "Settings chosen on other users", "Deviations from the publication", "<h3>MSD</h3>",
        'scope="rowgroup"', "marked as worse", "seed", "numpy: 9.8.7", "units of work", "40 %",
        "Dropped: 3 rows of generated without a rating", "1, 2, 3, 4, 5",
    ):  # fmt: skip
        assert words in html
    assert ('<nav aria-label="Contents">' in html) == several
