"""Rows of the table `summary` for tests of the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_rank.metrics import BATCH_METRICS


def summary(
    means: Mapping[str, float],
    users: int = 60,
    group: str = "all",
    misranking: float | None = 0.3,
) -> list[dict[str, Any]]:
    """Return rows with the same mean for all metrics of a learner, but for misranking."""
    return [
        row
        for learner, mean in means.items()
        for metric in BATCH_METRICS
        for row in [_row(learner, metric, misranking if metric == "misranking" else mean,
                         users, group)]
    ]  # fmt: skip


def _row(learner: str, metric: str, mean: float | None, users: int, group: str) -> dict[str, Any]:
    return {
        "learner": learner, "metric": metric, "user_group": group,
        "users": 0 if mean is None else users, "mean": mean,
        "ci_low": None if mean is None else mean - 0.1,
        "ci_high": None if mean is None else mean + 0.1,
        "pooled": mean if metric in ("rmse", "mae") else None,
    }  # fmt: skip


def status_of(rows: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """Return a status by which every user was learned."""
    users = {row["learner"]: row["users"] for row in rows
             if row["user_group"] == "all" and row["metric"] == "msd"}  # fmt: skip
    return {learner: {"learned": count} for learner, count in users.items()}
