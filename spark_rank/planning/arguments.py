"""The arguments of ``spark-rank plan``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

_MOST = 10**12


def add_plan(commands: Any, add_config: Callable[[argparse.ArgumentParser], None]) -> None:
    """Add the command; `add_config` adds what all commands take."""
    plan = commands.add_parser(
        "plan",
        help="reckon time, memory and settings of the pipeline before it runs",
        description="Reckon how long each stage will take, what memory it needs, and which "
        "settings follow: from the run's counts, else from the generated data set's sizes or the "
        "bytes of the input, and from measured rates, of this store's own runs where there are "
        "some.",
    )
    plan.add_argument("--cores", type=_count, metavar="N", help="cores in all; else the settings'")
    for name in ("ratings", "users", "items"):
        plan.add_argument(f"--{name}", type=_count, metavar="N", help=f"as if there were N {name}")
    plan.add_argument("--format", choices=("text", "json"), default="text")
    add_config(plan)


def _count(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= _MOST:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to {_MOST:,}")
    return int(text)
