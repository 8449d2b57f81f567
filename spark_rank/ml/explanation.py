"""Collects what the explanation of one user needs."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import functions as F

from spark_rank.config.schema import FACTOR_KINDS, ITEM_OFFSET
from spark_rank.errors import InputDataError
from spark_rank.ml.trained import Trained
from spark_rank.tables.contracts import PANEL
from spark_rank.users.cases import Case
from spark_rank.users.joining import ScoringLearner, as_scoring, scoring_models, with_models
from spark_rank.users.recommending import Catalogue, RecommendJob, list_facts

_TOP, _BOTTOM = 10, 3  # places in the lists that are explained


def case_of(trained: Trained, user: str, beta: float) -> Case:
    """Return the user's rows and the item facts; raise `InputDataError` for an unknown user."""
    is_user = F.col("user_id") == user
    blocks = trained.blocks.where(is_user).select("items", "ratings", "n_train", "bucket").toArrow()
    record = trained.own_models().where(is_user).head()
    if len(blocks) == 0 or record is None:
        raise InputDataError(f"explain: the model has no user {user!r}")
    scored_by = ScoringLearner(trained.spec.label, ITEM_OFFSET)
    models = scoring_models(as_scoring(trained.models.where(is_user).toArrow()), scored_by)
    batch = blocks.combine_chunks().to_batches()[0]
    scale = trained.scale
    job = RecommendJob(
        trained.job.files, scored_by.learner, _TOP, _BOTTOM, scale, *trained.limits,
        beta=beta,
    )  # fmt: skip
    panel = trained.tables.get(PANEL.table)
    reviewers = [] if panel is None else panel.select("feature", "user_id").collect()
    return Case(
        with_models(batch, models, pa.array([0], pa.int32())),
        record.asDict(), blocks.to_pylist()[0], trained.item_facts, trained.opened,
        Catalogue.of(
            trained.opened, list_facts(trained.item_facts), choices=job.beta > 0.0
        ), job,
        {row["feature"]: row["user_id"] for row in reviewers},
        trained.config.features.kind in FACTOR_KINDS,
    )  # fmt: skip
