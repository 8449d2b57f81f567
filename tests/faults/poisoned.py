"""Users whose ratings end the process that learns them, by `poison/sitecustomize.py`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import duckdb

from tests.faults.driver import rows

# where the Python of the workers has to look for modules
PATH = Path(__file__).parent / "poison"
WAYS = {
    "segmentation fault": "crashed",
    "exit": "crashed",
    "killed": "crashed",
    "too much memory": "out_of_memory",
}


def poison_users(run: Path) -> tuple[dict[str, str], str]:
    """Return users and how each ends its worker, and the value of `POISON` that lets them."""
    blocks = duckdb.sql(
        f"select user_id, ratings[:n_train], ratings from '{run}/blocks/**/*.parquet' "
        "where n_train > 7 order by hash(user_id)"
    ).fetchall()
    chosen = dict(zip(WAYS, blocks, strict=False))
    # the training part ends `train`, all ratings end `refit`
    poison = json.dumps([[how, part] for how, (_, *parts) in chosen.items() for part in parts])
    return {user: how for how, (user, *_) in chosen.items()}, poison


def reasons(users: Mapping[str, str]) -> dict[str, str]:
    """Return why each of the users fails."""
    return {user: WAYS[how] for user, how in users.items()}


def failed_users(run: Path, table: str = "models") -> dict[tuple[object, object], object]:
    """Return the reason of every user and learner that failed."""
    found = rows(run / table, "user_id, learner, status, reason")
    return {(row[0], row[1]): row[3] for row in found if row[2] == "failed"}


def learned(run: Path, without: Mapping[str, str], poisoned: str) -> list[tuple[object, ...]]:
    """Return all model rows but the poisoned learner's of the poisoned users."""
    return [
        row for row in rows(run / "models", "user_id, learner, * exclude (run_id)")
        if not (row[0] in without and row[1] == poisoned)
    ]  # fmt: skip
