"""A parser whose pages of help end with keys, examples and where to read on."""

from __future__ import annotations

import argparse
from pathlib import PurePath

from spark_rank.help.commands import RUN_KEYS, STAGES, examples_of, sections_of
from spark_rank.help.layout import columns

EXIT_CODES = (
    "exit codes: 0 done; 2 bad configuration or arguments; 3 bad input data;\n"
    "4 too many failed users; 130 interrupted; 1 anything else"
)
_PROGRAM = "spark-rank"
_ELSEWHERE = {
    "spark-rank config --explain KEY": "all of a key; a section's name lists its keys",
    "spark-rank learners [NAME]": "the learners, and the parameters of each",
    "spark-rank COMMAND --help": "keys and examples of a command",
}
_OF_LEARNERS = {"", "tune", "train", "pipeline", "config"}


class PageParser(argparse.ArgumentParser):
    """A parser of one command; what it parses for is told by its name."""

    def format_help(self) -> str:
        """Return the page; to know the keys takes half a second, so only when it is asked for."""
        return f"{super().format_help()}\n{_end_of(command_of(self.prog))}\n"


def command_of(program: str) -> str:
    """Return the command of a program's name: of ``spark-rank runs list``, ``jobs/train.py``."""
    if program.endswith(".py"):
        return PurePath(program).stem
    return program.removeprefix(_PROGRAM).strip()


def _end_of(command: str) -> str:
    parts = [_keys(command), "\n".join(["examples:", *_indented(examples_of(command))])]
    parts.append("\n".join(["more:", *_elsewhere(command)]))
    return "\n\n".join([part for part in [*parts, EXIT_CODES] if part])


def _keys(command: str) -> str:
    """List the keys that a stage reads; of whole sections beside its own, the sections."""
    from spark_rank.help.keys import SECTIONS, key_lines, keys_of, section_lines

    own = sections_of(command)
    if not own and command not in STAGES:
        return ""
    others = STAGES[command].others if command in STAGES else ()
    if command == "pipeline":  # has all of them
        own, others = (), (*own, *others)
    listed = section_lines(others)
    keys = keys_of((*RUN_KEYS, *own, *(name for name in others if name not in SECTIONS)))
    head = ["configuration keys it reads, with their defaults:", *key_lines(keys)]
    return "\n".join([*head, *(["", "and the keys of these sections:"] if listed else []), *listed])


def _elsewhere(command: str) -> list[str]:
    """Name the commands that tell more, without the one whose page this is."""
    rows = [row for row in _ELSEWHERE.items() if command == "" or command not in row[0].split()]
    if command not in _OF_LEARNERS:
        rows = [row for row in rows if "learners" not in row[0]]
    return columns(rows)


def _indented(lines: tuple[str, ...]) -> list[str]:
    return [f"  {line}" for line in lines]
