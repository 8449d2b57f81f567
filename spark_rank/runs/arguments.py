"""The arguments of ``spark-rank runs`` and ``spark-rank folds``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

_WHAT = {
    "list": "list all runs of the store, the latest first",
    "show": "show the stages of a run, with their times and rows",
    "diff": "compare two runs: the settings that differ, and the metrics side by side",
    "verify": "read every file of a run and compare sizes, checksums and row counts with its "
    "manifest; exit code 3 if anything is wrong",
    "prune": "delete old runs, except those that are promoted, running, or needed by a run that is "
    "kept",
    "promote": "make <store>/latest.json name a complete run",
}


def add_runs(commands: Any, add_config: Callable[[argparse.ArgumentParser], None]) -> None:
    """Add the command and its subcommands; `add_config` adds the options of all commands."""
    runs = commands.add_parser(
        "runs", help="list, compare, check, promote and delete runs", description="Manage runs."
    )
    actions = runs.add_subparsers(dest="action", metavar="ACTION", required=True)
    parsers = {}
    for name, doc in _WHAT.items():
        described = f"{doc[0].upper()}{doc[1:]}."
        parsers[name] = actions.add_parser(name, help=doc, description=described)
    for name in ("show", "promote"):
        parsers[name].add_argument(
            "run", nargs="?", metavar="RUN", help="id of the run (default: run_id)"
        )
    parsers["diff"].add_argument("run", metavar="RUN", help="a run's id")
    parsers["diff"].add_argument("other", metavar="OTHER", help="another run's id")
    parsers["verify"].add_argument("--run", metavar="RUN", help="id of the run (default: run_id)")
    _add_prune(parsers["prune"])
    for name, parser in parsers.items():
        if name != "promote":
            parser.add_argument("--format", choices=("text", "json"), default="text")
        add_config(parser)


def add_folds(commands: Any, add_config: Callable[[argparse.ArgumentParser], None]) -> None:
    """Add the command; `add_config` adds the options of all commands."""
    folds = commands.add_parser(
        "folds",
        help="compare the learners over runs of different folds",
        description="Show means and paired differences of the learners over several runs of one "
        "configuration, each on another fold: with another prepare.fold, another seed, or other "
        "files of a given split.",
    )
    folds.add_argument("runs", nargs="+", metavar="RUN", help="ids of the runs, two or more")
    folds.add_argument(
        "--format", choices=("text", "json"), default="text", help="JSON has all metrics"
    )
    add_config(folds)


def _add_prune(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--keep", type=_count, metavar="N", help="keep the latest N runs")
    parser.add_argument(
        "--older-than",
        type=_days,
        metavar="DAYS",
        help="delete only runs that began more than DAYS ago",
    )
    parser.add_argument(
        "--yes", action="store_true", help="delete; without it, only print what would be deleted"
    )


def _count(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of runs")
    return int(text)


def _days(text: str) -> float:
    try:
        days = float(text)
    except ValueError:
        days = -1.0
    if not 0.0 <= days <= 100_000.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of days")
    return days
