"""Counts users without a model by learner and reason, and shows one of them as an example."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_rank.events import emit
from spark_rank.records.models import FailedUser
from spark_rank.users.learning import FAILED
from spark_rank.wording import count_of

_PREFIX = f"{FAILED}: "
# by learner and reason
Examples = dict[str, dict[str, FailedUser]]


def failed_users(status: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """Return the failures in ``{learner: {"failed: reason": users}}``, by learner and reason."""
    failed = {
        learner: {
            name.removeprefix(_PREFIX): users
            for name, users in counts.items()
            if name.startswith(FAILED)
        }
        for learner, counts in status.items()
    }
    return {learner: reasons for learner, reasons in failed.items() if reasons}


def failure_examples(models: DataFrame) -> Examples:
    """Return, by learner and reason, the failed user with the smallest id and what went wrong."""
    failed = models.where(F.col("status") == FAILED)
    least = F.min(F.struct("user_id", "detail")).alias("least")
    rows = failed.groupBy("learner", "reason").agg(least).collect()
    examples: Examples = {}
    for row in sorted(rows, key=lambda row: (row["learner"], row["reason"])):
        least_row = row["least"]
        example = FailedUser(least_row["user_id"], least_row["detail"])
        examples.setdefault(row["learner"], {})[row["reason"]] = example
    return examples


def tell_failures(stage: str, status: Mapping[str, Mapping[str, int]], examples: Examples) -> None:
    """Emit, by learner and reason, how many users failed, with the error of one of them."""
    for learner, reasons in failed_users(status).items():
        for reason, users in reasons.items():
            example = examples[learner][reason]
            emit(
                "failed_users",
                f"{learner}: {count_of(users, 'user')} failed by {reason}, for example user "
                f"{example.user_id}: {example.detail}",
                stage=stage,
                level="warning",
                learner=learner,
                reason=reason,
                users=users,
                example=asdict(example),
            )
