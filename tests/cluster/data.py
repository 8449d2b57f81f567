"""Ratings and settings of the runs on a cluster: small, but with something for every stage."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import yaml

USERS, ITEMS = 400, 60


def write_ratings(folder: Path) -> Path:
    """Write the same ratings every time, in four files, some of whose lines are unusable."""
    folder.mkdir()
    for part in range(4):
        lines = ["user,item,rating"]
        for user in range(part, USERS, 4):
            for item in range(ITEMS):
                draw = hashlib.sha256(f"{user} {item}".encode()).digest()
                if draw[0] < 40 + 20 * (user % 6):
                    taste = (user % 7) * (item % 5) + draw[1] % 7
                    lines.append(f"u{user},i{item},{1 + taste % 5}")
            if user % 100 == part:
                lines.append(f"u{user},i0,many")
        (folder / f"ratings-{part}.csv").write_text("\n".join(lines) + "\n")
    return folder


def write_config(path: Path, store: Path, ratings: Path, **changes: Any) -> Path:
    """Write a configuration for these ratings."""
    tree = yaml.safe_load(SETTINGS) | changes
    tree |= {"store": str(store), "run_id": "one"}
    tree["input"] = {"path": str(ratings), "format": "csv", "max_bad_share": 0.1}
    path.write_text(yaml.safe_dump(tree))
    return path


# users that take a while
SLOW_LEARNERS = [
    {"name": "linear", "params": {"C": 0.1}},
    {"name": "slow", "learner": "svrank", "params": {"kernel": "rbf"},
     "grid": {"C": [1, 10, 100, 1000]}, "selection": "k_fold"},
]  # fmt: skip

SETTINGS = """
prepare: {buckets: 16}
features: {rank: 4, rounds: 5}
users_per_wave: 50
train:
  learners:
    - {name: linear, params: {C: 0.1}}
    - {name: rbf, params: {kernel: rbf}, grid: {C: [1, 10]}}
    - {name: own, grid: {C: [0.1, 1]}, selection: leave_pair_out}
    - {learner: prank}
ensemble:
  in_pipeline: true
  groups: 2
  learners: [{tau: 0.5, n_members: 4}]
aggregate: {items: 10}
recommend: {learner: linear, top: 3, bottom: 1}
spark: {spark.sql.shuffle.partitions: 3}
"""
