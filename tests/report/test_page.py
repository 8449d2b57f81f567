"""The page escapes what it shows, and is readable without seeing it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from spark_rank import redaction
from spark_rank.report.page import (
    Cell,
    Heading,
    Notes,
    Plot,
    Preformatted,
    Section,
    Table,
    render,
)
from spark_rank.report.plots import Histogram, histogram_svg

NASTY = "<script>alert(\"x\")</script> & 'quoted'"


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    return reader


def page(text: str) -> str:
    plot = histogram_svg("t", "x", [Histogram("a", 0, False, 0.5, [0, 1, 2], [0.2, 0.8])])
    return render(
        text,
        text,
        [
            Section(text, [Table([text, "b"], [[Cell(text), Cell(text, best=True)]], text)]),
            Section("plots", [Plot(plot, text), Preformatted(text), text]),
        ],
    )


def test_every_text_is_escaped_and_shown() -> None:
    reader = read(page(NASTY))
    assert "script" not in reader.tags
    assert "".join(reader.text).count(NASTY) == 11
    assert reader.open == []


def test_tables_have_headers_and_pictures_have_text() -> None:
    html = page("some text")
    assert '<th scope="col">b</th>' in html
    assert '<th scope="row">some text</th>' in html
    assert 'role="img" aria-label="some text"' in html
    assert '<html lang="en">' in html


def structured() -> str:
    table = Table(["method", "MSD"], [
        [Cell("group a")], [Cell("mine"), Cell("1.0", best=True)],
        [Cell("group b")], [Cell("mine"), Cell("2.0", worse=True)],
    ])  # fmt: skip
    parts = [Heading("MSD"), table, Notes("Deviations", ["one", NASTY])]
    return render("t", "s", [Section(f"section {n}", parts) for n in range(4)])


def test_headings_and_contents_lead_through_the_page() -> None:
    html = structured()
    reader = read(html)
    assert reader.open == []
    levels = [int(tag[1]) for tag in reader.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    ids = re.findall(r' id="([^"]*)"', html)
    assert len(ids) == len(set(ids)) == 4
    assert re.findall(r'href="#([^"]*)"', html) == ids
    assert re.findall(r'aria-labelledby="([^"]*)"', html) == ids
    assert {"header", "nav", "main"} <= set(reader.tags)
    assert "<nav" not in page("some text")  # of two sections


def test_tables_tell_groups_and_marks_without_colours() -> None:
    html = structured()
    assert all("scope=" in tag for tag in re.findall("<th[ >][^>]*", html))
    assert '<th scope="rowgroup" class="group" colspan="2">group a</th>' in html
    assert html.count("<tbody>") == 4 * 2
    words = "".join(read(html).text)
    assert "1.0 ✓ (marked)" in words
    assert "2.0 ✗ (marked as worse)" in words


def test_the_page_needs_no_network_and_suits_dark_and_paper() -> None:
    html = page("some text") + structured()
    assert not re.search(r'(src|href)="(?!#)', html.replace('xlink:href="#', 'href="#'))
    assert "url(http" not in html
    assert "@import" not in html
    assert "<script" not in html
    for rule in ("prefers-color-scheme: dark", "@media print", "@page", "max-width: 40rem"):
        assert rule in html


def test_the_same_data_draws_the_same_bytes() -> None:
    assert page("a") == page("a")


@pytest.mark.parametrize("means", [(0.5, 0.7), (None, 0.1)])
def test_plots_name_their_learners(means: tuple[float | None, float]) -> None:
    svg = histogram_svg(
        "MSD",
        "axis",
        [
            Histogram("constant", 0, True, means[0], [0, 1], [1.0]),
            Histogram("mine", 1, False, means[1], [0, 1], [1.0]),
        ],
    )
    assert svg.startswith("<svg")
    for word in ("constant", f"mine (mean {means[1]:.3f})", "MSD", "share of users"):
        assert word in svg


def test_no_id_is_given_twice_and_all_references_lead_somewhere() -> None:
    plot = histogram_svg("t", "x", [Histogram("a", 0, False, 0.5, [0, 1, 2], [0.2, 0.8])])
    html = render("t", "s", [Section("a", [Plot(plot, "one"), Plot(plot, "two")]),
                             Section("b", [Plot(plot, "three")])])  # fmt: skip
    ids = re.findall(r'\sid="([^"]*)"', html)
    assert len(ids) == len(set(ids)) > 10
    references = re.findall(r'href="#([^"]*)"|url\(#([^)]*)\)', html)
    assert references
    assert {left or right for left, right in references} <= set(ids)


def test_what_is_scrolled_has_a_name_and_words_are_read_once() -> None:
    html = page("some text")
    for tag in re.findall(r"<[^>]*tabindex[^>]*>", html):
        assert 'role="group" aria-label="' in tag
    assert 'aria-label="table: some text, b"' in html
    assert '<figcaption aria-hidden="true">some text</figcaption>' in html
    assert "<th></th>" not in re.sub(" [^>]*", "", html)


def test_pictures_keep_their_size_on_a_telephone_and_headings_their_rows_on_paper() -> None:
    html = page("some text")
    assert re.search(r"figure svg \{[^}]*min-width: 36rem", html)
    assert '<figure><div class="scroll"' in html
    on_paper = html[html.index("@media print") :]
    for rule in ("tr:has(th.group) { break-after: avoid; }", "caption { break-before: avoid; }"):
        assert rule in on_paper


def test_titles_steer_neither_the_page_nor_a_spreadsheet() -> None:
    html = page("=cmd|' /C calc'!A0 \u202e\x1b[2J\x00\u2028")
    assert not {"\u202e", "\x1b", "\x00", "\u2028"} & set(html)
    text = "".join(read(html).text)
    assert text.count(r"\u202e\x1b[2J\x00\u2028") == 11
    # in the cells of the table, from where it may be pasted, a formula is text
    assert text.count("'=cmd|") == 2
    assert text.count("=cmd|") == 11


def test_the_page_may_run_and_fetch_nothing() -> None:
    html = page(NASTY)
    assert "Content-Security-Policy\" content=\"default-src 'none'; style-src" in html
    tags = set(read(html).tags)
    assert not tags & {"script", "iframe", "object", "embed", "link", "img", "form", "a"}
    assert not re.search(r"(href|src)=[\"'](?!#)", html)


def test_no_secret_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_remembered", set())
    redaction.remember({"spark.hadoop.fs.s3a.secret.key": "hunter2/secret"})
    html = page("login hunter2/secret failed")
    assert "hunter2" not in html
    assert "(redacted)" in html
