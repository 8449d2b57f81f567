"""The page of the papers names modules and tests that exist, in every line."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "papers.md").read_text()
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and "| module |" not in line]


def test_every_line_names_a_module_and_a_test_that_exist() -> None:
    assert len(ROWS) > 60
    for row in ROWS:
        cells = [cell.strip() for cell in row.strip("|").split(" | ")]
        assert len(cells) == 4, row
        module, test = cells[1].strip("`"), cells[2].strip("`")
        assert module.startswith("spark_rank/"), row
        assert (ROOT / module).is_file(), module
        path, _, name = test.partition("::")
        assert path.startswith("tests/"), row
        assert (ROOT / path).is_file(), path
        if name:
            source = (ROOT / path).read_text()
            assert re.search(rf"^def {name}\(", source, re.MULTILINE), test


def test_every_numbered_equation_of_the_first_paper_is_there() -> None:
    first = PAGE.split("\n## ")[1]
    named: set[int] = set()
    for text in re.findall(r"eqs?\. ([\d, toand]+)", first):
        for low, _, high in re.findall(r"(\d+)( to (\d+))?", text):
            named.update(range(int(low), int(high or low) + 1))
    assert named >= set(range(1, 70))
