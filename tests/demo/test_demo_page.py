"""The page as a file: what is in it, what it may do, how large it is, how exact its numbers are."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from spark_rank.demo import page
from spark_rank.demo.page import SCRIPTS, page_of
from spark_rank.demo.quantised import Quantised
from spark_rank.demo.scale import DemoScale
from spark_rank.demo.uncertainty import PageNumbers, Rated, measured, score_variance
from spark_rank.learners.ridge.systems import ridge_of
from spark_rank.store.self_checked import is_checked_page
from tests.demo.made import PARAMS, made_choices, made_contents, naive_variance, start_of

ASSETS = Path(str(files("spark_rank.demo"))) / "assets"
HOSTILE = [
    "</script><script>alert(1)</script>", "<!-- <img src=x onerror=alert(1)>", "{{script}}",
    "a\u202egnp.exe", "tab\tnew\nline", '"quoted" \\ \u2028', "=cmd|' /C calc'!A0",
]  # fmt: skip


def data_of(html: str) -> dict[str, object]:
    (text,) = re.findall(r'<script type="application/json" id="run">(.*?)</script>', html, re.S)
    data: dict[str, object] = json.loads(text)
    return data


def test_the_policy_allows_this_style_and_this_script_alone() -> None:
    html = page_of(made_contents())
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', html)
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.S)
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.S)
    for kind, text in (("style", style), ("script", script)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}';" in policy
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'; ")
    assert not re.search(r"\son\w+=|\sstyle=|https?://(?!www\.w3\.org)", html)
    assert "innerHTML" not in script


def test_no_title_leaves_its_place() -> None:
    html = page_of(made_contents(len(HOSTILE), titles=HOSTILE, noun="<b>", run_id="a.b-c_d"))
    assert len(re.findall("<script", html)) == 2
    assert "<b>" not in html
    titles = data_of(html)["titles"]
    assert isinstance(titles, list)
    assert titles[0] == HOSTILE[0]
    assert titles[2] == "{{script}}"
    assert titles[3] == "a\\u202egnp.exe"
    assert not any("\n" in title or "\t" in title for title in titles)


def test_the_same_run_gives_the_same_page_and_a_change_is_seen() -> None:
    html = page_of(made_contents())
    assert html == page_of(made_contents())
    assert is_checked_page(html)
    for changed in (html.replace("Film", "Fi1m"), html[:-3], f"{html} ", ""):
        assert not is_checked_page(changed)


def test_every_asset_is_used_and_in_the_package() -> None:
    assert {path.stem for path in ASSETS.glob("*.js")} == set(SCRIPTS)
    assert {path.name for path in ASSETS.iterdir()} == {
        *(f"{name}.js" for name in SCRIPTS), "page.css", "page.html"
    }  # fmt: skip
    settings = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert '"demo/assets/*"' in settings


def test_five_thousand_items_fit_three_megabytes() -> None:
    titles = [f"A title as long as they are on average {number}" for number in range(5000)]
    choices = made_choices(5000, 32)
    html = page_of(made_contents(5000, 33, titles=titles, choices=choices))
    assert len(html.encode()) < 3_000_000


def test_numbers_of_16_bits_are_as_near_as_the_page_says() -> None:
    rng = np.random.default_rng(0)
    exact = rng.normal(0, [1e-6, 1.0, 300.0], (500, 3))
    exact[:, 1] = 0.0
    stored = Quantised.of(exact)
    away = np.abs(stored.numbers() - exact)
    assert (away <= stored.scale / 2 * (1 + 1e-9)).all()
    assert away.max() <= stored.error < 0.03
    assert not stored.numbers()[:, 1].any()
    bytes_ = base64.b64decode(stored.as_json()["values"])
    np.testing.assert_array_equal(np.frombuffer(bytes_, "<i2").reshape(500, 3), stored.values)


def test_a_scale_without_levels_has_five_equal_parts() -> None:
    scale = DemoScale.continuous(-10.0, 10.0)
    assert scale.cuts == (-6.0, -2.0, 2.0, 6.0)
    assert scale.levels == (-8.0, -4.0, 0.0, 4.0, 8.0)
    text = " ".join(page.about(made_contents(scale=scale)))
    assert "cut into 5 equal parts" in text


def test_the_variance_of_a_score_is_that_of_the_whole_posterior() -> None:
    features = np.random.default_rng(1).normal(0, 0.7, (30, 5))
    for rated in ([3], [3, 8, 9], list(range(12))):
        ridge = ridge_of(PARAMS["C"], PARAMS["ridge"], PARAMS["growth"], len(rated))
        np.testing.assert_allclose(
            score_variance(features, np.array(rated), np.arange(30), PARAMS),
            naive_variance(features, rated, ridge), rtol=1e-10,
        )  # fmt: skip


def drawn_users(numbers: PageNumbers, noise: float, count: int) -> list[Rated]:
    """Draw users from the model itself: weights around the prior's, and noise."""
    rng = np.random.default_rng(2)
    users = []
    for _ in range(count):
        items = rng.choice(len(numbers.features), 20, replace=False)
        weights = rng.normal(0, np.sqrt(noise), numbers.features.shape[1])
        level = rng.normal(3, 1)
        scores = numbers.start(items[:10])[items] + numbers.features[items] @ weights + level
        users.append(Rated(items, scores + rng.normal(0, np.sqrt(noise), 20), 10))
    return users


def test_the_noise_is_found_again() -> None:
    contents = made_contents(80, 5)
    assert contents.prior is not None
    numbers = PageNumbers(
        contents.features.numbers(), contents.offset, contents.prior.numbers(), contents.prior_ends
    )
    rated = np.array([1, 5])
    np.testing.assert_allclose(numbers.start(rated), start_of(contents, rated), rtol=1e-12)
    found = measured(numbers, {**PARAMS, "growth": 0.0}, drawn_users(numbers, 0.7, 300), 3)
    assert found is not None
    assert found.noise == pytest.approx(0.7, rel=0.05)
    assert (found.users, found.ratings) == (300, 3000)
    assert found.score_error < 1e-3


def test_users_who_teach_nothing_are_left_out() -> None:
    numbers = PageNumbers(np.eye(4), np.zeros(4), np.zeros((0, 4)), np.zeros((2, 4)))
    items = np.arange(4)
    users = [
        Rated(items, np.array([1.0, 2, 3, 4]), 2),  # too few
        Rated(items, np.array([3.0, 3, 3, 1]), 3),  # all equal
        Rated(items, np.array([1.0, 2, 3, 4]), 4),  # nothing held out
    ]
    assert measured(numbers, PARAMS, users, 3) is None
    assert "no intervals" in " ".join(page.about(made_contents(uncertainty=None)))


def channels(colour: str) -> list[float]:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]


def contrast(one: str, other: str) -> float:
    weights = (0.2126, 0.7152, 0.0722)
    lights = sorted(sum(w * c for w, c in zip(weights, channels(each), strict=True))
                    for each in (one, other))  # fmt: skip
    return (lights[1] + 0.05) / (lights[0] + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_colours_have_contrast(theme: int) -> None:
    css = (ASSETS / "page.css").read_text()
    block = re.findall(r":root \{ (.*?) \}", css, re.S)[theme]
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))
    for ground in ("paper", "band", "zone"):
        assert contrast(colours["ink"], colours[ground]) > 7
        assert contrast(colours["soft"], colours[ground]) > 4.5
    assert contrast(colours["on-link"], colours["link"]) > 4.5
    for sign in ("star", "move", "link", "edge"):
        assert contrast(colours[sign], colours["paper"]) > 3
