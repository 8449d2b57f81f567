"""A person's way through the page: by mouse, by keys, by touch, on any scale, with any titles."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spark_rank.demo.page import page_of
from spark_rank.demo.scale import DemoScale
from spark_rank.learners import MPRank
from tests.demo.made import HALF, PARAMS, made_contents, scale_of

pytestmark = pytest.mark.browser

Open = Callable[..., Any]
PHONE = {
    "viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True,
    "device_scale_factor": 2,
}  # fmt: skip


def rate(page: Any, title: str, rating: str) -> None:
    """Click on a star of an item that is chosen."""
    row = page.locator("#rated li", has_text=title)
    row.locator("label", has=page.locator(f"text='{rating}'")).click()


def choose_and_rate(page: Any, count: int, *, ratings: str = "52413") -> list[str]:
    """Choose proposed items and rate them; return their titles."""
    titles = []
    for number in range(count):
        button = page.locator("#popular button").first
        titles.append(button.inner_text())
        button.click()
        rate(page, titles[-1], ratings[number % len(ratings)])
    return titles


def texts(page: Any, selector: str) -> list[str]:
    found: list[str] = page.locator(selector).all_inner_texts()
    return found


def test_the_whole_way(opened: Open, tmp_path: Path) -> None:
    page = opened(made_contents(200, 8), accept_downloads=True)
    assert page.locator("#learn").is_disabled()
    # 1 choose: search as you type, and what is proposed
    page.fill("#search", "film 00")
    assert "the first 12" in page.inner_text("#found")
    page.fill("#search", "1957 film 0027")
    assert texts(page, "#results button") == ["Film 0027 (1957)"]
    page.press("#search", "Enter")
    assert texts(page, "#results button") == []
    page.fill("#search", "")
    proposed = set(texts(page, "#popular button") + texts(page, "#informative button"))
    assert len(proposed) == 12
    page.click("#others")
    others = set(texts(page, "#popular button") + texts(page, "#informative button"))
    assert not proposed & others
    # 2 rate, change, undo
    rate(page, "Film 0027", "4")
    titles = ["Film 0027 (1957)", *choose_and_rate(page, 4)]
    assert not set(titles) & set(texts(page, "#popular button"))
    rate(page, titles[1], "3")
    assert page.locator("#rated li").nth(1).locator("output").inner_text() == "3"
    page.click("#undo")
    assert page.locator("#rated li").nth(1).locator("output").inner_text() == "5"
    page.locator("#rated li").nth(4).locator(".remove").click()
    assert page.locator("#rated li").count() == 4
    page.keyboard.press("Control+z")
    assert page.locator("#rated li").count() == 5
    # 3 learn, 4 rank again
    assert "5 ratings" in page.inner_text("#model")
    assert page.locator("#again tr").count() == 5
    scores = [float(text.replace("−", "-")) for text in texts(page, "#again td:last-child")]
    assert scores == sorted(scores, reverse=True)
    ranks = dict(zip(texts(page, "#again th"), texts(page, "#again td:nth-child(3)"), strict=True))
    assert ranks == dict(zip(titles, "45241", strict=True))
    # 5 rank what is unseen, with interval and reasons; 6, 7 flip
    first = page.locator("#unseen li").first.inner_text()
    assert re.search(r"rank \d, score [\d.−]+; with 90 % between", first)
    assert re.search(r"Because of Film \d{4}", first)
    assert page.locator("#unseen li").count() == 10
    page.click("#more")
    assert page.locator("#unseen li").count() == 20
    best = texts(page, "#unseen strong")
    page.click("#flip")
    assert page.get_attribute("#flip", "aria-pressed") == "true"
    assert page.inner_text("#unseen-title") == "What not to watch"
    worst = texts(page, "#unseen strong")
    assert not set(best) & set(worst)
    page.click("#flip")
    assert texts(page, "#unseen strong")[:10] == best[:10]
    # what is seen after all goes from the list to the stars
    page.locator("#unseen li button").first.click()
    assert texts(page, "#rated .title")[-1] == best[0]
    assert best[0] not in texts(page, "#unseen strong")
    with page.expect_download() as saved:
        page.click("#save-ratings")
    saved.value.save_as(tmp_path / "ratings.csv")
    page.click("#clear")
    assert page.locator("#rated li").count() == 0
    assert page.locator("#results-of").is_hidden()
    page.set_input_files("#file", tmp_path / "ratings.csv")
    page.wait_for_selector("#results-of:not([hidden])")
    assert texts(page, "#rated .title") == titles
    assert texts(page, "#unseen strong")[0] == best[0]


def test_prank_shows_mistakes_moves_and_order(opened: Open) -> None:
    page = opened(made_contents(100, 6))
    choose_and_rate(page, 7)
    page.check("input[value=prank]")
    assert page.inner_text("#round-of") == "7 of 7"
    mistakes = int(re.findall(r"made (\d+) mistake", page.inner_text("#model"))[0])
    found = []
    for number in range(7):
        page.evaluate(f"showRound({number})")
        text = page.inner_text("#round-text")
        found.append("A mistake" in text)
        bars = page.locator("#line .cut").count()
        assert bars == 4
        assert (page.locator("#line .old").count() > 0) == found[-1]
        assert page.locator("#line .right, #line .wrong").count() == 7
        assert page.get_attribute("#line", "aria-label").startswith(f"Round {number + 1},")
        order = [float(b.replace("−", "-"))
                 for b in re.findall(r"[−\d.]+", text.rpartition(": ")[2].rstrip("."))]  # fmt: skip
        assert order == sorted(order)
        assert len(order) == 4
    assert sum(found) == mistakes > 0
    page.click("#earlier")
    assert page.inner_text("#round-of") == "6 of 7"
    page.click("#last-update")
    last = max(number for number, mistake in enumerate(found) if mistake)
    assert page.inner_text("#round-of") == f"{last + 1} of 7"
    page.select_option("#passes", "5")
    assert page.inner_text("#round-of") == "35 of 35"
    page.click("summary")
    assert page.locator("#rounds tr").count() == 35
    assert "✗ off by" in page.inner_text("#rounds")
    assert re.search(r"rank \d, score", page.locator("#unseen li").first.inner_text())
    assert page.locator("#unseen .bar").count() == 0


def test_keys_alone_are_enough(opened: Open) -> None:
    page = opened(made_contents(100, 6))
    page.focus("#search")
    page.keyboard.type("film 0005")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    # the stars of what was chosen have the focus
    page.keyboard.press("Space")
    assert page.inner_text("#rated output") == "1"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#rated output") == "3"
    page.keyboard.press("5")
    assert page.inner_text("#rated output") == "5"
    outline = page.evaluate(
        "getComputedStyle(document.activeElement.nextElementSibling).outlineStyle"
    )
    assert outline == "solid"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # remove
    assert page.locator("#rated li").count() == 0
    assert page.evaluate("document.activeElement.id") == "search"
    page.keyboard.press("Control+A")
    page.keyboard.press("Delete")
    # every control is reached, in the order in which it is read
    reached = []
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
    order = [reached.index(name) for name in ("others", "always", "undo", "file")]
    assert order == sorted(order)


def test_learning_waits_for_the_button_if_asked_to(opened: Open) -> None:
    page = opened(made_contents(60, 4))
    page.uncheck("#always")
    choose_and_rate(page, 3)
    assert page.locator("#results-of").is_hidden()
    assert page.locator("#changed").is_visible()
    page.click("#learn")
    assert page.locator("#again tr").count() == 3
    assert page.evaluate("document.activeElement.id") == "learned-title"
    choose_and_rate(page, 1)
    assert page.locator("#again tr").count() == 3
    assert page.locator("#changed").is_visible()


def test_few_ratings_give_what_is_expected(opened: Open) -> None:
    page = opened(made_contents(60, 4))
    choose_and_rate(page, 1)
    assert "expected of somebody" in page.inner_text("#model")
    assert page.locator("#unseen li").count() == 10
    assert "No rating of yours moves it" in page.inner_text("#unseen")


def test_a_ridge_that_is_lost_in_rounding_is_told(opened: Open) -> None:
    params = {**PARAMS, "C": 1e30, "growth": 0.0}
    page = opened(made_contents(60, 8, params=params))
    assert page.locator("#unsolved").is_hidden()
    choose_and_rate(page, 4)
    assert page.locator("#unsolved").is_visible()
    assert page.locator("#results-of").is_hidden()
    page.check("input[value=prank]")
    assert page.locator("#unsolved").is_hidden()
    assert page.locator("#unseen li").count() == 10


def test_half_stars(opened: Open) -> None:
    page = opened(made_contents(60, 4, scale=scale_of(HALF)))
    titles = choose_and_rate(page, 3, ratings="52")
    rate(page, titles[0], "3.5")
    row = page.locator("#rated li").first
    assert row.locator("output").inner_text() == "3.5"
    assert row.locator("label").count() == 10
    assert row.locator("label.on").count() == 7
    # the left half of the second star by a click on that place
    star = row.locator("label").nth(2).bounding_box()
    page.mouse.click(star["x"] + star["width"] / 2, star["y"] + star["height"] / 2)
    assert row.locator("output").inner_text() == "1.5"
    assert "3 (1.5)" in page.inner_text("#again")


def test_a_continuous_scale_has_a_slider(opened: Open) -> None:
    page = opened(made_contents(60, 4, scale=DemoScale.continuous(-10.0, 10.0), noun="jokes"))
    for place, value in enumerate(("-7.3", "8.5", "0.2", "4.1")):
        page.locator("#popular button").first.click()
        row = page.locator("#rated li").nth(place)
        assert row.locator("output").inner_text() == "not rated"
        slider = row.locator("input[type=range]")
        slider.fill(value)
        assert row.locator("output").inner_text() == value.replace("-", "−")
    assert "1 (−7.3)" in page.inner_text("#again")
    assert "5 (8.5)" in page.inner_text("#again")
    page.locator("#rated li").first.locator("input").press("ArrowRight")
    assert page.locator("#rated li").first.locator("output").inner_text() == "−7.2"
    page.check("input[value=prank]")
    assert page.locator("#line .cut").count() == 4
    page.click("#flip")
    assert page.inner_text("#unseen-title") == "What to leave alone"


HOSTILE = [
    "</script><script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "{{script}} ${1+1} `", "\u202eoc.exe", "&lt;b&gt;", "'; drop table films; --", "ﷺ" * 30,
    "W" * 150,
]  # fmt: skip


def test_hostile_titles_are_only_shown(opened: Open) -> None:
    contents = made_contents(len(HOSTILE), 3, titles=HOSTILE, listed=np.ones(len(HOSTILE), bool))
    page = opened(contents, viewport={"width": 360, "height": 740})
    title = page.title()
    for number in range(4):
        page.locator("#popular button").first.click()
        page.locator("#rated li").nth(number).locator("label").nth(number).click()
    shown = page.inner_text("body")
    assert HOSTILE[0] in shown
    assert HOSTILE[1] in shown
    assert "&lt;b&gt;" in shown
    assert "\\u202eoc.exe" in shown
    assert page.title() == title
    assert page.locator("body img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_script_of_others_does_not_run(browser: Any, tmp_path: Path) -> None:
    """The policy holds: markup that got in does nothing."""
    evil = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    path = tmp_path / "evil.html"
    path.write_text(page_of(made_contents()).replace("<main>", f"<main>{evil}"))
    page = browser.new_page()
    refused: list[str] = []
    page.on("console", lambda said: refused.append(said.text))
    page.goto(f"file://{path}")
    page.wait_for_selector("html[data-ready=true]", state="attached")
    assert page.title() != "owned"
    assert sum("Content Security Policy" in text for text in refused) >= 2
    page.close()


def test_an_empty_run_and_one_without_titles(opened: Open) -> None:
    page = opened(made_contents(0, 3))
    assert page.locator("#popular button").count() == 0
    assert page.locator("#others").is_disabled()
    page.fill("#search", "anything")
    assert page.inner_text("#found") == "Nothing found."
    page = opened(made_contents(30, 3, titles=[None] * 30))
    assert re.fullmatch(r"item i\d+", page.locator("#popular button").first.inner_text())
    page.fill("#search", "item i7")
    assert page.locator("#results button").first.inner_text() == "item i7"


def test_a_telephone(opened: Open) -> None:
    page = opened(made_contents(100, 6), **PHONE)
    for number in range(4):
        page.locator("#informative button").first.tap()
        page.locator("#rated li").nth(number).locator("label").nth(number).tap()
    page.locator("#learn").tap()
    page.locator("#flip").tap()
    assert page.locator("#unseen li").count() == 10
    page.locator("input[value=prank]").tap()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    sizes = page.evaluate(
        """[...document.querySelectorAll("button, .stars label, select")]
           .filter((each) => each.offsetParent !== null)
           .map((each) => each.getBoundingClientRect())
           .map((each) => [each.width, each.height])"""
    )
    assert len(sizes) > 30
    assert min(min(size) for size in sizes) >= 24


def test_everything_has_a_name_and_a_role(opened: Open) -> None:
    page = opened(made_contents(60, 4))
    choose_and_rate(page, 4)
    page.check("input[value=prank]")
    unnamed = page.evaluate(
        """[...document.querySelectorAll("button, input, select, svg[role=img], [tabindex='0']")]
           .filter((each) => {
             const label = each.labels?.[0]?.textContent ?? "";
             const text = each.tagName === "BUTTON" ? each.textContent : "";
             return (each.getAttribute("aria-label") ?? "") + label + text === "";
           }).map((each) => each.outerHTML)"""
    )
    assert unnamed == []
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map((each) => each.id)")
    assert len(ids) == len(set(ids))
    named = page.evaluate(
        """[...document.querySelectorAll("[aria-labelledby]")]
           .map((each) => document.getElementById(each.getAttribute("aria-labelledby")))"""
    )
    assert None not in named
    levels = page.evaluate(
        "[...document.querySelectorAll('h1, h2, h3')].map((each) => Number(each.tagName[1]))"
    )
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert page.locator("fieldset legend").first.text_content().startswith("Your rating of Film")


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_both_themes(opened: Open, colours: str) -> None:
    page = opened(made_contents(), color_scheme=colours)
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(22, 25, 29)"}[colours]


def test_five_thousand_items_answer_at_once(opened: Open) -> None:
    page = opened(made_contents(5000, 33))
    choose_and_rate(page, 8)
    taken = page.evaluate(
        """() => {
          const times = [];
          for (let i = 0; i < 11; i++) {
            const item = steps.now.chosen[i % 8];
            const started = performance.now();
            take(withRating(steps.now, item, 1 + (i + 1) % 5));
            times.push(performance.now() - started);
          }
          return times.sort((a, b) => a - b)[5];
        }"""
    )
    assert taken < 50
    painted = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    assert painted < 1000


def test_files_that_cannot_be_used_say_so(opened: Open, tmp_path: Path) -> None:
    page = opened(made_contents())
    for text, words in (
        ("a,b\n1,2\n", "must name the columns item and rating"),
        ("{", "cannot be used"),
        ('{"coef_": [1]}', "no model of this run"),
        (json.dumps({"coef_": [0.0] * 6}), "are not those of this run"),
    ):
        path = tmp_path / "file.txt"
        path.write_text(text)
        page.set_input_files("#file", path)
        page.wait_for_selector(f"#said:has-text('{words}')")
    assert page.locator("#rated li").count() == 0


def test_a_saved_model_scores_in_python_and_in_the_page(opened: Open, tmp_path: Path) -> None:
    contents = made_contents(60, 4)
    page = opened(contents, accept_downloads=True)
    choose_and_rate(page, 5)
    best = texts(page, "#unseen strong")
    with page.expect_download() as saved:
        page.click("#save-model")
    assert saved.value.suggested_filename == "mprank.json"
    path = tmp_path / "mprank.json"
    saved.value.save_as(path)
    stored = json.loads(path.read_text())
    X = contents.features.numbers()
    start = contents.offset + X @ np.array(stored["demonstration"]["expected"])
    scores = MPRank.from_params(stored).decision_function(X, offset=start)
    rated = [contents.item_ids.index(item) for item in stored["demonstration"]["ratings"]]
    unseen = [item for item in np.argsort(-scores) if contents.listed[item] and item not in rated]
    assert [contents.titles[item] for item in unseen[:10]] == best
    page.click("#clear")
    page.set_input_files("#file", path)
    page.wait_for_selector("#results-of")
    assert "from a file" in page.inner_text("#model")
    assert set(best) <= set(texts(page, "#unseen strong")) | set(best[5:])
