"""The page: one self-contained HTML document, no network, no script."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape as html_escape

from spark_rank.redaction import redact
from spark_rank.visible import inert, visible

# no script, no network: whatever a title may hold, a browser runs and fetches nothing
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
:root { color-scheme: light dark; --ink: #1d2127; --soft: #5d646e; --line: #d8dce2;
  --paper: #ffffff; --band: #f4f6f8; --best: #e3f1e8; --worse: #f8e5e0; --link: #1f5fa6; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7eb; --soft: #a2a9b3; --line: #3a414a;
  --paper: #16191d; --band: #1e2328; --best: #1d3a2a; --worse: #4a2620; --link: #8ab8ee; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.2rem 4rem; max-width: 66rem; color: var(--ink);
  background: var(--paper); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.7rem; margin: 0 0 .2rem; }
h2 { font-size: 1.25rem; margin: 2.4rem 0 .6rem; padding-top: .6rem;
  border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.4rem 0 .3rem; }
p { margin: .4rem 0; max-width: 46rem; } .soft { color: var(--soft); }
a { color: var(--link); }
nav ul { columns: 16rem; column-gap: 1.8rem; padding-left: 1.1rem; margin: .8rem 0;
  font-size: .92rem; }
ul.notes { padding-left: 1.1rem; margin: .3rem 0; max-width: 46rem; }
.scroll { overflow-x: auto; margin: .5rem 0 1rem; }
table { border-collapse: collapse; width: 100%; font-size: .92rem;
  font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .5rem; text-align: right; border-bottom: 1px solid var(--line); }
td { white-space: nowrap; } td.text { white-space: normal; }
th { background: var(--band); font-weight: 600; } tbody th { background: none; font-weight: 500; }
th:first-child, td:first-child, td.text, th.text { text-align: left; }
tbody th.group { font-weight: 600; padding-top: .9rem; }
td.best { background: var(--best); font-weight: 600; }
td.worse { background: var(--worse); }
.note { display: block; color: var(--soft); font-size: .8rem; font-weight: normal; }
p.lead { font-size: 1.25rem; line-height: 1.4; margin: 1rem 0 .4rem; }
caption { text-align: left; color: var(--soft); padding: .3rem 0; caption-side: bottom; }
figure { margin: 1rem 0; } figure .scroll { margin: 0; }
figure svg { display: block; width: 100%; height: auto; min-width: 36rem; }
figure.square { max-width: 32rem; } figure.square svg { min-width: 24rem; }
tbody th { white-space: nowrap; }
figcaption { color: var(--soft); max-width: 46rem; }
pre { background: var(--band); padding: 1rem; overflow-x: auto; font-size: .85rem; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%);
  white-space: nowrap; }
@media (max-width: 40rem) { body { padding: 1rem .7rem 3rem; font-size: 15px; }
  th, td { padding: .25rem .4rem; } tbody th { white-space: normal; } nav ul { columns: 9rem; }
  caption span { display: inline-block; position: sticky; left: 0;
    max-width: calc(100vw - 1.4rem); } }
@media print {
  :root { color-scheme: light; --ink: #000; --soft: #444; --line: #bbb; --paper: #fff;
    --band: #f2f2f2; --best: #e3f1e8; --worse: #f8e5e0; }
  @page { margin: 16mm 14mm; }
  body { max-width: none; padding: 0; font-size: 10pt; } nav { display: none; }
  h2, h3 { break-after: avoid; } figure, tr, pre { break-inside: avoid; }
  tr:has(th.group) { break-after: avoid; } caption { break-before: avoid; }
  tbody:last-of-type tr:last-child { break-after: avoid; }
  tbody th { white-space: normal; } .scroll { overflow: visible; }
  figure svg, figure.square svg { min-width: 0; }
  pre { white-space: pre-wrap; }
  td.best, td.worse, th { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""
# ids within a picture, and references to them: matplotlib uses the same ids in every picture
_IDS = re.compile(r'((?<= )id="|(?<=href=")#|(?<=url\()#)')
# a page with fewer sections has no list of contents
_FEW_SECTIONS = 4


@dataclass(frozen=True)
class Cell:
    """A table cell: its text, and whether a colour, a sign and a word for screen readers mark it.

    The note stands below the text in small letters.
    """

    text: str
    best: bool = False
    left: bool = False
    worse: bool = False
    note: str = ""


@dataclass(frozen=True)
class Table:
    """A table with headers; the first cell of a row is its header.

    A row of a single cell is the heading of the rows below it.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""


@dataclass(frozen=True)
class Plot:
    """An inline picture, with a text that describes it."""

    svg: str
    alt: str
    square: bool = False


@dataclass(frozen=True)
class Preformatted:
    """Text that is shown as it is."""

    text: str


@dataclass(frozen=True)
class Heading:
    """A heading within a section."""

    text: str


@dataclass(frozen=True)
class Notes:
    """A heading with a list of sentences."""

    title: str
    sentences: Sequence[str]


Part = Table | Plot | Preformatted | Heading | Notes | str


@dataclass(frozen=True)
class Section:
    """A heading and the parts below it."""

    title: str
    parts: Sequence[Part]


def render(title: str, subtitle: str, sections: Sequence[Section], lead: Sequence[str] = ()) -> str:
    """Return the HTML document; every text is escaped, and its control characters are visible.

    The first sentence of `lead` is the page's headline, the others support it.
    """
    body = "\n".join(_section(section, number) for number, section in enumerate(sections, 1))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f'<header>\n<h1>{escape(title)}</h1>\n<p class="soft">{escape(subtitle)}</p>\n'
        f"{_lead(lead)}{_contents(sections)}</header>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _lead(sentences: Sequence[str]) -> str:
    return "".join(
        f'<p class="lead">{escape(sentence)}</p>\n'
        if place == 0
        else f"<p>{escape(sentence)}</p>\n"
        for place, sentence in enumerate(sentences)
    )


def _contents(sections: Sequence[Section]) -> str:
    if len(sections) < _FEW_SECTIONS:
        return ""
    links = "".join(
        f'<li><a href="#s{number}">{escape(section.title)}</a></li>'
        for number, section in enumerate(sections, 1)
    )
    return f'<nav aria-label="Contents"><ul>{links}</ul></nav>\n'


def _section(section: Section, number: int) -> str:
    parts = "\n".join(
        _part(part, f"s{number}-{place}-") for place, part in enumerate(section.parts, 1)
    )
    return (
        f'<section aria-labelledby="s{number}">\n<h2 id="s{number}">{escape(section.title)}</h2>\n'
        f"{parts}\n</section>"
    )


def _part(part: Part, prefix: str) -> str:
    """Return a part as HTML; `prefix` makes its ids differ from those of all other parts."""
    if isinstance(part, Table):
        return _table(part)
    if isinstance(part, Plot):
        return _figure(part, prefix)
    if isinstance(part, Preformatted):
        lines = "\n".join(map(escape, part.text.split("\n")))
        return f"<pre {_scrolled('preformatted text')}>{lines}</pre>"
    if isinstance(part, Heading):
        return f"<h3>{escape(part.text)}</h3>"
    if isinstance(part, Notes):
        items = "".join(f"<li>{escape(sentence)}</li>" for sentence in part.sentences)
        return f'<h3>{escape(part.title)}</h3>\n<ul class="notes">{items}</ul>'
    return f"<p>{escape(part)}</p>"


def _figure(plot: Plot, prefix: str) -> str:
    """Return a picture with its text below; screen readers read the text once, as its label."""
    label = f'<svg role="img" aria-label="{escape(plot.alt)}"'
    picture = _IDS.sub(rf"\g<1>{prefix}", plot.svg).replace("<svg", label, 1)
    kind = ' class="square"' if plot.square else ""
    return (
        f'<figure{kind}><div class="scroll" {_scrolled("picture")}>{picture}</div>'
        f'<figcaption aria-hidden="true">{escape(plot.alt)}</figcaption></figure>'
    )


def _scrolled(name: str) -> str:
    """Return the attributes of an element that keys scroll; screen readers read its name."""
    return f'tabindex="0" role="group" aria-label="{escape(name)}"'


def _table(table: Table) -> str:
    columns = len(table.header)
    header = "".join(_heading(table, column) for column in range(columns))
    caption = f"<caption><span>{escape(table.caption)}</span></caption>" if table.caption else ""
    bodies: list[list[str]] = [[]]
    for row in table.rows:
        if len(row) == 1 < columns:
            words = f'<th scope="rowgroup" class="group" colspan="{columns}">'
            bodies.append([f"<tr>{words}{escape(row[0].text)}</th></tr>"])
        else:
            bodies[-1].append(f"<tr>{_row(row)}</tr>")
    name = f"table: {', '.join(table.header)}"
    shown = "\n".join("<tbody>\n" + "\n".join(rows) + "\n</tbody>" for rows in bodies if rows)
    return (
        f'<div class="scroll" {_scrolled(name)}><table>{caption}<thead><tr>{header}</tr></thead>\n'
        f"{shown}</table></div>"
    )


def _heading(table: Table, column: int) -> str:
    # a heading is aligned as the cells below it
    left = any(row[column].left for row in table.rows if len(row) > column)
    attribute = ' class="text"' if left else ""
    return f'<th scope="col"{attribute}>{escape(table.header[column])}</th>'


def _row(cells: Sequence[Cell]) -> str:
    first, *others = cells
    shown = [f'<th scope="row">{escape(inert(first.text))}{_note(first)}</th>']
    for cell in others:
        kinds = (("best", cell.best), ("worse", cell.worse), ("text", cell.left))
        classes = " ".join(name for name, on in kinds if on)
        attribute = f' class="{classes}"' if classes else ""
        shown.append(f"<td{attribute}>{escape(inert(cell.text))}{_mark(cell)}{_note(cell)}</td>")
    return "".join(shown)


def _note(cell: Cell) -> str:
    # the space keeps the words apart when a table is copied
    return f' <span class="note">{escape(cell.note)}</span>' if cell.note else ""


def _mark(cell: Cell) -> str:
    """Return the sign and the word that mark a cell for readers who do not see its colour."""
    if not (cell.best or cell.worse):
        return ""
    sign, word = ("✓", "marked") if cell.best else ("✗", "marked as worse")
    return f' <span aria-hidden="true">{sign}</span><span class="unseen"> ({word})</span>'


def escape(text: str) -> str:
    """Return text as HTML shows it, without secrets and control characters."""
    return html_escape(visible(redact(text)))
