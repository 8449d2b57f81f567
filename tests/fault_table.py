"""The table of faults and outcomes: from the tests' markers, with what really happened.

A test that breaks something carries ``@pytest.mark.fault(what, outcome)``. The table of
docs/design/faults.md is these markers (``python -m tests.fault_table`` prints it); a run of
``-m fault`` prints them with what became of every test.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
HEAD = "| what breaks | what happens |\n|---|---|"
_WORDS = {"passed": "so it is", "failed": "NOT SO", "skipped": "not tried", "error": "NOT TRIED"}

Fault = tuple[str, str]


def written_faults() -> list[Fault]:
    """Return what the markers in the source say, file by file."""
    sources = [path.read_text() for path in sorted(TESTS.glob("**/test_*.py"))]
    return [fault for text in sources if "mark.fault" in text for fault in _faults_of(text)]


def _faults_of(source: str) -> Iterator[Fault]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.fault":
            what, outcome = map(ast.literal_eval, node.args)
            yield what, outcome


def as_table(faults: list[Fault]) -> str:
    """Return the table of docs/design/faults.md."""
    return "\n".join([HEAD, *[f"| {what} | {outcome} |" for what, outcome in faults]])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let every test's report carry its fault, from whatever process it comes."""
    for item in items:
        marker = item.get_closest_marker("fault")
        if marker is not None:
            item.user_properties.append(("fault", list(marker.args)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table with the results, where faults were asked for."""
    if "fault" not in terminalreporter.config.option.markexpr.replace("not fault", ""):
        return
    found: dict[Fault, set[str]] = {}
    for result in ("passed", "failed", "error", "skipped"):
        for report in terminalreporter.getreports(result):
            for name, value in report.user_properties:
                if name == "fault":
                    found.setdefault((value[0], value[1]), set()).add(result)
    terminalreporter.section("faults")
    for (what, outcome), results in found.items():
        # of a fault that several tests try, the worst counts
        worst = next(r for r in ("error", "failed", "skipped", "passed") if r in results)
        terminalreporter.write_line(f"{_WORDS[worst]:<10}| {what} | {outcome}")


if __name__ == "__main__":
    print(as_table(written_faults()))
