"""What the models of a run predict of held-out items, user by user."""

from __future__ import annotations

from dataclasses import dataclass, field

from spark_rank.frames.predictions import predictions
from spark_rank.stages.feature_tables import distribute_files
from spark_rank.stages.models import all_models
from spark_rank.stages.training import rank_scale, tasks_by_bucket
from spark_rank.store.run import Run
from spark_rank.tables.contracts import BLOCKS
from spark_rank.users.evaluating import PredictJob


@dataclass
class Predicted:
    """One user's held-out items under one learner, in the order of the block."""

    items: list[str] = field(default_factory=list)
    ratings: list[float] = field(default_factory=list)
    scores: list[float | None] = field(default_factory=list)
    ranks: list[int | None] = field(default_factory=list)
    levels: list[float | None] = field(default_factory=list)


def predicted(run: Run) -> dict[tuple[str, str], Predicted]:
    """Return what every user's models predict, by user and learner; without held-out items none."""
    job = PredictJob(distribute_files(run.spark, run), rank_scale(run))
    made = predictions(run.read(BLOCKS), all_models(run), job, tasks_by_bucket(run))
    found: dict[tuple[str, str], Predicted] = {}
    for row in made.collect():
        own = found.setdefault((row["user_id"], row["learner"]), Predicted())
        own.items.append(row["item_id"])
        own.ratings.append(row["rating"])
        own.scores.append(row["score"])
        own.ranks.append(row["predicted_rank"])
        own.levels.append(row["predicted_rating"])
    return found
