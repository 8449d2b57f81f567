"""The page: one self-contained HTML document, no network, no script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape as html_escape

from spark_rank.redaction import redact
from spark_rank.visible import inert, visible

# no script, no network: whatever a title may hold, a browser runs and fetches nothing
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
:root { color-scheme: light dark; --ink: #1d2127; --soft: #5d646e; --line: #d8dce2;
  --paper: #ffffff; --band: #f4f6f8; --best: #e3f1e8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7eb; --soft: #a2a9b3; --line: #3a414a;
  --paper: #16191d; --band: #1e2328; --best: #1d3a2a; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.2rem 4rem; max-width: 62rem; color: var(--ink);
  background: var(--paper); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.7rem; margin: 0 0 .2rem; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; }
p { margin: .4rem 0; } .soft { color: var(--soft); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .7rem; text-align: right; border-bottom: 1px solid var(--line); }
td { white-space: nowrap; } td.text { white-space: normal; }
th { background: var(--band); font-weight: 600; } tbody th { background: none; font-weight: 500; }
th:first-child, td:first-child, td.text, th.text { text-align: left; }
td.best { background: var(--best); font-weight: 600; }
caption { text-align: left; color: var(--soft); padding: .3rem 0; caption-side: bottom; }
figure { margin: 1rem 0; } figure svg { width: 100%; height: auto; }
figure.square { max-width: 32rem; } tbody th { white-space: nowrap; }
figcaption { color: var(--soft); }
pre { background: var(--band); padding: 1rem; overflow-x: auto; font-size: .85rem; }
@media print { body { max-width: none; padding: 0; } figure, table { break-inside: avoid; } }
"""


@dataclass(frozen=True)
class Cell:
    """A table cell: text, and how it stands out."""

    text: str
    best: bool = False
    left: bool = False


@dataclass(frozen=True)
class Table:
    """A table with headers; the first cell of a row is its header."""

    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""


@dataclass(frozen=True)
class Plot:
    """An inline picture with the words that stand for it."""

    svg: str
    alt: str
    square: bool = False


@dataclass(frozen=True)
class Preformatted:
    """Text that is shown as it is."""

    text: str


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it."""

    title: str
    parts: Sequence[Table | Plot | Preformatted | str]


def render(title: str, subtitle: str, sections: Sequence[Section]) -> str:
    """Return the HTML document; every text is escaped, and shows what would steer its reader."""
    body = "\n".join(_section(section) for section in sections)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f'<h1>{escape(title)}</h1>\n<p class="soft">{escape(subtitle)}</p>\n{body}\n'
        "</body>\n</html>\n"
    )


def _section(section: Section) -> str:
    parts = "\n".join(_part(part) for part in section.parts)
    return f"<section>\n<h2>{escape(section.title)}</h2>\n{parts}\n</section>"


def _part(part: Table | Plot | Preformatted | str) -> str:
    if isinstance(part, Table):
        return _table(part)
    if isinstance(part, Plot):
        picture = part.svg.replace("<svg", f'<svg role="img" aria-label="{escape(part.alt)}"', 1)
        kind = ' class="square"' if part.square else ""
        return f"<figure{kind}>{picture}<figcaption>{escape(part.alt)}</figcaption></figure>"
    if isinstance(part, Preformatted):
        lines = "\n".join(map(escape, part.text.split("\n")))
        return f"<pre>{lines}</pre>"
    return f"<p>{escape(part)}</p>"


def _table(table: Table) -> str:
    header = "".join(_heading(table, column) for column in range(len(table.header)))
    rows = "\n".join(f"<tr>{_row(row)}</tr>" for row in table.rows)
    caption = f"<caption>{escape(table.caption)}</caption>" if table.caption else ""
    return (
        f'<div class="scroll"><table>{caption}<thead><tr>{header}</tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody></table></div>"
    )


def _heading(table: Table, column: int) -> str:
    # a heading stands where the cells below it stand
    left = any(row[column].left for row in table.rows)
    attribute = ' class="text"' if left else ""
    return f'<th scope="col"{attribute}>{escape(table.header[column])}</th>'


def _row(cells: Sequence[Cell]) -> str:
    first, *others = cells
    shown = [f'<th scope="row">{escape(inert(first.text))}</th>']
    for cell in others:
        classes = " ".join(n for n, on in (("best", cell.best), ("text", cell.left)) if on)
        attribute = f' class="{classes}"' if classes else ""
        shown.append(f"<td{attribute}>{escape(inert(cell.text))}</td>")
    return "".join(shown)


def escape(text: str) -> str:
    """Return text as HTML shows it, without secrets and control characters."""
    return html_escape(visible(redact(text)))
