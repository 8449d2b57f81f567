"""A browser without a window, and pages opened from files."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_rank.demo.contents import Contents
from spark_rank.demo.page import page_of

# a busy machine may be ten times slower
LONGEST_MS = 30_000


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Start the system's chromium; it ends with the tests."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        found = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        yield found
        found.close()


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Return what opens a page; every error, and whatever it asks of others, fails the test."""
    contexts, troubles = [], []

    def open_page(contents: Contents | Path, **settings: Any) -> Any:
        path = contents
        if isinstance(contents, Contents):
            path = tmp_path / f"page{len(contexts)}.html"
            path.write_text(page_of(contents), encoding="utf-8")
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **settings})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(LONGEST_MS)
        address = f"file://{path}"
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: (troubles.append(dialog.message), dialog.dismiss()))
        page.on(
            "console",
            lambda said: said.type in ("error", "warning") and troubles.append(said.text),
        )
        page.on(
            "request",
            lambda asked: (
                asked.url == address or asked.url.startswith("blob:") or troubles.append(asked.url)
            ),
        )
        page.goto(address)
        page.wait_for_selector("html[data-ready=true]", state="attached")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []
