"""The pages are complete, current, and lead somewhere."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from tests.fault_table import HEAD, as_table, written_faults

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
WRITTEN = [page for page in PAGES if page.parent.name != "reference"]
TEXT = {page: page.read_text() for page in PAGES}


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def anchors(text: str) -> set[str]:
    """Return what a link can point to, by the rule of Python-Markdown's toc."""
    titles = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    words = [re.sub(r"[^\w\s-]", "", title).strip().lower() for title in titles]
    return {re.sub(r"[-\s]+", "-", each) for each in words}


def test_the_reference_is_what_the_code_says() -> None:
    pages = generator().PAGES
    by_hand = {"papers.md"}  # with a test of its own
    assert {page.name for page in (DOCS / "reference").glob("*")} == pages.keys() | by_hand
    for name, make in pages.items():
        assert TEXT[DOCS / "reference" / name] == make(), "run `make docs-reference`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", TEXT[page]):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), target
        if anchor:
            assert anchor in anchors(found.read_text()), target


def test_every_page_is_in_the_navigation_and_the_index() -> None:
    listed = re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text())
    pages = {str(page.relative_to(DOCS)) for page in PAGES if DOCS in page.parents}
    assert set(listed) == pages
    assert len(listed) == len(pages)
    assert set(re.findall(r"\((.*?\.md)\)", TEXT[DOCS / "index.md"])) == pages - {"index.md"}


def test_every_script_that_a_page_names_is_there() -> None:
    scripts = {
        script
        for text in TEXT.values()
        for script in re.findall(r"(?:benchmarks|examples|jobs|conf)/[\w./-]+\.\w+", text)
    }
    scripts -= {script for script in scripts if script.endswith("nightly.yaml")}
    assert len(scripts) > 30
    missing = [script for script in scripts if not (ROOT / script).exists()]
    assert [script for script in missing if not (DOCS / script).exists()] == []


def test_the_table_of_faults_is_what_the_tests_break() -> None:
    faults = written_faults()
    assert len({what for what, _ in faults}) == len(faults)
    table = TEXT[DOCS / "design" / "faults.md"].split(HEAD)[1].split("\n\n")[0]
    remedy = "put there what `python -m tests.fault_table` prints"
    assert (HEAD + table).splitlines() == as_table(faults).splitlines(), remedy


def test_one_word_names_a_thing() -> None:
    table = TEXT[ROOT / "CONTRIBUTING.md"].split("## Words\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| \*\*(.*?)\*\* \| .* \| (.*) \|$", table, re.MULTILINE)
    assert len(rows) > 15
    unwanted = [word for _, words in rows for word in re.findall(r'"(.*?)"', words)]
    assert len(unwanted) > 10
    for page in WRITTEN:
        text = TEXT[page].replace(table, "").replace("\n", " ")
        found = [word for word in unwanted if re.search(rf"\b{word}s?\b", text)]
        assert found == [], page.relative_to(ROOT)


def test_the_site_asks_the_network_for_nothing() -> None:
    theme = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["theme"]
    assert theme["font"] is False
