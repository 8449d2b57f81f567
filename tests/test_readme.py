"""What the README promises is what the code does, and it is short."""

from __future__ import annotations

import re
from pathlib import Path

from spark_rank.cli import command_parser
from spark_rank.learners import PER_USER
from spark_rank.tables.contracts import TABLES
from tests.fault_table import written_faults

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
ACCURACY = (ROOT / "docs/benchmarks/accuracy.md").read_text()
SCALE = (ROOT / "docs/benchmarks/scale.md").read_text()
NUMBERS = {6: "six"}


def section(title: str) -> str:
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_it_is_a_door() -> None:
    assert len(README.splitlines()) <= 220
    assert len(README.encode()) <= 12_000


def test_the_commands_it_shows_are_targets_and_commands() -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"(?:^|`)make ([a-z-]+)", README, re.MULTILINE)) <= set(targets)
    for line in re.findall(r"^spark-rank (.*)$", README, re.MULTILINE):
        command_parser().parse_args(line.split())


def test_what_it_says_is_in_a_run_is_there() -> None:
    named = re.findall(r"^\* (.*?):", section("What is in a run"), re.MULTILINE)
    tables = [name for line in named for name in re.findall(r"`(\w+)`", line)]
    assert len(tables) > 5
    assert set(tables) <= TABLES.keys()


def test_it_counts_faults_and_learners() -> None:
    assert f"break {len(written_faults())} kinds of things" in README
    assert f"any of {NUMBERS[len(PER_USER) - 1]} other ranking" in README.replace("\n", " ")


def test_its_figures_of_accuracy_are_those_of_the_benchmark() -> None:
    measured = ACCURACY.split("## MovieLens-1M")[1].split("## MovieLens-100K")[0]
    rows = [[cell.strip("* ") for cell in line.strip("|\n").split("|")]
            for line in measured.splitlines() if line.startswith("| ")]  # fmt: skip
    shown = re.findall(r"^\| (.*?) \| ([\d.]+) \| ([\d.]+) \| (.*?) ?\|$", README, re.MULTILINE)
    assert len(shown) == 6
    for name, msd, misranking, better in shown:
        own = next(row for row in rows if row[0].startswith(name.split(",")[0]))
        assert (own[1], own[3]) == (msd, misranking)
        if better:
            least, *ends = re.findall(r"[\d.]+", better)
            told = re.findall(r"[\d.]+", own[4])
            assert [least, *ends] == [told[0], *reversed(told[1:])]


def test_its_figures_of_speed_are_those_of_the_benchmark() -> None:
    shown = re.findall(r"^\| [^|]+ \| ([\d.]+) \|$", section("Accuracy and speed"), re.MULTILINE)
    assert len(shown) == 5
    for seconds in shown:
        assert f"| {seconds} |" in SCALE
