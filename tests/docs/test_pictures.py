"""The docs' pictures are small, show what was measured, and can be read on any background."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

BENCHMARKS = Path(__file__).parents[2] / "docs/benchmarks"
PICTURES = sorted((BENCHMARKS / "pictures").glob("*.svg"))
MOST = 30_000


def brightness(colour: str) -> float:
    """Return the relative luminance of ``#rrggbb``, as WCAG has it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: float, other: float) -> float:
    return (max(one, other) + 0.05) / (min(one, other) + 0.05)


def test_there_are_pictures() -> None:
    assert {path.stem for path in PICTURES} == {"online-curves", "list-beta"}


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.stem)
def test_a_picture_is_small_and_some_page_shows_it_with_words(picture: Path) -> None:
    assert picture.stat().st_size < MOST
    ElementTree.parse(picture)
    pages = [page.read_text() for page in BENCHMARKS.glob("*.md")]
    shown = [re.search(rf"!\[([^\]]{{30,}})\]\(pictures/{picture.name}\)", page) for page in pages]
    assert any(shown)


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.stem)
def test_its_colours_are_read_on_white_and_on_the_dark_page(picture: Path) -> None:
    text = picture.read_text()
    drawn = set(re.findall(r"(?:stroke|fill): (#[0-9a-f]{6})", text))
    assert len(drawn) > 4
    for colour in drawn:
        assert contrast(brightness(colour), brightness("#ffffff")) > 2.5, colour
        assert contrast(brightness(colour), brightness("#1e2129")) > 2.5, colour


def test_it_is_drawn_from_the_numbers_beside_it() -> None:
    """The ends of the curves, which are those of the table on the page."""
    with (BENCHMARKS / "pictures/online-curves.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["round"] == "7000"]
    page = (BENCHMARKS / "papers.md").read_text()
    first = r"^\| (?:PRank|Widrow-Hoff, step|multiclass)[^|]*\| (0\.\d+) ±"
    published = [float(loss) for loss in re.findall(first, page, re.MULTILINE)[:4]]
    ends = [float(row["mean"]) for row in rows]
    assert len(ends) == len(published) == 4
    assert sorted(ends) == pytest.approx(sorted(published), abs=0.01)
