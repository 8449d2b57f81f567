"""The demonstration page of 5,000 made-up films: its size, its times, and its picture.

``build/browser/bin/python benchmarks/demo.py`` (after ``make browser-test``) prints the size of the
page, the time to its first paint, and the time from a rating to the new list, the median of 30, in
a browser without a window. ``benchmarks/demo.py picture`` takes docs/pictures/demo.png, and
``benchmarks/demo.py RUN`` measures the page of a run's folder, and on held-out ratings of users
other than those that its noise comes from, how many stand in the 90 % intervals of ratings.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

from spark_rank.config.schema import DemoConfig, RecommendConfig
from spark_rank.demo.contents import Choices, Contents, Uncertainty
from spark_rank.demo.page import page_of
from spark_rank.demo.quantised import Quantised
from spark_rank.demo.reading import DemoSource
from spark_rank.demo.scale import DemoScale
from spark_rank.demo.uncertainty import held_out_scores, measured, score_variance
from spark_rank.learners import MPRank
from spark_rank.reader.run_folder import RunFolder
from spark_rank.users.rank_scale import RankScale

PICTURE = Path(__file__).parents[1] / "docs/pictures/demo.png"
ITEMS, WIDTH, RANK, TIMES = 5000, 33, 32, 30
FIRST = ("Quiet", "Long", "Last", "Crooked", "Golden", "Hidden", "Northern", "Paper", "Silent",
         "Second", "Wandering", "Blue", "Broken", "Early", "Empty", "Green", "Iron", "Little",
         "Lost", "Midnight", "Open", "Painted", "Red", "Slow", "Stolen", "Winter")  # fmt: skip
SECOND = ("Harbour", "Letter", "Summer", "Bridge", "Orchard", "Detective", "Garden", "River",
          "Station", "Violin", "Lighthouse", "Neighbour", "Road", "Island", "Clock", "Kitchen",
          "Mountain", "Circus", "Stranger", "Mirror", "Piano", "Sailor", "Village",
          "Window")  # fmt: skip
THIRD = ("", " of Glass", " at Dawn", " in the Rain", " by the Sea", " and the Fox", " Returns",
         " for Two", " without a Name")  # fmt: skip


def made_titles(count: int) -> list[str]:
    """Return titles of films that nobody made."""
    rng = np.random.default_rng(7)
    parts = [(a, b, c) for a in FIRST for b in SECOND for c in THIRD]
    chosen = rng.permutation(len(parts))[:count]
    years = rng.integers(1931, 2020, count)
    return [f"The {' '.join(parts[n][:2])}{parts[n][2]} ({year})"
            for n, year in zip(chosen, years, strict=True)]  # fmt: skip


def made_page(count: int = ITEMS, width: int = WIDTH) -> Contents:
    """Return contents as a run of factors leaves them, of random numbers."""
    rng = np.random.default_rng(3)
    shrink = 0.5 / np.sqrt(1 + np.arange(width))
    params = MPRank(C=1.0, ridge="fixed", growth=0.0067).get_params()
    scale = RankScale((1.0, 2.0, 3.0, 4.0, 5.0))
    return Contents(
        run_id="tuesday",
        learner="mprank_linear",
        noun="films",
        item_ids=[str(number) for number in range(count)],
        titles=made_titles(count),
        n_ratings=np.sort(rng.lognormal(5, 1.5, count).astype(np.int64))[::-1] + 1,
        listed=np.ones(count, dtype=bool),
        left_out=0,
        features=Quantised.of(rng.normal(0, shrink, (count, width))),
        offset=np.sort(rng.normal(0, 0.4, count))[::-1][rng.permutation(count)],
        prior=Quantised.of(rng.normal(0, 0.02, (count, width))),
        prior_ends=rng.normal(0, 0.05, (2, width)),
        scale=DemoScale.of_levels(scale.levels, tuple(scale.thresholds().tolist())),
        params=params,
        min_ratings=3,
        uncertainty=Uncertainty(0.68, 2e-4, 300, 6000),
        choices=Choices(
            6.0,
            Quantised.of(rng.normal(0, 0.06, (count, RANK))),
            Quantised.of(rng.normal(0, 0.2, (count, RANK))),
            rng.normal(0, 0.2, (2, RANK)),
        ),
    )


def rate(page: Any, ratings: str) -> None:
    """Rate proposed films, one after the other."""
    for number, rating in enumerate(ratings):
        kind = "popular" if number % 2 else "informative"
        page.locator(f"#{kind} button").nth(number % 3).click()
        page.locator("#rated li").nth(number).locator("label").nth(int(rating) - 1).click()


def measure(page: Any, path: Path) -> None:
    """Print size and times."""
    rate(page, "5241435342")
    taken = page.evaluate(
        """(times) => Array.from({length: times}, (_, i) => {
             const item = steps.now.chosen[i % 10], started = performance.now();
             take(withRating(steps.now, item, run.scale.levels[(i + 3) % run.scale.levels.length]));
             document.body.offsetHeight;  // laid out
             return performance.now() - started;
           })""",
        TIMES,
    )
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    ready = page.evaluate("performance.timing.domComplete - performance.timing.navigationStart")
    print(f"items                  {page.evaluate('run.size'):,}")
    print(f"features               {page.evaluate('run.width')}")
    print(f"size                   {path.stat().st_size / 1e6:.2f} MB")
    print(f"first paint            {paint:.0f} ms")
    print(f"ready                  {ready:.0f} ms")
    print(f"from a rating to lists {np.median(taken):.1f} ms (greatest {max(taken):.1f})")


def picture(browser: Any, path: Path) -> None:
    """Take the picture of the docs."""
    page = browser.new_page(viewport={"width": 1240, "height": 1180}, device_scale_factor=0.8)
    page.goto(f"file://{path}")
    rate(page, "5241453")
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    page.mouse.move(0, 0)
    PICTURE.parent.mkdir(exist_ok=True)
    page.screenshot(path=str(PICTURE))
    Image.open(PICTURE).quantize(96).save(PICTURE, optimize=True)  # a third of the bytes
    print(f"{PICTURE.name}: {PICTURE.stat().st_size / 1000:.0f} KB")


def coverage(folder: str) -> None:
    """Print how many held-out ratings are in their intervals."""
    source = DemoSource(RunFolder.at(folder), "", DemoConfig(), RecommendConfig())
    numbers, params, inside, count = source.numbers(held_out=True).rounded(), source.params, 0, 0
    users = list(source.users())
    noise = measured(source.numbers(held_out=True), params, users, source.min_ratings).noise
    for user in source.users(len(users), 10 * len(users)):
        train, test = user.items[: user.n_train], user.items[user.n_train :]
        known = user.ratings[: user.n_train]
        if len(train) < source.min_ratings or len(test) == 0 or known.min() == known.max():
            continue
        away = np.abs(user.ratings[user.n_train :] - held_out_scores(numbers, params, user))
        spread = np.sqrt(noise * (1 + score_variance(numbers.features, train, test, params)))
        inside, count = inside + int((away < 1.645 * spread).sum()), count + len(test)
    print(f"held-out ratings       {count:,}, {inside / count:.1%} of them in their intervals")


def main(what: str = "") -> None:
    """Make the page, open it, and measure it or take its picture."""
    with tempfile.TemporaryDirectory(prefix="spark-rank-") as folder, sync_playwright() as driver:
        path = Path(folder) / "index.html"
        if what not in ("", "picture"):
            path = Path(what) / "demo/index.html"
        else:
            path.write_text(page_of(made_page()), encoding="utf-8")
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        if what == "picture":
            picture(browser, path)
        else:
            page = browser.new_page()
            page.goto(f"file://{path}")
            page.wait_for_selector("html[data-ready=true]", state="attached")
            measure(page, path)
            if what:
                coverage(what)
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
