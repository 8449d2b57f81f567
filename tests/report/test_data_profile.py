"""The data section says what the records say."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from spark_rank.records.data import (
    DataProfile,
    FilterFacts,
    IngestFacts,
    PrepareFacts,
    RatingBin,
    RatingScale,
)
from spark_rank.report.data_profile import data_section
from spark_rank.report.page import Plot, Table, render

KEPT = 1000
INGEST = IngestFacts(
    rows_in=1010,
    quarantined_by_reason={"unreadable_rating": 7},
    dropped_by_reason={"implicit": 3},
    rating_scale=RatingScale("levels", 1.0, 4.5, 2),
    read_as="read as csv",
)
PROFILE = DataProfile(
    ratings=900,
    users=45,
    items=40,
    density=0.5,
    histogram=(RatingBin(rating=1.0, ratings=300), RatingBin(rating=4.5, ratings=600)),
    user_activity=((1, 5), (2, 30), (3, 0), (6, 10)),
    item_popularity=((10, 40),),
    first_time="1999-11-11",
    last_time="2005-12-31",
    without_time=12,
)
STEP = FilterFacts(
    filter="user_min: 2", round=1, ratings=900, ratings_dropped=100, users=45, users_dropped=5,
    items=40, items_dropped=0,
)  # fmt: skip


def prepared(profile: DataProfile = PROFILE, **more: Any) -> PrepareFacts:
    known = PrepareFacts(
        train_ratings=480, test_ratings=420, most_ratings_of_a_user=77,
        users_with_nothing_held_out=5, filters=(), filters_settled=True, profile=profile,
    )  # fmt: skip
    return replace(known, **more)


def of_bins(*histogram: RatingBin) -> PrepareFacts:
    return prepared(replace(PROFILE, histogram=histogram))


def cells(prepare: PrepareFacts, number: int = 0) -> dict[str, list[str]]:
    """Return a table of the section by the first cells of its rows."""
    tables = [part for part in data_section(KEPT, INGEST, prepare).parts if isinstance(part, Table)]
    return {row[0].text: [cell.text for cell in row[1:]] for row in tables[number].rows}


def plots(prepare: PrepareFacts) -> list[Plot]:
    return [part for part in data_section(KEPT, INGEST, prepare).parts if isinstance(part, Plot)]


def test_every_number_is_shown() -> None:
    shown = {name: values[0] for name, values in cells(prepared()).items()}
    assert shown == {
        "rows read": "1,010",
        "ratings kept": "1,000",
        "quarantined: unreadable_rating": "7",
        "dropped: implicit": "3",
        "users": "45",
        "items": "40",
        "ratings": "900",
        "density": "50 %",
        "most ratings of one user": "77",
        "ratings to learn from": "480",
        "ratings held out": "420",
        "users with nothing held out": "5",
        "users without training ratings": "0",
        "items without training ratings": "0",
        "first and last day": "1999-11-11 to 2005-12-31",
        "ratings without a time": "12",
    }


def test_what_is_unknown_is_a_dash() -> None:
    nothing = replace(PROFILE, density=None, first_time=None, last_time=None)
    shown = cells(prepared(nothing))
    assert shown["density"] == shown["first and last day"] == ["–"]


@pytest.mark.parametrize(("settled", "end"), [(True, "drop nothing"), (False, "might drop more")])
def test_filters_are_listed(settled: bool, end: str) -> None:
    share = replace(STEP, filter="user_share: 0.5", round=0)
    prepare = prepared(filters=(STEP, share), filters_settled=settled)
    assert cells(prepare, 1) == {
        "user_min: 2": ["1", "900 (−100)", "45 (−5)", "40 (−0)"],
        "user_share: 0.5": ["–", "900 (−100)", "45 (−5)", "40 (−0)"],
    }
    table = data_section(KEPT, INGEST, prepare).parts[1]
    assert isinstance(table, Table)
    assert end in table.caption


def test_the_words_below_the_plots_follow_from_the_bins() -> None:
    ratings, activity = plots(prepared())
    assert "900 ratings" in ratings.alt
    assert "4.5 with 66.7 %" in ratings.alt
    # 35 of 45 users have one or two ratings; all items are in the only bin there is
    assert "half of the users have fewer than 3 each" in activity.alt
    assert "half of the items 10 or more" in activity.alt


@pytest.mark.parametrize("levels", [1, 5, 60])
def test_a_level_has_a_bar_each_and_labels_keep_apart(levels: int) -> None:
    histogram = [RatingBin(rating=level / 2, ratings=level + 1) for level in range(levels)]
    svg = plots(of_bins(*histogram))[0].svg
    # a bar is a filled path that is clipped to the axes
    assert len(re.findall(r'<path [^>]*clip-path="[^"]+" style="fill: #3b82c4', svg)) == levels
    labels = set(re.findall(r">([0-9.]+)</text>", svg))
    assert "0" in labels
    named = {f"{level / 2:g}" for level in range(0, levels, -(-levels // 20))}
    assert named <= labels


def test_a_scale_without_levels_is_drawn_on_its_axis() -> None:
    below, above = (
        RatingBin(low=-10.0, high=0.0, ratings=1),
        RatingBin(low=0.0, high=10.0, ratings=3),
    )
    plot = plots(of_bins(below, above))[0]
    assert "from 0 to 10 with 75.0 %" in plot.alt
    single = RatingBin(low=2.0, high=2.0, ratings=4)
    assert "from 2 to 2 with 100.0 %" in plots(of_bins(single))[0].alt


def test_the_same_records_draw_the_same_page() -> None:
    pages = {render("t", "s", [data_section(KEPT, INGEST, prepared())]) for _ in range(2)}
    assert len(pages) == 1
