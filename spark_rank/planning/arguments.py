"""The arguments of ``spark-rank plan``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

_MOST = 10**12


def add_plan(commands: Any, add_config: Callable[[argparse.ArgumentParser], None]) -> None:
    """Add the command; `add_config` adds the options of all commands."""
    plan = commands.add_parser(
        "plan",
        help="estimate time, memory and settings of the pipeline before it runs",
        description="Estimate how long each stage takes, how much memory it needs, and which "
        "settings fit. Sizes come from the run's own counts, else from the generated data set "
        "or the bytes of the input. Rates come from earlier runs of this store, else from "
        "measured defaults.",
    )
    plan.add_argument(
        "--cores", type=_count, metavar="N", help="number of cores (default: from the settings)"
    )
    for name in ("ratings", "users", "items"):
        plan.add_argument(f"--{name}", type=_count, metavar="N", help=f"plan for N {name}")
    plan.add_argument("--format", choices=("text", "json"), default="text")
    add_config(plan)


def _count(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= _MOST:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to {_MOST:,}")
    return int(text)
